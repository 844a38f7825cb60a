"""One run, in the order that makes its promises true (docs/concepts/design.md, "A run, step by step").

The output is locked; the table is opened and its rows are read inside the trust model; the run is rehearsed, and what
could not be read back is refused; the journal is begun; the price is charged; every answer is in the journal before
it is used; the file appears whole; the ledger notes it; the journal is removed.

**Rehearsal.** Before a run is paid, the method asks its questions of a table of nobody, without noise. Whatever
follows from options alone is the same for this table as for any other: how many numbers a question asks for, whether
anybody can answer it, whether the shares suffice. So it is found out here, for every method alike, and no method has
to say what it might ask. It is the one check that cannot be forgotten where a method is added or changed.

What a rehearsal cannot see hangs on answers, and they are paid when they are there: so a method never refuses an
answer. Where answers ask for too much it asks for less (fewer cells, coarser ones, the widest bounds);
`research.hostile_specifications` tries that with answers of all kinds.
"""

import hashlib
import os
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hazemap import __version__
from hazemap.algorithms.first_look import LOOK, judged
from hazemap.encoders import EvenSplitScores, MedianSplitScores
from hazemap.engines.duckdb import EngineTable
from hazemap.errors import FileError, HazemapError, HazemapWarning, InputError, LedgerError, Stopped
from hazemap.execution.journal import Journal, check
from hazemap.execution.output_lock import check_output_place, lock_output
from hazemap.execution.release_assembly import ReleaseAssembly
from hazemap.privacy.budget import Budget, much
from hazemap.privacy.duplicate_tables import Fingerprints
from hazemap.privacy.first_cap import FirstCap
from hazemap.privacy.ledger import Foreseen, Ledger, LedgerAccount
from hazemap.privacy.ledger_records import Occasion
from hazemap.privacy.mechanisms import noise_for
from hazemap.privacy.privacy_unit import FULL, ROW, VALUES_ONLY, Model, Unit
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.statement import budget_to_json
from hazemap.privacy.statement_facts import Randomness
from hazemap.queries.algorithm_session import Result, Session, Unrecorded
from hazemap.queries.noisy_queries import Algorithm, Answer, Choice, Growth, Measure, Question
from hazemap.readers.file_formats import state_of
from hazemap.readers.open_table import open_table
from hazemap.releases import Release, Statistics
from hazemap.sources.source import Address, Files
from hazemap.specs.method_from_name import reach
from hazemap.specs.parsing import values_only
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.specs.values_only_spec import PublicLocationSpec
from hazemap.tables.contribution_bounding import RowIsPerson
from hazemap.tables.keyed_hash import SamplingKey
from hazemap.temporal.time_slots import moment
from hazemap.trust.curator import Curator


def rehearse(algorithm: Algorithm[Any], trust: Curator, budget: Budget) -> Iterator[Question]:
    """Rehearse a run over nobody; an error says in words what is wrong with the order.

    It ends with a question that has the whole budget, or else with the method, whose estimates are tried, too.
    """
    session = _Rehearsal(algorithm, trust.prices(budget), budget, Unrecorded(), trust.answers)
    while session.question:
        yield session.question
        if session.question.share == 1:
            return
        session.receive(answer_of_nobody(session.question, session.price))


class _Rehearsal(Session[Any]):
    """A session that keeps no transcript."""

    def receive(self, answer: Answer) -> None:
        """Move on to the next question."""
        self._advance(answer)


def answer_of_nobody(question: Question, price: Budget) -> Answer:
    """A curator's answer over nobody and without noise: zeros, the first candidates, an uncut tree.

    >>> from hazemap.encoders import Counts
    >>> from hazemap.cells import Leaves
    >>> from hazemap.queries.noisy_queries import Query
    >>> from hazemap.privacy.budget import PureDP
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> answer_of_nobody(Query(Counts(Leaves.at_level(Quadtree.world(depth=1), 1)), 1), PureDP(1)).sums
    array([0, 0, 0, 0])
    """
    if isinstance(question, Growth):
        return Answer(question.tree.root.astype(np.int64), np.array([0.0]))
    if isinstance(question, Choice):
        scores = question.scores
        if isinstance(scores, MedianSplitScores | EvenSplitScores):
            lines, starts = scores.candidates
            return Answer(lines[starts[:-1]], np.array([0.0]))
        return Answer(np.zeros(question.size, dtype=np.int64), np.array([0.0]))
    asked = question.scores if isinstance(question, Measure) else question.encoder
    noise = noise_for(price, asked.sensitivity)
    return Answer(np.zeros(asked.size, dtype=np.int64), np.array([noise.stddev]), noise.kurtosis)


METRES = "for metres or pixels say --crs EPSG:… and --box, or --plane W,H (crs=…, plane=… in Python)"
"""How to treat coordinates of a map that are not degrees."""

Progress = Callable[[str, float | None], None]
"""Called with the present step and the completed part of it, 0 to 1, if known."""


def execute(
    spec: ReleaseSpec | StatisticsSpec,
    source: Any,
    ledger: Ledger | None,
    memory_limit: int | None,
    progress: Progress | None,
    stream: Stream | None,
    occasion: Occasion | None = None,
    cap: FirstCap | None = None,
    go_on: bool = False,
) -> Release | Statistics:
    """Run a specification and write its output; `occasion` is the period of a schedule.

    A data set that has no cap gets this one with the charge. A method that begins with a look pays that apart, and may
    end in `Stopped`, unless `go_on` is true.
    """
    say: Progress = progress or (lambda _what, _part: None)
    if isinstance(ledger, str | Path):
        raise InputError(f"a ledger is opened before it is given: ledger=hazemap.Ledger({str(ledger)!r})")
    book = ledger or Ledger.default()
    only = PublicLocationSpec.of(spec) if isinstance(spec, StatisticsSpec) and values_only(spec.model) else None
    model: Model = VALUES_ONLY if only else FULL
    goal = None if spec.output is None else check_output_place(Path(spec.output).absolute(), spec)
    # said before hours of reading; the charge below decides
    book.check(spec.dataset, spec.budget, model, occasion, cap)
    with nullcontext() if goal is None else lock_output(goal):
        if goal is not None:
            check_output_place(goal, spec)  # somebody may have written it until it was locked
        key, found = os.urandom(16), fingerprint(spec.table.address and spec.table.address.absolute)
        table, lookalikes = opened(spec, source, key, memory_limit, say, new=True), Fingerprints(book)
        table.watch(lookalikes.key())
        whose, run = _whose(table, spec, model), uuid.uuid4().hex
        account = book.account(spec.dataset, _what(spec, goal), whose, run, occasion, cap, spec.budget)
        foreseen = account.check(spec.budget)  # now that it is known by which column people are told apart
        noise = stream or Stream.from_os()
        algorithm, trust = algorithm_and_trust(spec, only, table, noise)
        made_now = f"{datetime.now(UTC):%Y-%m-%d}", __version__
        randomness = Randomness.TEST_STREAM if noise.is_fixed else Randomness.SYSTEM
        publication = ReleaseAssembly(spec, algorithm, account.dataset, account.unit, *made_now, randomness).absolute
        questions = list(rehearse(algorithm, trust, spec.budget))
        publication.refuse_what_cannot_be_read_back(*questions)
        trust.prepare(questions[0])
        lookalikes.warn(account.dataset, table.fingerprint)
        _warn_of_money(account.dataset, foreseen)
        head = {**publication.to_json(), "what": account.what, "source": found, "key": key.hex()}
        with (
            Journal.begun(journal_folder(book), str(account.run), head) as journal,
            _told_what_stands(account, spec.budget, journal),
        ):
            prices, look = trust.prices(spec.budget), look_share(questions[0])
            for part in () if look is None else (look, 1 - look):
                budget_to_json(spec.budget.part(part))  # a price of too many digits is refused before the look is paid
            session = Session(algorithm, prices, spec.budget, account, trust.answers, look=look)
            lookalikes.remember(account.dataset, table.fingerprint)
            journal.paid(account.latest)
            done = converse(session, trust, account, publication, journal, say, go_on)
            made = publication.made(done, account.latest.total)
            if isinstance(made, Release) and made.caution:
                # before the journal goes: where warnings are errors, a release in memory can still be recovered
                warnings.warn(made.caution, HazemapWarning, stacklevel=4)
            if goal is not None:
                check_output_place(goal, spec)  # another program may have written it since, without the lock
            finish(made, account, account.receipt, account.later, goal, say)
            journal.remove()
    return made


def _warn_of_money(dataset: str, foreseen: Foreseen) -> None:
    """Warn, before anything is paid, about the cap that a data set gets by default, and about a large total."""
    unasked = foreseen.cap is not None and not foreseen.cap.said
    for words in (foreseen.cap.words(dataset) if foreseen.cap and unasked else None, much(foreseen.total)):
        if words:
            warnings.warn(words, HazemapWarning, stacklevel=5)


def algorithm_and_trust(
    spec: ReleaseSpec | StatisticsSpec, only: PublicLocationSpec | None, table: EngineTable, stream: Stream
) -> tuple[Any, Curator]:
    """The algorithm and the trust model; under values-only, both follow from the whereabouts in the table."""
    if only is None:
        return spec.algorithm, Curator(table, stream)
    asked, counting = only.kept(table)
    return asked, Curator(counting, stream)


def look_share(first: Question) -> Fraction | None:
    """The part of the budget that a run pays first: that of a look, if its first question costs no more than that."""
    return LOOK if first.share <= LOOK else None


def converse(
    session: Session[Any],
    trust: Curator,
    account: LedgerAccount,
    publication: ReleaseAssembly,
    journal: Journal,
    say: Progress,
    go_on: bool,
) -> Result[Any]:
    """Ask until the algorithm is done, or the look is over and not worth the rest; raises `Stopped` then.

    The rest is paid before any question that it pays for is asked.
    """
    ask_all(session, trust, journal, say)
    if session.looked:
        weigh(session, account, publication, journal, go_on)
        session.go_on()
        journal.paid(account.latest)
        ask_all(session, trust, journal, say)
    journal.end()
    return ended(session)


def weigh(
    session: Session[Any], account: LedgerAccount, publication: ReleaseAssembly, journal: Journal, go_on: bool
) -> None:
    """Raise `Stopped` where the answers of the look say that the rest would buy nothing: they decide, and no row."""
    if go_on:
        return
    prices = Curator(None).prices(publication.spec.budget)  # type: ignore[arg-type]  # they need no table
    stop = journal.stopped or judged(publication.algorithm, session.transcript, session.following, prices)
    if stop is None:
        return
    if journal.stopped is None:
        journal.stop(stop)
    budget, charge, total = publication.spec.budget, account.latest, journal.total
    rest = budget.part(1 - session.charged)
    raise Stopped(
        f"{stop}. The data set {account.dataset!r} has paid {charge.price} for this look (charge {charge.id}), which "
        f"stands; the other {rest} of {budget} was not paid, and there is no file. "
        f"`hazemap recover {charge.id} --continue` pays it, whatever comes of it, and uses these answers again",
        charge=charge.id,
        statement=publication.looked(total),
        rest=rest,
        why=stop.why,
        advice=stop.advice,
    )


def ask_all(session: Session[Any], trust: Curator, journal: Journal, say: Progress) -> None:
    """Ask what is paid for; every answer is in the journal before the algorithm sees it."""
    number = len(session.transcript)
    while session.question:
        number += 1
        say(f"answering query {number}", None)
        trust.prepare(session.question)
        journal.ask(session.question)
        answer = trust.answer(session.question, session.price)
        journal.answer(answer)
        session.receive(answer)


def replayed(
    publication: ReleaseAssembly, journal: Journal, account: LedgerAccount, look: Fraction | None
) -> Session[Any]:
    """A run as far as its journal goes; it asks what was not answered. What was paid is not paid again."""
    algorithm: Algorithm[Any] = publication.algorithm
    trust = Curator(None)  # type: ignore[arg-type]  # prices need no table
    budget = publication.spec.budget
    session = Session(algorithm, trust.prices(budget), budget, account, trust.answers, look=look)
    for stored in journal.stored:
        if session.looked:
            session.go_on()
        if session.question is None:
            raise LedgerError(f"the journal {journal.path} goes on after its method has ended: it was changed by hand")
        answer = check(stored, session.question)
        if answer is None:
            break
        session.receive(answer)
    return session


def ended(session: Session[Any]) -> Result[Any]:
    """The result of a session that asks nothing more, and has paid for all of it."""
    if session.result is None or session.looked:
        raise LedgerError("a run ended without a result, so nothing must be published")
    return session.result


def finish(
    made: Release | Statistics,
    account: LedgerAccount,
    charge: int | None,
    again: tuple[int, ...],
    goal: Path | None,
    say: Progress,
) -> None:
    """Put the file in its place, then tell the ledger what the charge (and those of questions asked again) bought."""
    if charge is None:
        raise LedgerError("a run ended without having paid, so its result must not be published")
    if goal is not None:
        say("writing the file", None)
        made.save(goal)
    try:
        account.ledger.released(charge, made.statement, None if goal is None else str(goal.absolute()), again)
    except LedgerError as error:
        raise LedgerError(f"{error}. The release is whole; only the ledger does not know of it") from error


def journal_folder(ledger: Ledger) -> Path:
    """The folder of the journals of a ledger's runs, on this machine."""
    return ledger.store.runs


def _what(spec: ReleaseSpec | StatisticsSpec, goal: Path | None) -> str:
    what = f"{spec.method} map" if isinstance(spec, ReleaseSpec) else "statistics of a value"
    return what + (f" in {goal.name}" if goal else "")


def _whose(table: EngineTable, spec: ReleaseSpec | StatisticsSpec, model: Model) -> Unit:
    """The privacy unit of a run on a table; the table's own error if people are needed and ids are missing."""
    rule = spec.bounding if isinstance(spec, ReleaseSpec) else spec.inner.bounding
    return ROW if isinstance(rule, RowIsPerson) else Unit.of(table.need_id_column(), model)


@contextmanager
def _told_what_stands(account: LedgerAccount, price: Budget, journal: Journal) -> Iterator[None]:
    """Have an error after the charge say what was paid, and how to get what it bought."""
    try:
        yield
    except Stopped:
        raise
    except (HazemapError, OSError, MemoryError) as error:
        if account.receipt is None:
            if isinstance(error, HazemapError) and not isinstance(error, LedgerError):
                journal.remove()  # nothing was paid; after an error of the ledger or the system nobody can be sure
            raise
        stands = _stands(account, price)
        if isinstance(error, HazemapError):
            raise type(error)(f"{error}. {stands}") from error
        raise HazemapError(f"the system refused ({error or type(error).__name__}). {stands}") from error
    except BaseException as error:  # whoever interrupts it is told too
        error.add_note(_stands(account, price))
        raise


def _stands(account: LedgerAccount, price: Budget) -> str:
    if account.receipt is None:
        return f"The data set {account.dataset!r} has paid nothing for this"
    paid = price if account.later else account.latest.price
    rest = "" if paid == price else f", and pays the rest of {price} if the look says so"
    return (
        f"The data set {account.dataset!r} has paid {paid} for this (charge {account.receipt}), and the charge "
        f"stands; what was answered is kept: `hazemap recover {account.receipt}` makes the file of it{rest} "
        f"(see `hazemap ledger history {account.dataset}`)"
    )


_UTC = ("UTC", "Etc/UTC", "Etc/UCT", "Zulu")


def opened(
    spec: ReleaseSpec | StatisticsSpec,
    source: Any,
    key: SamplingKey,
    memory_limit: int | None,
    say: Progress,
    new: bool = False,
) -> EngineTable:
    """The table that a specification is about; `source` where it lies in memory.

    `TableError` for a `new` run, which has paid nothing yet, whose coordinates may be anything: columns called x and y,
    and no place that is declared.
    """
    of = spec.table
    own: dict[str, Any]
    timed, window = spec.timeslots.timed, list[Any](of.window)
    if timed or isinstance(spec, StatisticsSpec):
        window = [None if time is None else moment(spec.time_zone or "UTC", time) for time in window]
    if isinstance(spec, ReleaseSpec):
        own = {"value": spec.value, "box": reach(spec.algorithm), "mark": spec.marks}
    else:
        own = {"measured": spec.value, "box": spec.reach}
        if of.cell_column is not None:
            own |= {"cell": of.cell_column, "resolution": spec.resolution}
    if new and own["box"] is None:
        own["unplaced"] = METRES if isinstance(spec, ReleaseSpec) else "statistics take no metres and no pixels"
    own |= {"timed": timed, "since": window[0], "until": window[1]}
    say("opening the table", None)
    table = open_table(
        of.address or source,
        person=of.person,
        lon=of.lon,
        lat=of.lat,
        time=of.time,
        time_format=of.time_format,
        dialect=of.dialect,
        key=key,
        memory_limit=memory_limit,
        progress=lambda part: say("reading rows", part),
        **own,
    )
    zone = spec.time_zone or "UTC"
    if new and zone not in _UTC and table.zoneless is not None:  # by its type alone; rows are not looked at
        warnings.warn(
            f"times in the column {table.zoneless!r} that do not say their offset are read as UTC, and converted "
            f"to clocks of {zone}: if they are local times already, set --time-zone UTC (time_zone='UTC' in "
            f"Python)",
            HazemapWarning,
            stacklevel=5,
        )
    return table


def fingerprint(source: Address | None, strict: bool = False) -> str | None:
    """The names, sizes and times of change of the files of a source, as a digest; None for a table in memory.

    For remote files it is what the store or the server says of them. A table in a database or in Spark never has the
    same twice, since hazemap cannot see that it did not change. `FileError` where nothing is found, if `strict`.
    """
    if source is None:
        return None
    if not isinstance(source, Files):
        return os.urandom(32).hex()
    found: list[tuple[str, int, str]] = []
    try:
        with nullcontext() if strict else suppress(FileError):  # nothing is there: whoever opens it says so
            found = state_of(source)
    except OSError as error:
        raise FileError(f"{source} cannot be read ({error.strerror})") from error
    told = repr(found)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
