"""A task on file: what each of its parties must know, and nothing more.

Whoever sets a task up makes one file a party and hands each over on a way that nobody else reads. `leader` and `helper`
hold the key that both verify by, which clients must not know; secrets that a party only has to recognise are there as
hashes. An aggregator takes tasks while it runs, from whoever shows the token of its folder, and keeps each as a file
there (`TaskShelf`); when a task is over, its file goes too.
"""

import logging
from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import time
from typing import Any, Final

from hazemap.errors import CodecError, FileError, InputError
from hazemap.federated.protocols.dap.basic_types import TASK_ID, VERSIONS, DapRole
from hazemap.federated.protocols.dap.resource_paths import id_text, read_id
from hazemap.federated.protocols.dap.task import MOST_REPORTS, DapTask
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfig
from hazemap.federated.service.access_tokens import kept
from hazemap.files.atomic_write import whole
from hazemap.files.text_files import read_text, toml_table
from hazemap.vdaf.hpke import HpkeKeyPair

LARGEST: Final = 1 << 20
"""Letters of a file."""
_KEY = 32
ROLES: Final = {"leader": DapRole.LEADER, "helper": DapRole.HELPER}


@dataclass(frozen=True)
class TaskFile:
    """A task as one party knows it. Who has no need of a field has None."""

    party: str
    task: DapTask
    verify_key: bytes | None = field(default=None, repr=False)
    collector: HpkeConfig | None = None
    collector_key: bytes | None = field(default=None, repr=False)
    peer_token: str | None = field(default=None, repr=False)
    """the leader's, to show to the helper; the collector's, to show to the leader"""
    accepted_token: bytes | None = field(default=None, repr=False)
    """hash of the token that the helper takes from the leader, or the leader from the collector"""
    report_expiry: int | None = None
    open_reports: int | None = None
    """a declaration: whoever has the task's id may upload, as often as they like, until so many reports are stored"""

    @property
    def admits(self) -> str:
        """Who may report, in the words of a log."""
        admission = self.task.admission
        if admission is None:
            return f"open to {self.open_reports or 0:,} reports of whoever sends them"
        return f"for {admission.reports:,} reports, by credentials of issuer {admission.issuer.hex()[:16]}"

    def to_toml(self) -> str:
        """The file's text."""
        values: dict[str, str | int | None] = {
            "party": self.party,
            "version": self.task.version.tag.decode(),
            "task_id": id_text(self.task.id),
            "configuration": id_text(self.task.configuration),
            "verify_key": _text(self.verify_key),
            "collector_hpke_config": None if self.collector is None else id_text(self.collector.to_bytes()),
            "collector_private_key": _text(self.collector_key),
            "token": self.peer_token,
            "accepted_token_sha256": _text(self.accepted_token),
            "report_expiry_seconds": self.report_expiry,
            "open_reports": self.open_reports,
        }
        lines = [f"# A task of DAP, as its {self.party} knows it."]
        for name, value in values.items():
            if value is not None:
                lines.append(f"{name} = {value}" if isinstance(value, int) else f'{name} = "{value}"')
        return "\n".join(lines) + "\n"

    @classmethod
    def read(cls, path: Path) -> "TaskFile":
        """The task in a file; `FileError` for one that is none."""
        text = read_text(path, "the task in", advice="see that the file is there, and yours")
        try:
            return cls.from_toml(text)
        except (InputError, CodecError) as error:
            raise FileError(f"{path} holds no task: {error}") from error

    @classmethod
    def from_toml(cls, text: str) -> "TaskFile":
        """What `to_toml` wrote; `InputError` or `CodecError` for anything else."""
        data = toml_table(text, "a task", LARGEST)
        unknown = data.keys() - _FIELDS.keys()
        wrong = [name for name, value in data.items() if name in _FIELDS and type(value) is not _FIELDS[name]]
        missing = [name for name in ("party", "version", "task_id", "configuration") if name not in data]
        if unknown or wrong or missing:
            raise InputError(
                f"the fields {', '.join(sorted([*unknown, *wrong, *missing]))!s:.200} are unknown or missing"
            )
        if data["version"] not in VERSIONS:
            raise InputError(f"the version is one of {', '.join(VERSIONS)}")
        configuration = _bytes(data, "configuration") or b""
        task = DapTask.read(read_id(data["task_id"], TASK_ID), configuration, VERSIONS[data["version"]])
        config = _bytes(data, "collector_hpke_config")
        found = cls(
            data["party"],
            task,
            _bytes(data, "verify_key"),
            None if config is None else HpkeConfig.from_bytes(config),
            _bytes(data, "collector_private_key"),
            data.get("token"),
            _bytes(data, "accepted_token_sha256"),
            data.get("report_expiry_seconds"),
            data.get("open_reports"),
        )
        needed = _NEEDED.get(found.party)
        if needed is None or any(getattr(found, name) is None for name in needed):
            raise InputError(f"a task's party is one of {', '.join(_NEEDED)}, and its file has all that this one needs")
        found._check_open()
        return found

    def _check_open(self) -> None:
        """InputError unless an aggregator's task says who may upload to it."""
        declared = self.open_reports is not None
        if declared and (self.party not in ROLES or not 1 <= (self.open_reports or 0) <= MOST_REPORTS):
            raise InputError(f"a leader's or helper's task is open to 1 to {MOST_REPORTS:,} reports: see open_reports")
        if self.party in ROLES and declared is not (self.task.admission is None):
            raise InputError(
                "a task names who gives out credentials for its reports, or else says to how many reports it is open, "
                "whoever sends them: open_reports = 100000"
            )

    def write(self, path: Path) -> None:
        """Into a new file that only its owner may read."""
        if path.exists():
            raise FileError(f"{path} is there already: name another folder")
        with whole(path) as part:
            part.chmod(0o600)
            part.write_text(self.to_toml())


_FIELDS: Final[dict[str, type]] = {
    "party": str,
    "version": str,
    "task_id": str,
    "configuration": str,
    "verify_key": str,
    "collector_hpke_config": str,
    "collector_private_key": str,
    "token": str,
    "accepted_token_sha256": str,
    "report_expiry_seconds": int,
    "open_reports": int,
}
_NEEDED: Final = {
    "leader": ("verify_key", "collector", "peer_token", "accepted_token"),
    "helper": ("verify_key", "collector", "accepted_token"),
    "collector": ("collector", "collector_key", "peer_token"),
    "client": (),
}


def new_task_files(
    task: DapTask, draw: Callable[[int], bytes], report_expiry: int | None = None, open_reports: int | None = None
) -> dict[str, TaskFile]:
    """One file a party for a new task, with fresh keys and tokens; `draw` gives fresh random bytes.

    A task without an issuer of credentials is open to so many reports: see `TaskFile.open_reports`.
    """
    from hazemap.federated.aggregator.hpke_key_ring import SUITE

    pair = HpkeKeyPair.derived(SUITE.kem, draw(_KEY))
    config = HpkeConfig(draw(1)[0], SUITE.kem, SUITE.kdf, SUITE.aead, pair.public)
    key = draw(vdaf_of(task).VERIFY_KEY_SIZE)
    leaders, collectors = (id_text(draw(_KEY)) for _ in range(2))
    terms = report_expiry, open_reports
    return {
        "leader": TaskFile("leader", task, key, config, None, leaders, kept(collectors), *terms),
        "helper": TaskFile("helper", task, key, config, None, None, kept(leaders), *terms),
        "collector": TaskFile("collector", task, None, config, pair.private, collectors),
        "client": TaskFile("client", task),
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else id_text(value)


def _bytes(data: dict[str, Any], name: str) -> bytes | None:
    text = data.get(name)
    if text is None:
        return None
    try:
        found = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise InputError(f"{name} is base64url without padding") from None
    if id_text(found) != text:
        raise InputError(f"{name} is base64url without padding")
    return found


KEPT: Final = 14 * 86_400
"""Seconds after its end for which a task is served whose file does not say after how many its reports expire."""


def retention(file: TaskFile) -> int:
    """Seconds after its end for which a task is served: as long as its last reports, and what was made of them.

    >>> KEPT // 86_400
    14
    """
    return KEPT if file.report_expiry is None else file.report_expiry


def over(file: TaskFile, now: int) -> bool:
    """Whether a task's time is over, and the time for which it is kept after that. One without an end is never over."""
    interval = file.task.interval
    return interval is not None and interval.end * file.task.time_precision + retention(file) < now


log = logging.getLogger("hazemap.federated.aggregator")

TOKEN_FILE: Final = "provisioning.token"  # noqa: S105 - a name
"""In an aggregator's folder: what lets others give it tasks."""
MOST: Final = 10_000
"""Tasks of one folder."""


class TaskShelf:
    """The folder of an aggregator's tasks. `url` is its own address, which every task must name in its role.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     TaskShelf(Path(folder) / "tasks", "leader", "https://one.example/").files()
    ()
    """

    def __init__(self, folder: Path, role: str, url: str, clock: Callable[[], float] = time) -> None:
        self._folder, self._role, self._url, self._clock, self._lock = folder, role, url, clock, Lock()

    def files(self) -> tuple[TaskFile, ...]:
        """All tasks that are here, over or not: in the order of their ids. One that cannot be read is left out."""
        found = []
        for path in self._paths():
            try:
                found.append(TaskFile.read(path))
            except FileError as error:
                log.error("%s: it is not served", error)
        return tuple(found)

    def remove(self, file: TaskFile) -> None:
        """Forget the file of a task that is over."""
        with self._lock:
            self._path(file).unlink(missing_ok=True)

    def take(self, body: bytes, begin: Callable[[TaskFile], None]) -> bool:
        """Keep a task, then begin it; False where it is there already, in the same words.

        `InputError` or `CodecError` for what is no task of this aggregator, or contradicts one that it has.
        """
        try:
            text = body.decode()
        except UnicodeDecodeError:
            raise CodecError("a task is a text in TOML, as `hazemap collector task` writes it") from None
        if len(text) > LARGEST:
            raise CodecError(f"a task has at most {LARGEST:,} letters")
        file = TaskFile.from_toml(text)
        own = file.task.leader if self._role == "leader" else file.task.helper
        if file.party != self._role or own != self._url:
            raise InputError(f"this aggregator is the {self._role} at {self._url}; the task is for another")
        if over(file, int(self._clock())):
            raise InputError("the time of this task is over, and all of it is forgotten: a new task has another id")
        with self._lock:
            return self._kept(file, begin)

    def _paths(self) -> list[Path]:
        return sorted(path for path in self._folder.glob("*.toml") if not path.name.startswith("."))  # half-made ones

    def _path(self, file: TaskFile) -> Path:
        return self._folder / f"{id_text(file.task.id)}.toml"

    def _kept(self, file: TaskFile, begin: Callable[[TaskFile], None]) -> bool:
        path = self._path(file)
        if path.exists():
            if TaskFile.read(path) != file:
                raise InputError("a task of this id is another here: a task never changes, so give the new one its own")
            begin(file)
            return False
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if len(self._paths()) >= MOST:
            raise InputError(f"this aggregator has {MOST:,} tasks already: its operator must remove old ones")
        file.write(path)
        try:
            begin(file)
        except (
            InputError,
            CodecError,
        ):  # it cannot be served: it must not keep the others from being, at the next start
            path.unlink()
            raise
        level = logging.INFO if file.open_reports is None else logging.WARNING
        log.log(level, "task %s is taken, as its %s: %s", id_text(file.task.id), file.party, file.admits)
        return True
