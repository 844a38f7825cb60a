"""What has been measured: a line for each finished trial, which is there whole or not at all."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hazemap.compare.trial_settings import Row
from hazemap.errors import FileError

NAME = "trials.jsonl"


class ResultsStore:
    """Rows of results by the key of their trial, in a folder; one process at a time may add to it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with opened(Path(folder)) as store:
    ...         store.add("a", {"mre": 0.5})
    ...     with opened(Path(folder)) as again:
    ...         again.rows
    {'a': {'mre': 0.5}}
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.rows: dict[str, Row] = {}
        kept = 0
        for line in file:
            if not line.endswith(b"\n"):
                break  # the line that was being written when the power went
            try:
                found = json.loads(line)
                self.rows[found["key"]] = found["row"]
            except (ValueError, KeyError, TypeError) as error:
                raise FileError(f"{file.name} is damaged at byte {kept}: remove it to measure all again") from error
            kept += len(line)
        file.seek(kept)
        file.truncate()

    def add(self, key: str, row: Row) -> None:
        """One more finished trial: on the disk when this returns."""
        self._file.write(json.dumps({"key": key, "row": row}, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.rows[key] = row


@contextmanager
def opened(folder: Path, afresh: bool = False) -> Iterator[ResultsStore]:
    """The store of a folder, which is made if need be; `afresh` forgets what was measured before.

    `FileError` if another process is at work in this folder, or if it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / NAME).open("a+b")
    except OSError as error:
        raise FileError(f"{folder} cannot be written to ({error.strerror}): choose another folder") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FileError(
                f"another comparison is at work in {folder}: wait for it, or choose another folder"
            ) from error
        if afresh:
            file.truncate(0)
        file.seek(0)
        yield ResultsStore(file)
