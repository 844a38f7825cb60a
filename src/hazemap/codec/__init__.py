"""JSON of queries, answers and methods: what a device receives and what a release stores.

Everything that travels is a frozen dataclass of plain data, so one rule writes it all: `{"Name": {field:
value}}`. The names are a closed list; whoever reads refuses a name it does not know, a name with other
fields than its own, and a field of another type than its class gives it. Rationals are written as text, arrays with
their type, so nothing is rounded. What is large and comes again and again (`travels_once`: the polygons of districts)
is written where it comes first in the text, and is `{"again": n}` afterwards, the n-th of its kind.
"""

from hazemap.codec.allowed_types import CLOSED_LIST, UNIONS
from hazemap.codec.deserialize import from_json, loads, returns
from hazemap.codec.json_parser import FILE, MESSAGE, Limits, parsed
from hazemap.codec.serialize import digest, dumps, pieces, to_json

__all__ = [
    "CLOSED_LIST",
    "FILE",
    "MESSAGE",
    "UNIONS",
    "Limits",
    "digest",
    "dumps",
    "from_json",
    "loads",
    "parsed",
    "pieces",
    "returns",
    "to_json",
]
