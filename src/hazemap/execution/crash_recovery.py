"""Recovers what was paid for but not written: after a crash, a full disk or a failed write.

An answer that the journal holds is given to the algorithm again, at no price: it is post-processing of what was paid.
A question that was not asked yet was paid with the charge of the run, so it is asked now, of the same table under the
same sampling key. Only a question that was asked while no answer was kept is paid again (docs/how-to/recover.md).
"""

from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hazemap.algorithms.first_look import LOOK
from hazemap.codec import digest
from hazemap.errors import FileError, HazemapError, InputError, LedgerError, TranscriptMismatch
from hazemap.execution.journal import Journal, RunningJournal, discard
from hazemap.execution.output_lock import check_output_place, lock_output
from hazemap.execution.release_assembly import ReleaseAssembly
from hazemap.execution.run import (
    Progress,
    algorithm_and_trust,
    converse,
    ended,
    fingerprint,
    finish,
    journal_folder,
    opened,
    replayed,
    weigh,
)
from hazemap.privacy.budget import Budget, PrivacyAmount
from hazemap.privacy.ledger import REST, Ledger, LedgerAccount
from hazemap.privacy.ledger_records import Charge, LedgerCharge, Occasion
from hazemap.privacy.ledger_units import asked_again
from hazemap.privacy.privacy_unit import VALUES_ONLY
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Session
from hazemap.releases import Release, Statistics
from hazemap.releases.file_metadata import pack
from hazemap.sources.source import Address, Files, RemoteFiles, SparkCatalogueTable
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.specs.values_only_spec import PublicLocationSpec


@dataclass(frozen=True)
class Recoverable:
    """A charge that is paid, and of which no file is known.

    * `output`: where the file was to be, None for a release that was to stay in memory; `source`: the table's file.
    * `answered`: how many answers are kept; `ended`: whether these are all, so that no table is needed.
    * `running`: whether the run is still going on; `fault`: why its journal cannot be read, None where it can.
    * `stopped`: why it did not go on after its look, None where it did; `rest`: the price that it did not pay then.
    """

    record: LedgerCharge
    output: str | None
    source: Address | None
    answered: int
    ended: bool
    running: bool
    fault: str | None = None
    stopped: str | None = None
    rest: Budget | None = None

    @property
    def state(self) -> str:
        """The next step, in a few words."""
        if self.fault:
            return self.fault
        if self.running:
            return "still running"
        if self.stopped:
            return f"stopped after a look, {self.stopped}; --continue pays the rest"
        if self.ended:
            return "all answers are kept"
        return f"{self.answered} answers are kept, the rest is asked of {self.source or 'a table in memory'}"


def recoverable(ledger: Ledger) -> list[Recoverable]:
    """Every charge that was paid, has no file, and has a journal; the oldest first."""
    found = []
    for record in ledger.history():
        path = _journal(ledger, record)
        if record.released or path is None:
            continue
        with suppress(FileNotFoundError):  # it came to its end just now
            try:
                found.append(_seen(record, path))
            except FileError as error:
                found.append(Recoverable(record, None, None, 0, False, False, str(error)))
    return found


def _seen(record: LedgerCharge, path: Path) -> Recoverable:
    running = False
    try:
        with Journal.reopened(path) as journal:
            pass
    except RunningJournal:
        journal, running = Journal.seen(path), True
    spec = _publication(journal).spec
    found = Recoverable(record, spec.output, spec.table.address, journal.answered, journal.ended, running)
    if journal.stopped is None:
        return found
    return replace(found, stopped=journal.stopped.found, rest=spec.budget.part(1 - LOOK))


def recover(
    charge: int,
    *,
    ledger: Ledger | None = None,
    output: Any = None,
    overwrite: bool = False,
    source: Any = None,
    same_table: bool = False,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    occasion: Occasion | None = None,
    go_on: bool = False,
) -> Release | Statistics:
    """The release that a charge paid for and that is not there, after a crash, a full disk or a failed write.

    It is made of the answers that the run's journal holds, at no price. Where the run was cut off before its last
    question, the table is opened again: the file that was named, or `source` for one that lay in memory, and for no
    other. A file that was changed since is refused, unless `same_table` says that its rows are the same. The file goes
    to `output`, or where the run would have put it; with `overwrite` it may replace one.

    A run that was cut off in its look ends that, and decides as it would have: it pays the rest, or stops. One that
    stopped after its look stays so (`Stopped`), unless it is to `go_on`.

    A question that was being answered when the process died is paid again, on the same page of the ledger, and for the
    same period of a schedule; `occasion` has a schedule's allowance of today instead of that of then.

    Raises `InputError` where nothing can be recovered, `FileError` where the file or the table is in the way or gone,
    and `CapExceeded` where a question has to be paid again and the cap does not allow it.
    """
    book, say = ledger or Ledger.default(), progress or (lambda _what, _part: None)
    record = _record(book, charge)
    path = _journal(book, record)
    if path is None:
        raise InputError(
            f"nothing of charge {charge} is kept: it was paid by hand, by an older hazemap or on devices, or its "
            f"journal in {journal_folder(book)} was removed"
        )
    with Journal.reopened(path) as journal:
        publication = _publication(journal)
        paid = record.charge
        whole = publication.spec.budget
        look = None if paid.price == whole else LOOK
        price = whole if look is None else whole.part(look)
        if (paid.dataset, paid.price, paid.unit) != (publication.dataset, price, publication.unit):
            raise FileError(
                f"the journal {path} is about another charge than {charge}: it was renamed or changed by hand"
            )
        if source is not None and publication.spec.table.source is not None:
            raise InputError(
                f"charge {charge} is about the file {publication.spec.table.source}, and no table in memory: put it "
                "back where it was, and leave out `source`"
            )
        spec = replace(publication.spec, overwrite=overwrite or publication.spec.overwrite)
        chosen = output if output is not None else publication.spec.output
        goal = None if chosen is None else Path(chosen)
        what, pays_for = journal.head["what"], occasion or record.occasion
        account = LedgerAccount(
            book, paid.dataset, what, publication.unit, record.run, pays_for, whole=whole, paid=paid
        )
        session = replayed(publication, journal, account, look)
        rest = any(each.run == f"{record.run}{REST}" for each in book.history(paid.dataset))
        with nullcontext() if goal is None else lock_output(goal):
            for each in account.charges:
                if each.id not in journal.totals:  # cut off between the charge and this line
                    journal.paid(replace(each, total=book.paid_by(each)))
            ours = goal is not None and _is_ours(goal, publication, session, journal.total)
            if goal is not None and not ours:
                check_output_place(goal, spec)
            if session.looked:
                weigh(session, account, publication, journal, go_on or rest)
            if session.question is not None or session.looked:
                on = go_on or rest
                _go_on(publication, journal, session, account, record, source, same_table, memory_limit, say, on)
                if goal is not None:
                    check_output_place(goal, spec)  # another program may have written it since, without the lock
            made = publication.made(ended(session), journal.total)
            finish(made, account, record.charge.id, (*account.later, *journal.again), goal, say)
        journal.remove()
    return made


def kept(ledger: Ledger, run: str | None) -> bool:
    """Whether the journal of a run is there, so that what it paid for can be recovered."""
    return run is not None and not asked_again(run) and (journal_folder(ledger) / f"{run}.journal").exists()


def stopped(ledger: Ledger, run: str | None) -> bool:
    """Whether a run that is kept ended after its look."""
    try:
        return kept(ledger, run) and Journal.seen(journal_folder(ledger) / f"{run}.journal").stopped is not None
    except (FileError, FileNotFoundError):
        return False  # damaged, or finished just now: whoever recovers it says so


def sweep(ledger: Ledger) -> None:
    """Remove the journals of runs that never paid, or whose files the ledger knows: nothing is left to be recovered.

    One of which the ledger knows nothing, and that holds a question, was paid in a ledger that was lost or not brought
    back yet; it stays, and so does one that cannot be read.
    """
    released, needed = _runs(ledger)
    for path in sorted(journal_folder(ledger).glob("*.journal")):
        if path.stem not in needed:
            with suppress(FileError, FileNotFoundError), Journal.reopened(path) as journal:
                if path.stem in released or not (journal.stored or journal.again or path.stem in _runs(ledger)[1]):
                    journal.remove()  # it had not paid since the ledger was read
    for part in journal_folder(ledger).glob(".*.part"):
        discard(part)


def _publication(journal: Journal) -> ReleaseAssembly:
    try:
        return ReleaseAssembly.from_json(journal.head)
    except (HazemapError, KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"the journal {journal.path} is of another version of hazemap ({error}): recover it with that one"
        ) from error


def _runs(ledger: Ledger) -> tuple[set[str], set[str]]:
    """The runs whose files the ledger knows, and those that were paid and have none yet."""
    records = [(record.released, record.run) for record in ledger.history() if record.run]
    return {run for released, run in records if released}, {run for released, run in records if not released}


def _go_on(
    publication: ReleaseAssembly,
    journal: Journal,
    session: Session[Any],
    account: LedgerAccount,
    record: LedgerCharge,
    source: Any,
    same_table: bool,
    memory_limit: int | None,
    say: Progress,
    go_on: bool,
) -> None:
    """Ask what was not answered, of the same table under the same sampling key; decide after the look, if it is new."""
    spec, charge = publication.spec, record.charge.id
    cut = f"charge {charge} was cut off after {journal.answered} answers"
    if spec.table.source is None and source is None:
        raise InputError(
            f"{cut}, and its table was handed over in Python: recover it there with the same table, "
            f"hazemap.recover({charge}, source=table)"
        )
    if spec.table.address is not None and not same_table:
        _see_the_same(spec.table.address, journal.head["source"], cut)
    only = None
    if isinstance(spec, StatisticsSpec) and publication.unit.model == VALUES_ONLY:
        only = PublicLocationSpec.of(spec)
    table = opened(spec, source, bytes.fromhex(journal.head["key"]), memory_limit, say)
    algorithm, trust = algorithm_and_trust(spec, only, table, Stream.from_os())
    if only is not None and digest(algorithm) != digest(publication.algorithm):
        raise TranscriptMismatch("other people are in other places of this table than when it was paid for")
    question = session.question
    if question is not None and journal.open is not None:
        trust.prepare(question)
        again = _paid_again(account, journal, session, charge)
        journal.paid(again)
        journal.asks_again(again.id)
    converse(session, trust, account, publication, journal, say, go_on)


def _see_the_same(source: Address, known: str, cut: str) -> None:
    """`FileError`, with what to do, if a table cannot be verified as the one that was paid for."""
    vouch = "if its rows are the same, say so (--same-table, same_table=True)"
    if not isinstance(source, Files):
        where = "in Spark" if isinstance(source, SparkCatalogueTable) else "in a database"
        raise FileError(
            f"{cut}. {source} is {where}, where hazemap cannot tell whether it was changed since, so it is not "
            f"read again unasked: {vouch}"
        )
    try:
        if fingerprint(source, strict=isinstance(source, RemoteFiles)) == known:
            return
    except FileError as error:
        raise FileError(
            f"{cut}, and the rest cannot be asked now: {error}. Recover it again once it can be read"
        ) from None
    if isinstance(source, RemoteFiles):
        raise FileError(
            f"{cut}, and {source} was changed since, by what its store says of sizes, times and versions: put back "
            f"what was there; or, {vouch}"
        )
    raise FileError(f"{cut}, and {source} is gone or was changed since: put it back; or, {vouch}")


def _paid_again(account: LedgerAccount, journal: Journal, session: Session[Any], charge: int) -> Charge:
    """The charge for a question that was asked while no answer was kept; made once, however often this is killed."""
    run = f"{journal.path.stem}:{len(journal.again) + 1}"
    for record in account.ledger.history(account.dataset):
        if record.run == run:
            return replace(record.charge, total=account.ledger.paid_by(record.charge))
    what = f"{account.what}: a question asked again after a crash (charge {charge})"
    return account.ledger.charge(account.dataset, session.price, what, account.unit, run, account.occasion)


def _record(ledger: Ledger, charge: int) -> LedgerCharge:
    for record in ledger.history():
        if record.charge.id == charge:
            if record.released:
                raise InputError(f"charge {charge} is released already" + (f", in {record.file}" * bool(record.file)))
            if asked_again(record.run):
                raise InputError(f"charge {charge} paid for a part of another run: {record.charge.what}")
            return record
    raise InputError(f"the ledger {ledger.place} holds no charge {charge}: see `hazemap recover` for what there is")


def _journal(ledger: Ledger, record: LedgerCharge) -> Path | None:
    return journal_folder(ledger) / f"{record.run}.journal" if kept(ledger, record.run) else None


def _is_ours(goal: Path, publication: ReleaseAssembly, session: Session[Any], total: PrivacyAmount) -> bool:
    """Whether a file is what this run made before it was cut off: then it may be made again, byte for byte."""
    if session.question is not None or session.looked:
        return False  # a file is written after the last answer
    try:
        there = (Release if publication.to_json()["kind"] == "map" else Statistics).open(goal)
    except (FileError, LedgerError, OSError):
        return False
    made = publication.made(ended(session), total)
    return there.statement == made.statement and pack(there.transcript) == pack(made.transcript)
