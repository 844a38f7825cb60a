"""What was paid is made good: a run that was cut off anywhere ends in its file, and pays again only what it must."""

import hashlib
import json
import os
import stat
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hazemap
from hazemap.cells import Leaves
from hazemap.cli.main import main
from hazemap.encoders import Counts
from hazemap.errors import CapExceeded, FileError, HazemapWarning, InputError, LedgerError
from hazemap.execution import run as opening
from hazemap.execution.crash_recovery import recover, recoverable, sweep
from hazemap.execution.journal import Journal
from hazemap.execution.run import journal_folder
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.statement import Statement
from hazemap.publish import release, run_release, stats
from hazemap.queries.algorithm_session import Session
from hazemap.queries.noisy_queries import Answer, Query
from hazemap.releases import Release, Statistics
from hazemap.sources.source import LocalFiles
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.table_spec import TableSpec
from hazemap.trust.curator import Curator

BOX = "13.2,52.4,13.6,52.6"


class Killed(BaseException):
    """The process dies here, as far as this process can play dead."""


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "home" / "ledger.sqlite")


@pytest.fixture
def visits(points, tmp_path) -> Path:
    pq.write_table(pa.table(points), tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


@pytest.fixture
def goal(tmp_path) -> Path:
    return tmp_path / "map.parquet"


def dies(monkeypatch, of: type, method: str, times: int = 1, before: bool = True) -> None:
    """Have the `times`-th call of a method be the last thing that happens, before or after it."""
    real, calls = getattr(of, method), []

    def watched(self, *arguments, **options):
        calls.append(None)
        if len(calls) == times and before:
            raise Killed
        value = real(self, *arguments, **options)
        if len(calls) == times:
            raise Killed
        return value

    monkeypatch.setattr(of, method, watched)


def killed(visits, ledger, goal, **options) -> None:
    with pytest.raises(Killed):
        release(visits, **{"person": "person", "epsilon": 1, "box": BOX, "ledger": ledger, "output": goal} | options)


def prices(ledger: Ledger) -> list[Fraction]:
    return [record.charge.price.epsilon for record in ledger.history()]


def journal(ledger: Ledger) -> Path:
    [path] = journal_folder(ledger).glob("*.journal")
    return path


def test_a_full_disk_after_the_charge_loses_nothing(visits, ledger, goal, monkeypatch):
    def full(self, path):
        raise FileError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Release, "save", full)
        with pytest.raises(FileError, match=r"the charge stands; what was answered is kept: `hazemap recover 1`"):
            release(visits, person="person", epsilon=1, box=BOX, ledger=ledger, output=goal)
    [found] = recoverable(ledger)
    assert (found.record.charge.id, found.output, found.ended, found.running) == (1, str(goal), True, False)
    kept = [each.answer.sums for each in Journal.seen(journal(ledger)).stored]
    visits.unlink()  # no table is needed
    made = recover(1, ledger=ledger)
    assert prices(ledger) == [1]
    assert Release.open(goal).total() == made.total()
    assert all(np.array_equal(a, b.answer.sums) for a, b in zip(kept, made.transcript, strict=True))
    [record] = ledger.history()
    assert (record.released, record.file) == (True, str(goal))
    assert not list(journal_folder(ledger).iterdir())


def test_a_table_that_others_replace_while_a_run_is_paid_for_is_read_to_its_end(visits, ledger, goal, monkeypatch):
    real, open_file = Journal.ask, visits.with_name("next.parquet")

    def replaced(self, question):
        if open_file.exists():
            open_file.replace(visits)  # between the first answer and the box that it finds
        real(self, question)

    pq.write_table(pq.read_table(visits).slice(0, 7), open_file)
    monkeypatch.setattr(Journal, "ask", replaced)
    made = release(visits, person="person", epsilon=1, ledger=ledger, output=goal)
    assert abs(made.total().unbiased - 4000) < 8 * made.total().stddev and prices(ledger) == [1]


@pytest.mark.parametrize(
    ("of", "method", "times", "before"),
    [
        (Session, "__init__", 2, False),  # rehearsed, charged, nothing asked
        (Journal, "ask", 2, True),  # one answer kept, the next question not asked
        (Session, "receive", 1, True),  # an answer kept, not yet seen
        (Journal, "end", 1, True),
        (Release, "save", 1, True),
        (Ledger, "released", 1, True),  # the file is in its place
        (Journal, "remove", 1, True),  # all is done but this
    ],
)
def test_a_run_that_dies_between_two_answers_ends_at_no_further_price(
    of, method, times, before, visits, ledger, goal, monkeypatch
):
    with monkeypatch.context() as patched:
        dies(patched, of, method, times, before)
        killed(visits, ledger, goal)
    if method == "remove":
        sweep(ledger)
        assert Release.open(goal).statement.budget == PureDP(1)
        assert not list(journal_folder(ledger).iterdir())
        return
    made = recover(1, ledger=ledger)
    assert prices(ledger) == [1]
    assert abs(made.total().unbiased - 4000) < 8 * made.total().stddev
    assert Release.open(goal).replay(Curator(None).prices(PureDP(1))).total() == made.total()


def test_a_question_that_was_asked_and_not_answered_is_paid_again_exactly(visits, ledger, goal, monkeypatch):
    with monkeypatch.context() as patched:
        dies(patched, Journal, "answer", 2)  # drawn, not stored
        killed(visits, ledger, goal)
    with monkeypatch.context() as patched:
        dies(patched, Curator, "answer")  # again
        with pytest.raises(Killed):
            recover(1, ledger=ledger)
    made = recover(1, ledger=ledger)
    share = made.transcript[1].question.share
    assert prices(ledger) == [1, share, share]
    assert [(each.released, each.file) for each in ledger.history()] == [(True, str(goal))] * 3
    assert "a question asked again after a crash (charge 1)" in ledger.history()[1].charge.what


def test_an_extra_charge_is_made_once_however_often_the_recovery_is_killed(visits, ledger, goal, monkeypatch):
    with monkeypatch.context() as patched:
        dies(patched, Journal, "answer", 1)
        killed(visits, ledger, goal)
    for _ in range(3):
        with monkeypatch.context() as patched:
            dies(patched, Journal, "asks_again", 1)
            with pytest.raises(Killed):
                recover(1, ledger=ledger)
    made = recover(1, ledger=ledger)
    assert prices(ledger) == [1, made.transcript[0].question.share]


def test_a_cap_that_has_no_room_for_the_question_again_is_said(visits, ledger, goal, monkeypatch):
    ledger.cap("visits", PureDP(1))
    with monkeypatch.context() as patched:
        dies(patched, Journal, "answer", 1)
        killed(visits, ledger, goal)
    with pytest.raises(CapExceeded, match="ε = 0 left"):
        recover(1, ledger=ledger)
    ledger.cap("visits", PureDP(2))
    recover(1, ledger=ledger)
    assert Release.open(goal).statement.budget == PureDP(1)


def test_the_rest_is_asked_of_the_same_rows_of_everybody(visits, ledger, goal, monkeypatch):
    """People pay for a question about where they are: that adds up only if the same of their rows count throughout."""
    keys, real = [], opening.open_table

    def watched(*arguments, **options):
        keys.append(options["key"])
        return real(*arguments, **options)

    monkeypatch.setattr(opening, "open_table", watched)
    with monkeypatch.context() as patched:
        dies(patched, Journal, "ask", 2)
        killed(visits, ledger, goal)
    recover(1, ledger=ledger)
    assert len(keys) == 2 and keys[0] == keys[1] and len(keys[0]) == 16


def test_a_table_that_was_changed_since_is_refused_unless_somebody_vouches_for_it(visits, ledger, goal, monkeypatch):
    with monkeypatch.context() as patched:
        dies(patched, Journal, "ask", 2)
        killed(visits, ledger, goal)
    os.utime(visits, (0, 0))
    with pytest.raises(FileError, match=r"is gone or was changed since.*--same-table"):
        recover(1, ledger=ledger)
    assert recover(1, ledger=ledger, same_table=True).total().unbiased > 3000


def test_a_table_in_memory_is_handed_over_again(points, ledger, goal, monkeypatch):
    table = pa.table(points)
    with monkeypatch.context() as patched:
        dies(patched, Journal, "ask", 2)
        killed(table, ledger, goal)
    with pytest.raises(InputError, match="its table was handed over in Python"):
        hazemap.recover(1, ledger=ledger)
    made = hazemap.recover(1, ledger=ledger, source=table)
    assert abs(made.total().unbiased - 4000) < 8 * made.total().stddev


def test_a_file_that_came_in_between_is_not_lost(visits, ledger, goal, monkeypatch, tmp_path):
    with monkeypatch.context() as patched:
        dies(patched, Release, "save")
        killed(visits, ledger, goal)
    goal.write_bytes(b"of somebody else")
    with pytest.raises(FileError, match="exists: choose another name"):
        recover(1, ledger=ledger)
    recover(1, ledger=ledger, output=tmp_path / "other.parquet")
    assert goal.read_bytes() == b"of somebody else"
    assert ledger.history()[0].file == str(tmp_path / "other.parquet")


@pytest.mark.parametrize("model", ["full", "values-only"])
@pytest.mark.parametrize(("of", "method"), [(Statistics, "save"), (Curator, "prepare"), (Journal, "answer")])
def test_statistics_are_recovered_too(model, of, method, points, ledger, tmp_path, monkeypatch):
    path, goal = tmp_path / "rides.parquet", tmp_path / "speed.parquet"
    pq.write_table(pa.table({**points, "speed": points["lon"] * 2}), path)
    with monkeypatch.context() as patched:
        dies(patched, of, method, 2 if method == "prepare" else 1)  # the first is before the charge
        with pytest.raises(Killed):
            stats(
                path,
                person="person",
                value="speed",
                low=26,
                high=28,
                epsilon=1,
                cells="h3:6",
                box=BOX,
                model=model,
                ledger=ledger,
                output=goal,
            )
    made = recover(1, ledger=ledger)
    assert prices(ledger) == [1, 1] if method == "answer" else [1]
    assert np.nanmean(Statistics.open(goal).found("mean").value) == pytest.approx(26.7, abs=0.3)
    assert made.statement.dataset == ledger.history()[0].charge.dataset


def test_a_journal_holds_answers_and_no_seed_row_or_exact_sum(points, ledger, goal, tmp_path, monkeypatch):
    path = tmp_path / "named.parquet"
    names = pa.array([f"person-{number}" for number in points["person"]])
    pq.write_table(pa.table({**points, "person": names}), path)
    exact, real = [], Curator.answer

    def watched(self, question, price):
        exact.append(question.encoder.total(self.table).astype("<i8").tobytes())
        return real(self, question, price)

    with monkeypatch.context() as patched:
        patched.setattr(Curator, "answer", watched)
        dies(patched, Release, "save")
        killed(path, ledger, goal)
    lines = [json.loads(line[17:]) for line in journal(ledger).read_bytes().rstrip(b"\0").splitlines()]
    kept = {"answers", "sums", "stddev", "kurtosis", "people", "skewness", "chances"}
    paid, *rest = lines[1:]
    assert paid == {"paid": 1, "total": {"measure": "ε", "value": "1"}}
    assert [set(line) for line in rest] == [{"asks"}, kept] * (len(rest) // 2) + [{"ended"}]
    head = {
        "journal",
        "kind",
        "spec",
        "algorithm",
        "dataset",
        "unit",
        "created",
        "version",
        "what",
        "source",
        "key",
        "randomness",
    }
    assert set(lines[0]) == head
    text = journal(ledger).read_text()
    assert "person-" not in text
    from base64 import b64encode

    assert not any(b64encode(sums).decode() in text for sums in exact)
    assert stat.S_IMODE(journal(ledger).stat().st_mode) == 0o600


def test_an_answer_is_on_the_disk_before_the_algorithm_sees_it(visits, ledger, goal, monkeypatch):
    seen, real = [], Session.receive

    def watched(self, answer):
        kept = Journal.seen(journal(ledger)).stored[-1].answer
        seen.append(kept == answer)
        real(self, answer)

    monkeypatch.setattr(Session, "receive", watched)
    release(visits, person="person", epsilon=1, box=BOX, ledger=ledger, output=goal)
    assert len(seen) >= 2 and all(seen)


def test_an_answer_of_reports_keeps_what_its_intervals_need(tmp_path):
    asked = Query(Counts(Leaves.at_level(Quadtree.world(depth=1), 1)), Fraction(1))
    answer = Answer(np.array([3, -1]), np.array([1.5]), 0.25, 40, 0.125, (0.5, 0.1))
    with Journal.begun(tmp_path, "one", {}) as journal:
        journal.ask(asked)
        journal.answer(answer)
    assert Journal.seen(tmp_path / "one.journal").stored[-1].answer == answer


def test_an_answer_that_could_not_be_stored_is_never_seen(visits, ledger, goal, monkeypatch):
    monkeypatch.setattr(Session, "receive", lambda *_: pytest.fail("an answer was seen"))

    def broken(handle, text, at):
        if b'"answers"' in bytes(text):
            raise OSError(28, "No space left on device")
        return real(handle, text, at)

    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", broken)
    with pytest.raises(FileError, match=r"journal .* could not be written .* make room on its disk.*hazemap recover 1"):
        release(visits, person="person", epsilon=1, box=BOX, ledger=ledger, output=goal)
    assert Journal.seen(journal(ledger)).open is not None


def test_no_room_for_an_answer_is_found_out_before_it_is_drawn(visits, ledger, goal, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Curator, "answer", lambda *_: pytest.fail("an answer was drawn"))
        patched.setattr(os, "posix_fallocate", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
        with pytest.raises(FileError, match="make room on its disk"):
            release(visits, person="person", epsilon=1, box=BOX, ledger=ledger, output=goal)
    recover(1, ledger=ledger)
    assert prices(ledger) == [1]


def test_a_line_that_was_cut_off_is_forgotten_and_one_in_the_middle_is_damage(visits, ledger, goal, monkeypatch):
    with monkeypatch.context() as patched:
        dies(patched, Release, "save")
        killed(visits, ledger, goal)
    path = journal(ledger)
    whole = path.read_bytes().rstrip(b"\0")
    lines = whole.splitlines(keepends=True)
    for cut in (1, 17, len(lines[-2]) // 2, len(lines[-2]) - 1):
        path.write_bytes(b"".join(lines[:-2]) + lines[-2][:cut])
        assert Journal.seen(path).answered == len(lines) // 2 - 2
    path.write_bytes(whole.replace(b'"asks"', b'"askz"', 1))
    with pytest.raises(FileError, match="damaged in the middle"):
        recover(1, ledger=ledger)


FORGED = {
    "no JSON": b"{",
    "no object": b"7",
    "a list": b"[]",
    "too deep": b"[" * 100_000,
    "no UTF-8": b'{"asks": "\xff"}',
    "an answer to nothing": b'{"answers": 0, "sums": "", "stddev": "", "kurtosis": 0, "people": null}',
    "half a number": b'{"answers": 0, "sums": "AAAA", "stddev": "AAAA", "kurtosis": 0, "people": null}',
    "an answer of no parts": b'{"answers": 0}',
    "paid again for nothing": b'{"again": 1}',
}


@pytest.mark.parametrize("line", FORGED.values(), ids=FORGED)
def test_a_journal_that_was_changed_by_hand_is_refused_in_words(tmp_path, line):
    """With checksums that fit: its owner may have made them."""
    path = tmp_path / "one.journal"
    lines = [b'{"journal": 1}', line]
    path.write_bytes(b"".join(hashlib.sha256(each).hexdigest()[:16].encode() + b" " + each + b"\n" for each in lines))
    for opened in (Journal.seen, Journal.reopened):
        with pytest.raises(FileError, match="no run wrote: it was changed by hand"):
            opened(path)


def test_a_run_that_is_going_on_is_left_alone(visits, ledger, goal, monkeypatch):
    states, real = [], Release.save

    def watched(self, path):
        [found] = recoverable(ledger)
        states.append(found.running)
        sweep(ledger)
        with pytest.raises(FileError, match="still going on"):
            recover(1, ledger=ledger)
        real(self, path)

    monkeypatch.setattr(Release, "save", watched)
    release(visits, person="person", epsilon=1, box=BOX, ledger=ledger, output=goal)
    assert states == [True]
    assert recoverable(ledger) == []


def test_a_journal_of_a_run_that_never_paid_is_swept(visits, ledger, goal, monkeypatch):
    with monkeypatch.context() as patched:
        dies(patched, Ledger, "charge")
        killed(visits, ledger, goal)
    assert journal(ledger).exists()
    sweep(ledger)
    assert not list(journal_folder(ledger).iterdir())
    with pytest.raises(InputError, match="holds no charge 1"):
        recover(1, ledger=ledger)


def test_a_ledger_that_was_lost_or_is_another_costs_nobody_their_answers(visits, ledger, goal, monkeypatch):
    with monkeypatch.context() as patched:
        dies(patched, Release, "save")
        killed(visits, ledger, goal)
    sweep(Ledger(ledger.path.with_name("other.sqlite")))  # it lies beside, and has another folder
    away = ledger.path.rename(ledger.path.with_name("backup"))
    with pytest.raises(LedgerError, match="is gone or empty"):
        sweep(ledger)  # it has to be brought back yet
    away.rename(ledger.path)
    link = ledger.path.parent.parent / "link.sqlite"
    link.symlink_to(ledger.path)
    recover(1, ledger=Ledger(link))
    assert Release.open(goal).statement.budget == PureDP(1)


def test_one_journal_that_cannot_be_read_hides_no_other(visits, ledger, goal, monkeypatch, capsys):
    for name in ("first.parquet", "second.parquet"):
        with monkeypatch.context() as patched:
            dies(patched, Release, "save")
            killed(visits, ledger, goal.with_name(name))
    torn = journal_folder(ledger) / f"{ledger.history()[0].run}.journal"
    content = torn.read_bytes()
    torn.write_bytes(content[:30] + b"?" + content[31:])
    (journal_folder(ledger) / "foreign.journal").write_bytes(b"")
    first, second = recoverable(ledger)
    assert "damaged" in first.state and second.state == "all answers are kept"
    assert main(["ledger", "history", "--ledger", str(ledger.path), "--json"]) == 0
    capsys.readouterr()
    assert main(["recover", "--all", "--ledger", str(ledger.path), "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert [each["charge"] for each in told["recovered"]] == [2]
    assert [each["charge"] for each in told["failed"]] == [1]
    assert torn.exists()
    assert Release.open(goal.with_name("second.parquet")).statement.budget == PureDP(1)


def test_a_file_of_the_same_day_is_not_taken_for_ones_own(visits, ledger, goal, monkeypatch):
    with monkeypatch.context() as patched:
        dies(patched, Release, "save")
        killed(visits, ledger, goal)
    created = Journal.seen(journal(ledger)).head["created"]
    monkeypatch.setattr(Statement, "__post_init__", lambda self: object.__setattr__(self, "created", created))
    release(visits, person="person", epsilon=1, box=BOX, ledger=ledger, output=goal)
    content = goal.read_bytes()
    with pytest.raises(FileError, match="exists: choose another name"):
        recover(1, ledger=ledger)
    assert goal.read_bytes() == content


def test_a_file_that_was_changed_is_not_read_because_a_source_was_named(visits, ledger, goal, monkeypatch):
    with monkeypatch.context() as patched:
        dies(patched, Journal, "ask", 2)
        killed(visits, ledger, goal)
    moved = visits.rename(visits.with_name("moved.parquet"))
    pq.write_table(pq.read_table(moved).slice(0, 10), visits)
    with pytest.raises(InputError, match=r"is about the file .*put it back where it was"):
        recover(1, ledger=ledger, source=moved)


def test_a_release_in_memory_is_not_lost_where_warnings_are_errors(visits, ledger, monkeypatch):
    monkeypatch.setattr(Release, "caution", "this map says next to nothing")  # as most of this price are
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(HazemapWarning, match="says next to nothing") as caught:
            release(visits, person="person", epsilon="0.001", box=BOX, ledger=ledger)
    assert "`hazemap recover 1`" in caught.value.__notes__[0]
    assert recover(1, ledger=ledger).statement.budget == PureDP("0.001")
    assert prices(ledger) == [Fraction(1, 1000)]


def test_a_file_that_another_program_wrote_during_a_run_is_not_replaced(visits, ledger, goal, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "end", lambda _: goal.write_bytes(b"of somebody else"))
        with pytest.raises(FileError, match=r"exists: choose.*`hazemap recover 1`"):
            release(visits, person="person", epsilon=1, box=BOX, ledger=ledger, output=goal)
    assert goal.read_bytes() == b"of somebody else"
    recover(1, ledger=ledger, output=goal.with_name("other.parquet"))
    assert prices(ledger) == [1]


def test_whoever_interrupts_a_run_or_has_no_memory_is_told_what_stands(visits, ledger, goal, monkeypatch):
    def interrupted(self, answer):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Session, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            release(visits, person="person", epsilon=1, box=BOX, ledger=ledger, output=goal)
    assert "`hazemap recover 1`" in caught.value.__notes__[0]
    real = Ledger.charge

    def charged(self, *arguments):
        real(self, *arguments)
        raise MemoryError  # after the charge is on the disk, and before anybody has its number

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "charge", charged)
        with pytest.raises(MemoryError):
            release(visits, person="person", epsilon=2, box=BOX, ledger=ledger, output=goal)
    for charge in (1, 2):
        recover(charge, ledger=ledger, output=goal.with_name(f"{charge}.parquet"))
    assert prices(ledger) == [1, 2]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("kind", "globe", "is of another version of hazemap"),
        ("randomness", "dice", "is of another version of hazemap"),
        ("spec", {"epsilon": "1", "resolution": "9"}, "is of another version of hazemap"),
        ("dataset", "oslo", "is about another charge than 1"),
        ("unit", {"kind": "row", "model": "full"}, "is about another charge than 1"),
    ],
)
def test_a_journal_of_another_version_or_charge_is_refused_in_words(
    field, value, words, visits, ledger, goal, monkeypatch
):
    with monkeypatch.context() as patched:
        dies(patched, Release, "save")
        killed(visits, ledger, goal)
    first, *others = journal(ledger).read_bytes().rstrip(b"\0").split(b"\n")
    text = json.dumps(json.loads(first[17:]) | {field: value}).encode()
    line = hashlib.sha256(text).hexdigest()[:16].encode() + b" " + text
    journal(ledger).write_bytes(b"\n".join([line, *others]))
    assert len(recoverable(ledger)) == 1
    with pytest.raises(FileError, match=words):
        recover(1, ledger=ledger)
    assert not goal.exists() and prices(ledger) == [1]


def test_a_layer_that_was_changed_since_is_noticed(tmp_path):
    file = tmp_path / "places.gpkg"
    file.write_bytes(b"one")
    before = opening.fingerprint(LocalFiles(f"{file}:visits"))
    file.write_bytes(b"another")
    assert opening.fingerprint(LocalFiles(f"{file}:visits")) != before


def test_what_could_not_be_opened_again_is_refused_before_the_charge(visits, ledger, goal):
    @dataclass(frozen=True)
    class Stranger:
        tree: object
        bounding: object

        def rounds(self, prices):
            return Adaptive(self.tree, self.bounding).rounds(prices)

        @property
        def disclosure(self):
            return counted()

    from hazemap import Adaptive, AtMostRows, Box, Quadtree
    from hazemap.queries.algorithm_disclosure import counted

    made = Stranger(Quadtree.around(Box.parse(BOX), 8), AtMostRows(1))
    spec = ReleaseSpec(TableSpec(str(visits), "person"), PureDP(1), output=str(goal), known=made)
    with pytest.raises(InputError, match="this Stranger could be written but never opened again"):
        run_release(spec, ledger=ledger)
    assert ledger.history() == []
    assert not goal.exists()


def test_the_trust_model_reads_the_rows_and_returns_nothing(visits):
    """What was computed of rows outside it once: exact sums, before anything was paid."""
    table = hazemap.open_table(visits, person="person")
    question = next(hazemap.Flat(hazemap.Quadtree.world(4), level=4).rounds(Curator(table).prices(PureDP(1))))
    assert Curator(table).prepare(question) is None
    runs = "".join(path.read_text() for path in (Path(hazemap.__file__).parent / "runs").glob("*.py"))
    assert ".total(" not in runs and ".votes(" not in runs


def test_an_answer_that_grows_has_room_before_it_is_drawn(ledger, goal, monkeypatch):
    """Of a tree that is grown nobody knows how large: on a nearly full disk it was drawn, lost and paid again."""
    taken, take, write = [0], os.posix_fallocate, os.pwrite

    def only_what_was_taken(handle, text, at):
        if at + len(text) > max(taken[0], 1 << 16):
            raise OSError(28, "No space left on device")
        return write(handle, text, at)

    def take_that(handle, at, length):
        taken[0] = at + length
        take(handle, at, length)

    chance = np.random.default_rng(3)
    lon, lat = chance.uniform(13.2, 13.6, 60_000), chance.uniform(52.4, 52.6, 60_000)
    crowd = {"person": np.arange(60_000), "lon": lon, "lat": lat}
    options = {"person": "person", "epsilon": 20, "box": BOX, "method": "privtree", "ledger": ledger, "output": goal}
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", take_that)
        patched.setattr(os, "pwrite", only_what_was_taken)
        made = release(pa.table(crowd), **options)
    assert 12 * len(made.transcript[0].answer.sums) > 1 << 17  # more than was taken for it once
    assert len(ledger.history()) == 1

    def full(handle, at, length):
        if length > 1 << 20:
            raise OSError(28, "No space left on device")
        take(handle, at, length)

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(FileError, match=r"make room on its disk, 63\.0 MB or more"):
            release(pa.table(crowd), **options, overwrite=True)
        with pytest.raises(FileError, match="make room on its disk"):
            recover(2, ledger=ledger, source=pa.table(crowd))
    recover(2, ledger=ledger, source=pa.table(crowd), overwrite=True)
    assert prices(ledger) == [20, 20]  # however often it was tried
