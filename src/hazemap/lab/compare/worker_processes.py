"""Worker processes that measure trials, one at a time each, until none are left."""

import os
import signal
import threading
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context
from typing import Any, NamedTuple

from hazemap.errors import HazemapError
from hazemap.lab.compare.trial_key import Trial
from hazemap.lab.compare.trial_settings import Place, Row

ONE_THREAD = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""A process is one core's: with more threads it would take others' time, and its own could not be compared."""


class WorkerTask(NamedTuple):
    """A trial, and the digest of the map that it is about."""

    key: str
    trial: Trial
    digest: str


class Done(NamedTuple):
    """What became of a task: its scores, or why there are none."""

    task: WorkerTask
    row: Row | None
    failure: str = ""


@dataclass
class _Worker:
    """A process, this side of the pipe to it, the maps it has been sent, and what it is at."""

    process: Any
    pipe: Any
    maps: set[str]
    task: WorkerTask


def measured(tasks: Sequence[WorkerTask], maps: dict[str, Place], jobs: int) -> Generator[Done, None, None]:
    """Every task once, in whatever order they end, by at most `jobs` processes.

    A process is sent a map once. It ends when this one does, however that ends. One that dies at a trial (out of
    memory, say) is replaced, and the trial has failed. Whoever stops listening stops them all.
    """
    todo, workers = list(reversed(tasks)), list[_Worker]()
    try:
        while todo or workers:
            while todo and len(workers) < jobs:
                workers.append(_started(todo.pop(), maps))
            ready = connection.wait([worker.pipe for worker in workers])
            for worker in [worker for worker in workers if worker.pipe in ready]:
                done = _heard(worker)
                if todo and worker.process.is_alive():
                    _send(worker, todo.pop(), maps)
                else:
                    workers.remove(worker)
                    _ended(worker)
                yield done
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            _ended(worker)


def _started(task: WorkerTask, maps: dict[str, Place]) -> _Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs,), daemon=True)
    with _one_thread(), _deaf():
        process.start()
    theirs.close()  # so that either side notices when the other is gone
    worker = _Worker(process, ours, set(), task)
    _send(worker, task, maps)
    return worker


def _send(worker: _Worker, task: WorkerTask, maps: dict[str, Place]) -> None:
    worker.task = task
    with suppress(OSError):  # a process that has died is noticed when it is listened to
        worker.pipe.send((task, None if task.digest in worker.maps else maps[task.digest]))
        worker.maps.add(task.digest)


def _heard(worker: _Worker) -> Done:
    try:
        return Done(worker.task, *worker.pipe.recv())
    except (EOFError, OSError):
        worker.process.join(10)
        code = worker.process.exitcode
        return Done(worker.task, None, f"its process ended with {code}: was there too little memory?")


def _ended(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.join(10)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that start now use one thread."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that start now do not hear Ctrl-C: whoever started them does, and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def work(pipe: Any) -> None:
    """What a process does: a trial after the other, until the pipe closes."""
    maps, warm = dict[str, Place](), set[tuple[str, str]]()
    while True:
        try:
            task, place = pipe.recv()
        except (EOFError, OSError):
            return
        if place is not None:
            maps[task.digest] = place
        answer = attempted(task.trial, maps[task.digest], warm)
        try:
            pipe.send(answer)
        except OSError:
            return


def attempted(trial: Trial, place: Place, warm: set[tuple[str, str]]) -> tuple[Row | None, str]:
    """The scores of a trial, or why it has none; `warm` are the kinds of trials that this process has seen before."""
    try:
        kind = (type(trial.setting).__name__, trial.method.spelled)
        if kind not in warm:  # loops are compiled, or read from the disk, in nobody's time
            warm.add(kind)
            with suppress(HazemapError):
                trial.setting.measured(place.small(), trial.method, trial.epsilon, 0)
        return trial.setting.measured(place, trial.method, trial.epsilon, trial.repetition), ""
    except HazemapError as error:
        return None, f"{type(error).__name__}: {error}"
    except Exception as error:  # a bug of a method: the others go on, and the report says where it is
        where = traceback.extract_tb(error.__traceback__)[-1]
        return None, f"{type(error).__name__}: {error} ({where.filename}, line {where.lineno})"
