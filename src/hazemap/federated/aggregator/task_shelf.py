"""Tasks that an aggregator takes while it runs, from whoever shows the token of its folder: each is a file there.

When a task is over (`task_records.over`) its file goes, too.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from time import time
from typing import Final

from hazemap.errors import CodecError, FileError, InputError
from hazemap.federated.aggregator.task_file import LARGEST, TaskFile
from hazemap.federated.aggregator.task_records import over
from hazemap.federated.protocols.dap.resource_paths import id_text

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
