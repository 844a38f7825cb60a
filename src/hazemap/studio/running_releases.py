"""Releases that are being made: one at a time of a data set, each once, however often it is asked for.

A run is a thread of this process: if the process ends, so do its runs, and what they paid for can be recovered. One
that is told to stop does so where it next tells how far it is: before its charge that costs nothing, and after it the
answers that it has are kept, as if the process had ended there.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from hazemap.errors import HazemapError, InputError, Stopped, warnings_told
from hazemap.execution.run import Progress
from hazemap.federated.service.access_tokens import fresh
from hazemap.studio.refusals import refused, saying, told_of

KEPT = 200
"""Runs that are remembered; the oldest that is over goes."""
TOGETHER = 2
"""So many runs at one time: each takes a processor and memory."""

FRUITLESS = ("failed", "stopped")
"""States after which the same may be begun again."""

_warned: ContextVar[list[str] | None] = ContextVar("warned", default=None)


@dataclass(eq=False)
class Run:
    """One run. `part` is what is done of what it is `doing` now, 0 to 1, where that is known.

    `state` is running, done, failed, stopped by the steward, or looked: ended after its look, which it paid. One that
    is over has `facts`, or an `error` as the browser gets it, or both. `paid` says of one that was stopped whether its
    price was charged.
    """

    name: str
    owner: str
    what: str
    state: str = "running"
    doing: str = "starting"
    part: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    stopping: bool = False
    paid: bool = False

    def to_json(self) -> dict[str, Any]:
        """For the browser."""
        return {
            "run": self.name,
            "what": self.what,
            "state": self.state,
            "doing": self.doing,
            "part": self.part,
            "error": self.error,
            "warnings": list(self.warnings),
            "stopping": self.stopping,
            "paid": self.paid,
            **self.facts,
        }


class RunningReleases:
    """The runs of all stewards of a studio."""

    def __init__(self, spawn: Callable[[Callable[[], None]], None] | None = None) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._by_key: dict[str, Run] = {}
        self._busy: dict[str, Run] = {}
        self._spawn = spawn or _in_thread

    def begin(
        self,
        owner: str,
        key: str,
        page: str,
        what: str,
        work: Callable[[Progress], dict[str, Any]],
        paid: bool = False,
    ) -> Run:
        """The run of a key, begun unless it was before; `InputError` while another one charges the same `page`.

        A key whose run failed may be tried again: whoever makes keys sees to it that they change with every charge.
        What is `paid` already is paid when it is stopped, too.
        """
        with self._lock:
            known = self._by_key.get(key)
            if known is not None and known.owner == owner and known.state not in FRUITLESS:
                return known
            busy = self._busy.get(page)
            if busy is not None and busy.state == "running":
                raise refused(Busy, "busy", what=busy.what)
            if sum(run.state == "running" for run in self._runs.values()) >= TOGETHER:
                raise refused(Busy, "tooManyRuns", most=TOGETHER)
            run = Run(fresh(), owner, what, paid=paid)
            self._runs[run.name] = self._by_key[key] = self._busy[page] = run
            self._forget()
        self._spawn(lambda: self._worked(run, work))
        return run

    def of_key(self, owner: str, key: str) -> Run | None:
        """The run that a key has begun already, unless it failed."""
        with self._lock:
            run = self._by_key.get(key)
        return run if run is not None and run.owner == owner and run.state not in FRUITLESS else None

    def find(self, owner: str, name: str) -> Run:
        """A run of a steward's own."""
        with self._lock:
            run = self._runs.get(name)
        if run is None or run.owner != owner:
            raise refused(UnknownRun, "unknownRun")
        return run

    def stop(self, owner: str, name: str) -> Run:
        """Tell a run to stop where it next can; one that is over stays what it is."""
        run = self.find(owner, name)
        run.stopping = True
        return run

    def of(self, owner: str) -> list[Run]:
        """A steward's runs, the newest first."""
        with self._lock:
            return [run for run in reversed(self._runs.values()) if run.owner == owner]

    def _worked(self, run: Run, work: Callable[[Progress], dict[str, Any]]) -> None:
        def tell(what: str, part: float | None) -> None:
            if run.stopping:
                raise refused(RunCancelled, "runStopped")
            run.doing, run.part = what, part

        _warned.set(run.warnings)
        try:
            run.facts = work(tell)
            run.state = "done"
        except RunCancelled as error:
            run.paid |= error.__cause__ is not None  # a run that has paid says so in an error of its own
            run.error, run.state = told_of(error), "stopped"
        except Stopped as error:
            prices = {"paid": error.statement.budget, "rest": error.rest}
            run.error, run.state = told_of(saying(error, "endedAfterLook", prices, more=True)), "looked"
            run.facts = {"charge": error.charge, "rest": str(error.rest)}
        except HazemapError as error:
            run.error, run.state = told_of(error), "failed"
        except BaseException as error:
            notes = " ".join(getattr(error, "__notes__", ()))
            words = f"this is a bug in hazemap, or the system refused ({type(error).__name__}). {notes}"
            run.error, run.state = {**told_of(error), "message": words}, "failed"
            raise

    def _forget(self) -> None:
        over = [name for name, run in self._runs.items() if run.state != "running"]
        for name in over[: max(0, len(self._runs) - KEPT)]:
            gone = self._runs.pop(name)
            for known in (self._by_key, self._busy):
                for key in [key for key, run in known.items() if run is gone]:
                    del known[key]


class Busy(InputError):
    """Something else is under way."""


class RunCancelled(HazemapError):
    """The steward who began the run cancelled it."""


class UnknownRun(InputError):
    """No run of this steward's."""


def _in_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="hazemap release", daemon=True).start()


def warnings_to_runs() -> AbstractContextManager[None]:
    """Have what hazemap warns of while a run goes on kept with that run; all else is shown as it would be."""

    def keep(message: str) -> bool:
        kept = _warned.get()
        if kept is not None:
            kept.append(message)
        return kept is not None

    return warnings_told(keep)
