"""Names of tables in a catalogue of Spark: `spark:lake.db.visits`, without secrets.

A name is written down: in the specification, in a journal, in messages, in a shell's history. Spark finds its cluster
and its credentials by its own means.
"""

import re
from typing import Any

from hazemap.errors import InputError

SCHEME = "spark:"
_PART = r"[^\W\d]\w*|\d\w*|`(?:[^`\x00-\x1f]|``)+`"
_NAME = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")
LONGEST = 1000


def is_spark(source: Any) -> bool:
    """Whether this names a table of Spark, well written or not; a path never begins so.

    >>> is_spark("spark:lake.db.visits"), is_spark("spark.csv")
    (True, False)
    """
    return isinstance(source, str) and source.casefold().startswith(SCHEME)


def spark_table(source: str) -> str:
    """The name of a table as Spark's SQL has it; `InputError` for anything else.

    >>> spark_table("spark:lake.db.`my visits`")
    'lake.db.`my visits`'
    """
    name = source[len(SCHEME) :]
    if re.search(r"//.*@", name) or re.search(r"[?&].*=", name):
        raise InputError("the name of a table of Spark holds no password, because shells, lists and logs keep it")
    if len(name) > LONGEST or not _NAME.fullmatch(name):
        raise InputError(
            "a table of Spark is named spark:visits, spark:catalog.schema.visits, or, with other signs than letters, "
            "digits and _, spark:`my visits`. A query is none: make a view of it, or pass a DataFrame in Python"
        )
    return name


def last_name(source: str) -> str:
    """What a table of Spark is called, without its schema.

    >>> last_name("spark:lake.db.`my visits`")
    'my visits'
    """
    last = str(re.findall(_PART, spark_table(source))[-1])
    return last[1:-1].replace("``", "`") if last.startswith("`") else last
