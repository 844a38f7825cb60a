"""What a server asks one device to do next: a message of a session, and with the first of them its task."""

import base64
import math
import re
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from hashlib import sha256

from hazemap.codec import MESSAGE, Limits, loads, parsed
from hazemap.errors import CodecError
from hazemap.federated.device.account.account_head import HEAD
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.policy.query_description import describe_query
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.federated.trust.device_tasks import KNOWN, Task
from hazemap.federated.trust.report_carriers import ANNOUNCED

ENVELOPE = Limits(length=1 << 26, items=1 << 10, work=0, depth=2)
"""The work of a server: a few fields, one of them a message in base64 and one a task as text."""

FIELDS = ("session", "stage", "task", "message", "until")
_SESSION = re.compile("[0-9a-f]{64}")
_HEAD = re.compile(f"[0-9a-f]{{{2 * HEAD}}}")
_UNTIL = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)

LONGEST_WAIT = 7 * 86_400
"""Seconds: whatever a server says, a session is over after a week."""


@dataclass(frozen=True)
class ServerTask:
    """A message of a session, and with the first of them the task as JSON text.

    `head` is what its server keeps of the device's account (`account_head`): nothing where it is not written as one,
    for a device goes on without.

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
    head: bytes = b""

    @classmethod
    def from_json(cls, text: str | bytes) -> "ServerTask":
        """What the server wrote; `CodecError` for anything else."""
        try:
            found = parsed(text, ENVELOPE)
            session, stage, task, message, until = (found[name] for name in FIELDS)
            head = found.get("head")
            plain = base64.b64decode(message, validate=True)
            fits = (
                _SESSION.fullmatch(session) and _UNTIL.fullmatch(until) and base64.b64encode(plain).decode() == message
            )
            ends = datetime.fromisoformat(until).timestamp()
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise CodecError(f"the server's work is not written as agreed: {type(error).__name__}") from None
        if not fits or type(stage) is not int or not ANNOUNCED <= stage <= Stage.UNMASK:
            raise CodecError("the server's work is not written as agreed: a field is written in another way")
        if not (task is None or isinstance(task, str)):
            raise CodecError("the server's work is not written as agreed: a field has another type")
        known = isinstance(head, str) and _HEAD.fullmatch(head)
        return cls(bytes.fromhex(session), stage, task, plain, ends, bytes.fromhex(head) if known else b"")

    def ends(self, now: float) -> float:
        """When the session is over at the latest."""
        return min(self.until if math.isfinite(self.until) else now, now + LONGEST_WAIT)


MOST_TASKS, MOST_LETTERS = 32, 1 << 25
"""Tasks that a process keeps as it has read them, and their letters together: the latest one is always kept."""
MOST_JUDGED = 64


@dataclass(eq=False)
class ParsedTask:
    """A task as it was read from its text, and what was found out about it since; `judged` by rules and terms."""

    task: Task
    judged: dict[tuple[Policy, bytes], str | None] = field(default_factory=dict)

    @cached_property
    def words(self) -> str:
        """What a map's task asks, in words."""
        return str(describe_query(self.task))

    def refusal(self, policy: Policy, terms: bytes) -> str | None:
        """The policy's word on a session of these terms, the same for all devices of a shard that share it."""
        key = policy, terms
        if key not in self.judged:
            if len(self.judged) >= MOST_JUDGED:
                self.judged.clear()
            self.judged[key] = policy.refusal(self.task, SessionParameters.from_bytes(terms))
        return self.judged[key]


class ParsedTaskCache:
    """The latest tasks by their texts; many devices of a process are sent the same one.

    By text: things that are equal, such as 1 and True, are not always the same. Tasks may have 32 MB, so it is their
    letters that are bounded.

    >>> ParsedTaskCache().letters
    0
    """

    def __init__(self) -> None:
        self._tasks: OrderedDict[str, ParsedTask] = OrderedDict()
        self.letters = 0

    def find(self, text: str) -> ParsedTask:
        """The task in a JSON text; `CodecError` where it holds none."""
        if text in self._tasks:
            self._tasks.move_to_end(text)
            return self._tasks[text]
        task: Task = loads(text, KNOWN, Task, MESSAGE)
        if sha256(text.encode()).digest() != task.digest:
            raise CodecError("a task is written in one way: keys sorted, in ASCII, without spaces")
        found = ParsedTask(task)
        self._tasks[text], self.letters = found, self.letters + len(text)
        while len(self._tasks) > 1 and (len(self._tasks) > MOST_TASKS or self.letters > MOST_LETTERS):
            oldest, _ = self._tasks.popitem(last=False)
            self.letters -= len(oldest)
        return found


TASKS = ParsedTaskCache()
"""Of this process."""


def parse_task(text: str) -> Task:
    """The task in a JSON text."""
    return TASKS.find(text).task
