"""The journal of a run: what was paid and answered, on disk before anyone sees it.

One file a run, in a folder beside the ledger: lines of JSON, each with its checksum, each on the disk before the run
goes on. They hold the specification, the algorithm, whose privacy it costs, and the noisy answers; never a seed of
noise, a row or an exact sum. Whoever reads a journal learns no more than whoever reads the release.

A line that says *what is asked* is on the disk, and room for its answer is taken, before the answer is drawn; the
answer is on the disk before it is given to the algorithm. So of every question a journal says whether it was not yet
asked, answered, or *asked without an answer kept*: only this last one has to be paid again (docs/how-to/recover.md).
"""

import base64
import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.first_look import Stop
from hazemap.codec import digest
from hazemap.errors import CodecError, FileError, TranscriptMismatch
from hazemap.files.atomic_write import make_folder, sync
from hazemap.privacy.budget import PrivacyAmount
from hazemap.privacy.ledger_records import Charge
from hazemap.privacy.statement import amount_from_json, amount_to_json
from hazemap.queries.noisy_queries import Answer, Question

FORMAT = 1

ROOM = 1 << 16
"""Bytes that are taken for the words around an answer."""

UNKNOWN = 5 << 20
"""Room is taken for this many numbers if their number is unknown: some 60 MB."""

_SUM = 16  # hexadecimal digits of a line's checksum


class Stored(NamedTuple):
    """A question's digest and its answer, which is None where it was asked but no answer kept."""

    question: str
    answer: Answer | None


@dataclass
class Journal:
    """The journal of one run, locked by the process that runs it.

    `head` is what the run is about. `stored` are its questions so far; `again` the extra charges of questions that
    were asked once more; `ended` whether the algorithm came to its end. `totals` are what the data set's people had
    paid in all with each charge of the run; `stopped` why the run did not go on after its look, if it did not.
    """

    path: Path
    head: Mapping[str, Any]
    stored: list[Stored] = field(default_factory=list)
    again: list[int] = field(default_factory=list)
    ended: bool = False
    totals: dict[int, PrivacyAmount] = field(default_factory=dict)
    stopped: Stop | None = None
    _file: FileIO | None = None
    _end: int = 0

    @classmethod
    def begun(cls, folder: Path, run: str, head: Mapping[str, Any]) -> "Journal":
        """A new journal, on the disk; `FileError` where it cannot be written, and then nothing may be charged."""
        path, part = folder / f"{run}.journal", folder / f".{run}.part"
        try:
            make_folder(folder, 0o700)
            journal = cls(path, head, _file=_opened(part, os.O_CREAT | os.O_EXCL))
            try:
                fcntl.flock(journal._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                journal._write({"journal": FORMAT, **head})
                part.rename(path)  # it is locked, and whole, from the first instant that it is there
                sync(folder)
            except BaseException:
                part.unlink(missing_ok=True)
                path.unlink(missing_ok=True)
                journal.close()
                raise
        except OSError as error:
            raise _refused(path, error) from error
        return journal

    @classmethod
    def reopened(cls, path: Path) -> "Journal":
        """A journal that an earlier process left; `FileError` while that is still running, and for a damaged one."""
        try:
            file = _opened(path)
        except PermissionError as error:
            raise FileError(f"the journal {path} belongs to another user: recover it as that user") from error
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunningJournal(f"the run of {path.name} is still going on: wait until it ends") from None
            journal = cls._recalled(path, file.readall(), file)
            # half a line of a write that was cut off, and room that was taken
            os.ftruncate(journal._handle, journal._end)
            return journal
        except BaseException:
            file.close()
            raise

    @classmethod
    def seen(cls, path: Path) -> "Journal":
        """Read a journal at this instant, even while another process writes it: for lists."""
        return cls._recalled(path, path.read_bytes())

    @classmethod
    def _recalled(cls, path: Path, content: bytes, file: FileIO | None = None) -> "Journal":
        """The journal that these bytes are; `FileError` for bytes that no run wrote, whatever is wrong with them."""
        try:
            lines, end = _lines(path, content)
            journal = cls(path, _head(path, lines), _file=file, _end=end)
            for line in lines[1:]:
                journal._recall(line)
        except (CodecError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise _changed(path) from error
        return journal

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let others have it."""
        if self._file:
            self._file.close()

    @property
    def _handle(self) -> int:
        if self._file is None:
            raise ValueError("a journal that was only looked at cannot be written")
        return self._file.fileno()

    @property
    def total(self) -> PrivacyAmount:
        """What the data set's people had paid in all with the last charge of this run."""
        return self.totals[max(self.totals)]

    @property
    def open(self) -> str | None:
        """The digest of a question that was asked but of which no answer was kept."""
        return self.stored[-1].question if self.stored and self.stored[-1].answer is None else None

    @property
    def answered(self) -> int:
        """The number of stored answers."""
        return sum(each.answer is not None for each in self.stored)

    def paid(self, charge: Charge) -> None:
        """Write down what the data set's people have paid in all with a charge of this run."""
        if charge.total is not None:
            line = {"paid": charge.id, "total": amount_to_json(charge.total)}
            self._append(line)
            self._recall(line)

    def stop(self, why: Stop) -> None:
        """Write down that the run ended after its look, and why."""
        line = {"stopped": asdict(why)}
        self._append(line)
        self._recall(line)

    def ask(self, question: Question) -> None:
        """Write down that this is asked now, and take the room that its answer needs, before it is drawn.

        So whether an answer can be kept does not depend on what the answer is (of one that grows without a bound, up to
        `UNKNOWN` numbers). `FileError` where there is no room: then nothing was asked.
        """
        size = UNKNOWN if question.size is None else question.size
        room = 2 * ROOM + 12 * size  # base64 of 8 bytes each, and a little
        try:
            os.posix_fallocate(self._handle, self._end, room)
        except OSError as error:
            raise _refused(self.path, error, room) from error
        asked = digest(question)
        self._append({"asks": asked})
        self._recall({"asks": asked})

    def answer(self, answer: Answer) -> None:
        """Keep the answer to what was asked; when this returns it may be seen."""
        self._append(
            {
                "answers": self.answered,
                "sums": _packed(answer.sums.astype("<i8")),
                "stddev": _packed(answer.stddev.astype("<f8")),
                "kurtosis": answer.kurtosis,
                "people": answer.people,
                "skewness": answer.skewness,
                "chances": answer.chances,
            }
        )
        os.ftruncate(self._handle, self._end + ROOM)  # what it did not need, the file may
        self.stored[-1] = Stored(self.stored[-1].question, answer)

    def asks_again(self, charge: int) -> None:
        """Write down that the question without an answer was paid once more, with this charge."""
        self._append({"again": charge})
        self._recall({"again": charge})

    def end(self) -> None:
        """Write down that the algorithm came to its end: no question is left."""
        self._append({"ended": True})
        self.ended = True

    def remove(self) -> None:
        """The file is in its place, and the ledger knows of it: nothing is left to be recovered."""
        self.path.unlink(missing_ok=True)
        self.close()

    def _recall(self, line: Mapping[str, Any]) -> None:
        if "asks" in line:
            self.stored.append(Stored(line["asks"], None))
        elif "again" in line:
            self.again.append(line["again"])
            self.stored.pop()
        elif "paid" in line:
            self.totals[line["paid"]] = amount_from_json(line["total"])
        elif "stopped" in line:
            self.stopped = Stop(**line["stopped"])
        elif "ended" in line:
            self.ended = True
        elif "answers" in line and self.open is not None and line["answers"] == self.answered:
            sums, stddev = _unpacked(line["sums"], "<i8"), _unpacked(line["stddev"], "<f8")
            chances = line.get("chances")  # journals of older versions have neither these nor a skewness
            answer = Answer(
                sums.astype(np.int64),
                stddev.astype(np.float64),
                line["kurtosis"],
                line["people"],
                line.get("skewness"),
                None if chances is None else (chances[0], chances[1]),
            )
            self.stored[-1] = Stored(self.stored[-1].question, answer)
        else:
            raise _changed(self.path)

    def _append(self, line: Mapping[str, Any]) -> None:
        try:
            self._write(line)
        except OSError as error:
            raise _refused(self.path, error) from error

    def _write(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, separators=(",", ":"), allow_nan=False).encode()
        rest = memoryview(_checksum(text) + b" " + text + b"\n")
        at = self._end
        while rest:
            written = os.pwrite(self._handle, rest, at)
            at, rest = at + written, rest[written:]
        os.fsync(self._handle)
        self._end = at


class RunningJournal(FileError):
    """The run of a journal is still going on."""


def discard(part: Path) -> None:
    """Remove a journal that was never whole, unless a process is writing it at this instant."""
    with suppress(FileNotFoundError, BlockingIOError), _opened(part) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.unlink()


def check(stored: Stored, question: Question) -> Answer | None:
    """The stored answer to this question; `TranscriptMismatch` where another question was answered."""
    if digest(question) != stored.question:
        raise TranscriptMismatch(
            "the journal holds the answer to another question than this version of hazemap asks: recover it with the "
            "version that ran"
        )
    return stored.answer


def _opened(path: Path, flags: int = 0) -> FileIO:
    """A file that closes itself, and ends its lock, when no reference is left, even if its opening is interrupted."""
    return FileIO(path, "r+", opener=lambda name, given: os.open(name, given | flags, 0o600))


def _lines(path: Path, content: bytes) -> tuple[list[dict[str, Any]], int]:
    """The whole lines of a journal, and where they end; a line that was cut off may only be the last."""
    lines, at = [], 0
    content = content.rstrip(b"\0")
    while at < len(content):
        end = content.find(b"\n", at)
        line = content[at : end if end >= 0 else len(content)]
        if end < 0 or line[:_SUM] != _checksum(line[_SUM + 1 :]):
            if 0 <= end < len(content) - 1 and content[end + 1 :].strip(b"\0"):
                raise FileError(f"the journal {path} is damaged in the middle: bring it back from a backup")
            break
        lines.append(json.loads(line[_SUM + 1 :]))
        at = end + 1
    return lines, at


def _head(path: Path, lines: list[dict[str, Any]]) -> dict[str, Any]:
    if not lines or "journal" not in lines[0]:
        raise FileError(f"{path} is no journal of hazemap's, or is damaged")
    if lines[0]["journal"] != FORMAT:
        raise FileError(f"{path} was written by another version of hazemap: recover it with that one")
    return {name: value for name, value in lines[0].items() if name != "journal"}


def _checksum(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:_SUM].encode()


def _packed(array: NDArray[Any]) -> str:
    """Bytes as text: never compressed, so that their number does not depend on what they are."""
    return base64.b64encode(array.tobytes()).decode()


def _unpacked(text: str, kind: str) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def _changed(path: Path) -> FileError:
    return FileError(f"the journal {path} holds a line that no run wrote: it was changed by hand")


def _refused(path: Path, error: OSError, room: int = ROOM) -> FileError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    way = f"make room on its disk, {room / 1e6:.1f} MB or more"
    if not full:
        way = "make its folder writable for you, or name another with HAZEMAP_HOME"
    return FileError(f"the journal {path} could not be written ({error.strerror or error}): {way}")
