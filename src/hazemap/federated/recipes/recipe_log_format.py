"""The public log of recipes, as lines: which recipe was sent to how many devices, in which round of which study.

A server writes it before it sends (`federated.server.recipe_log`); a device reads it before it answers
(`federated.device.recipes.public_recipe_log`), and so can anybody.
"""

from collections.abc import Iterable

from hazemap.codec import Limits
from hazemap.federated.protocols.chained_log import LogFormat, LogHead

FIELDS = ("seq", "time", "kind", "name", "version", "sha256", "study", "round", "people", "task", "previous")
FORMAT = LogFormat("the log of recipes", b"hazemap recipes 1", FIELDS, Limits(length=4_096, items=32, work=0, depth=1))
"""`kind` is recipe, policy or stop; `sha256` the digest of what is named; `task` that of what devices are sent."""


def checked(lines: Iterable[str]) -> LogHead:
    """Check the log's JSON lines from its beginning; `CodecError` names the first entry that does not follow.

    >>> checked([]).entries
    0
    """
    return FORMAT.checked(lines)
