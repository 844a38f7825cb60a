"""What a server asks one device to do next: a message of a session, and with the first of them its task."""

import base64
import math
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from hazemap.codec import MESSAGE, Limits, loads, parsed
from hazemap.errors import CodecError
from hazemap.trust.device_tasks import KNOWN, Task

ENVELOPE = Limits(length=1 << 26, items=1 << 10, work=0, depth=2)
"""The work of a server: a few fields, one of them a message in base64 and one a task as text."""

LONGEST_WAIT = 7 * 86_400
"""Seconds: whatever a server says, a session is over after a week."""


@dataclass(frozen=True)
class ServerTask:
    """A message of a session, and with the first of them the task as JSON text.

    >>> import json
    >>> fields = {"session": "00" * 32, "stage": 1, "task": None, "message": "", "until": "2026-01-02T03:04:05Z"}
    >>> ServerTask.from_json(json.dumps(fields)).stage
    1
    """

    session: bytes
    stage: int
    task: str | None = field(repr=False)
    message: bytes = field(repr=False)
    until: float

    @classmethod
    def from_json(cls, text: str | bytes) -> "ServerTask":
        """What the server wrote; `CodecError` for anything else."""
        try:
            found = parsed(text, ENVELOPE)
            session, message = bytes.fromhex(found["session"]), base64.b64decode(found["message"], validate=True)
            stage, task, until = found["stage"], found["task"], datetime.fromisoformat(found["until"]).timestamp()
        except (ValueError, KeyError, TypeError, OverflowError, OSError) as error:
            raise CodecError(f"the server's work is not written as agreed: {type(error).__name__}") from None
        if len(session) != 32 or type(stage) is not int or not (task is None or isinstance(task, str)):
            raise CodecError("the server's work is not written as agreed: a field has another type")
        return cls(session, stage, task, message, until)

    def ends(self, now: float) -> float:
        """When the session is over at the latest."""
        return min(self.until if math.isfinite(self.until) else now, now + LONGEST_WAIT)


@lru_cache(maxsize=32, typed=True)
def task_of(text: str) -> Task:
    """The task in a JSON text; many devices of a process are sent the same one.

    Caches know tasks by their text: things that are equal, such as 1 and True, are not always the same.
    """
    task: Task = loads(text, KNOWN, Task, MESSAGE)
    return task
