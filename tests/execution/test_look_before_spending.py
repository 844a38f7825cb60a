"""A release looks before it spends: it stops on paid noisy numbers alone, and goes on where it is told to."""

import json
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hazemap
from hazemap.algorithms.first_look import LOOK
from hazemap.cli.main import main
from hazemap.errors import CapExceeded, InputError, Stopped
from hazemap.execution.crash_recovery import recover, recoverable
from hazemap.execution.run import journal_folder
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.ledger import Ledger, LedgerAccount
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Session
from hazemap.releases import Release
from hazemap.trust.curator import Curator

BERLIN, SWAPPED = "13.2,52.4,13.6,52.6", "52.4,13.2,52.6,13.6"

pytestmark = pytest.mark.usefixtures("looks")


@pytest.fixture(autouse=True)
def the_same_noise(monkeypatch) -> None:
    """Whether a look stops is chance, 1 in 20 of those with nobody does not: here it is the same each time."""
    monkeypatch.setattr(Stream, "from_os", classmethod(lambda _cls: Stream.fixed(b"the luck of looks")))


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "home" / "ledger.sqlite")


@pytest.fixture
def visits(points, tmp_path):
    pq.write_table(pa.table(points), tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


def publish(visits, ledger, tmp_path, **more):
    asked = {"person": "person", "epsilon": 1, "box": BERLIN, "dataset": "nyc", "ledger": ledger}
    return hazemap.release(visits, output=str(tmp_path / "map.parquet"), **{**asked, **more})


@pytest.mark.parametrize(
    ("budget", "parts"),
    [
        ({"epsilon": 1}, (PureDP("0.1"), PureDP("0.9"))),
        ({"epsilon": None, "rho": "0.5"}, (ZCDP("0.05"), ZCDP("0.45"))),
        ({"epsilon": 2, "delta": "1e-6"}, tuple(ZCDP(ApproxDP(2, "1e-6").rho * each) for each in (LOOK, 1 - LOOK))),
    ],
)
def test_a_release_is_paid_in_two_charges_that_make_up_its_price(budget, parts, visits, ledger, tmp_path):
    made = publish(visits, ledger, tmp_path, **budget)
    look, rest = ledger.history()
    assert (look.charge.price, rest.charge.price) == parts
    assert look.released and rest.released and look.file == rest.file and look.statement == made.statement
    costs = [each.epsilon if isinstance(each, PureDP) else each.rho for each in parts]
    assert made.statement.paid.value == sum(costs)
    assert recoverable(ledger) == [] and list(journal_folder(ledger).iterdir()) == []
    assert Release.open(tmp_path / "map.parquet").statement == made.statement


def test_a_method_whose_first_round_is_dear_is_paid_at_once(visits, ledger, tmp_path):
    publish(visits, ledger, tmp_path, method="flat:3", box=SWAPPED)
    assert [each.charge.price for each in ledger.history()] == [PureDP(1)]


def test_a_swapped_box_stops_after_a_tenth_and_can_be_continued(visits, ledger, tmp_path):
    with pytest.raises(Stopped, match=r"nobody stands out .* box is the right one, .*not swapped") as stopped:
        publish(visits, ledger, tmp_path, box=SWAPPED)
    stop = stopped.value
    assert stop.why in ("outside", "nobody") and (stop.charge, stop.exit_code) == (1, 7)
    assert stop.statement.budget == PureDP("0.1") and stop.statement.paid.value == Fraction(1, 10)
    assert [each.charge.price for each in ledger.history()] == [PureDP("0.1")]
    assert not (tmp_path / "map.parquet").exists()
    [left] = recoverable(ledger)
    assert left.state.startswith("stopped after a look") and not left.ended
    with pytest.raises(Stopped) as again:
        recover(1, ledger=ledger)
    assert str(again.value) == str(stop)
    pq.write_table(pq.read_table(visits).slice(1), visits)
    with pytest.raises(InputError, match="changed"):
        recover(1, ledger=ledger, go_on=True)
    recover(1, ledger=ledger, go_on=True, same_table=True)
    assert [each.charge.price for each in ledger.history()] == [PureDP("0.1"), PureDP("0.9")]
    assert Release.open(tmp_path / "map.parquet").nowhere.unbiased > 3_000 and recoverable(ledger) == []


def test_no_box_is_a_stop_and_no_map_of_the_world(visits, ledger, tmp_path):
    few = pq.read_table(visits)
    pq.write_table(few.filter(pa.compute.less(few["person"], 400)), visits)
    with pytest.raises(Stopped, match=r"no tile of 156 km shows [\d,]+ people or more") as stopped:
        publish(visits, ledger, tmp_path, box=None)
    assert stopped.value.why == "box"
    publish(visits, ledger, tmp_path, box=None, go_on=True)
    assert [each.charge.price for each in ledger.history()] == [PureDP("0.1"), PureDP("0.1"), PureDP("0.9")]


def test_nothing_is_charged_unless_the_cap_has_room_for_both(visits, ledger, tmp_path):
    ledger.cap("nyc", PureDP("0.5"))
    with pytest.raises(CapExceeded):
        publish(visits, ledger, tmp_path)
    assert ledger.history() == []
    with pytest.raises(CapExceeded):
        ledger.account("nyc", "a map", hazemap.Unit.person("user", "text"), "a", whole=PureDP(1)).charge(PureDP("0.1"))
    assert ledger.history() == []


def test_where_others_spend_the_rest_meanwhile_the_run_waits_for_room(visits, ledger, tmp_path, monkeypatch):
    ledger.cap("nyc", PureDP(1))
    real = Session.go_on

    def others(self):
        if not ledger.history("nyc")[1:]:
            unit = ledger.history()[0].charge.unit
            ledger.charge("nyc", PureDP("0.5"), "another map", unit)
        real(self)

    monkeypatch.setattr(Session, "go_on", others)
    with pytest.raises(CapExceeded, match=r"has paid ε = 0.1 for this \(charge 1\)"):
        publish(visits, ledger, tmp_path)
    with pytest.raises(CapExceeded):
        recover(1, ledger=ledger)
    ledger.cap("nyc", PureDP(2))
    recover(1, ledger=ledger)
    assert Release.open(tmp_path / "map.parquet").statement.paid.value == Fraction(3, 2)
    assert [10 * each.charge.price.epsilon for each in ledger.history()] == [1, 5, 9]


class Killed(BaseException):
    """The process dies here."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["rest", "line"])
def test_a_run_killed_between_its_charges_pays_the_rest_once(when, what, visits, ledger, tmp_path, monkeypatch):
    """Before and after the second charge, and the line of the journal that says it."""
    from hazemap.execution.journal import Journal

    home, name = (LedgerAccount, "_rest") if what == "rest" else (Journal, "paid")
    real, calls = getattr(home, name), []

    def dies(self, *arguments):
        calls.append(1)
        if what == "line" and len(calls) < 2:
            return real(self, *arguments)
        if when == "after":
            real(self, *arguments)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(home, name, dies)
        with pytest.raises(Killed):
            publish(visits, ledger, tmp_path)
    recover(1, ledger=ledger)
    assert [each.charge.price for each in ledger.history()] == [PureDP("0.1"), PureDP("0.9")]
    made = Release.open(tmp_path / "map.parquet")
    assert made.statement.paid.value == 1 and ledger.history()[0].statement == made.statement


@pytest.mark.parametrize("go_on", [False, True])
def test_a_run_killed_in_its_look_decides_when_it_is_taken_up(go_on, visits, ledger, tmp_path, monkeypatch):
    def dies(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Curator, "answer", dies)
        with pytest.raises(Killed):
            publish(visits, ledger, tmp_path, box=SWAPPED)
    if go_on:
        recover(1, ledger=ledger, go_on=True)
        assert Release.open(tmp_path / "map.parquet").statement.budget == PureDP(1)
    else:
        with pytest.raises(Stopped):
            recover(1, ledger=ledger)
    rest = [PureDP("0.9")] if go_on else []
    assert [each.charge.price for each in ledger.history()] == [PureDP("0.1"), PureDP("0.005"), *rest]


def test_the_command_says_what_a_stop_cost_and_how_to_go_on(visits, ledger, tmp_path, capsys):
    command = ["release", str(visits), "--person", "person", "--epsilon", "1", f"--box={SWAPPED}", "--no-cap"]
    command += ["-o", str(tmp_path / "map.parquet"), "--ledger", str(ledger.path)]
    assert main(command) == 7
    assert "has paid ε = 0.1 for this look (charge 1)" in capsys.readouterr().err
    assert main(["recover", "--all", "--ledger", str(ledger.path)]) == 0
    assert "nothing was recovered" in capsys.readouterr().out
    assert main(["ledger", "history", "--ledger", str(ledger.path)]) == 0
    assert "stopped after its look" in capsys.readouterr().out
    assert main([*command, "--json"]) == 7
    said = json.loads(capsys.readouterr().out)["error"]
    assert (said["type"], said["charge"]) == ("Stopped", 2) and said["why"] in ("outside", "nobody")
    assert said["statement"]["budget"] == {"kind": "PureDP", "epsilon": "1/10"}
    assert main(["recover", "1", "--continue", "--ledger", str(ledger.path), "--json"]) == 0


def test_a_price_of_which_a_part_cannot_be_written_down_is_refused_before_its_look(visits, ledger, tmp_path):
    with pytest.raises(InputError, match="digits"):
        publish(visits, ledger, tmp_path, epsilon=Fraction(10**150 - 1, 10**148 + 1), no_cap=True)
    assert not ledger.datasets()
