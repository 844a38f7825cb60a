"""A person's device from the command line: rows in, a server's questions answered, everything on the record."""

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uvicorn

from hazemap.algorithms import Flat
from hazemap.codec import dumps
from hazemap.federated.device.account.account_clock import AccountClock
from hazemap.federated.device.account.account_head import ForgottenCharges
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.coordinator import Coordinator
from hazemap.federated.server.device_enrolment import Admission
from hazemap.federated.server.http_routes import Application
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

TOKEN, OPERATOR = "enrolment", "operator"
FEW = "[cohort]\npeople = 20\nsurvivors = 15\n[question]\nfinest = 0\n"


@pytest.fixture
def server(tmp_path):
    """A real one, on a port of its own: its address."""
    folder = tmp_path / "server"
    folder.mkdir()
    store = CampaignStore(folder / "server.sqlite")
    application = Application(Coordinator(store, folder, Ledger(folder / "ledger.sqlite"), Admission(TOKEN)), OPERATOR)
    config = uvicorn.Config(application, port=0, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
    serving = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(serving.serve()))
    thread.start()
    while not serving.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{serving.servers[0].sockets[0].getsockname()[1]}"
    serving.should_exit = True
    thread.join()
    store.close()


@pytest.fixture
def rows(tmp_path):
    """One person's file."""
    now = int(time.time())
    table = pa.table(
        {
            "lon": [13.3, 13.4, 13.5],
            "lat": [52.5, 52.5, 52.5],
            "ts": pa.array([now, now - 86_400, now - 90 * 86_400]).cast(pa.timestamp("s", "UTC")),
        }
    )
    pq.write_table(table, tmp_path / "visits.parquet")
    return "visits.parquet"


KEPT = {"added": 3, "rows": 2, "older": 1, "days": 30}


def test_rows_are_kept_and_the_old_ones_are_gone(hazemap, rows):
    done = hazemap("device", "add", rows, "--keep", "30", "--json")
    assert (done.code, done.json) == (0, {**KEPT, "undated": 0, "unread_times": 0})
    assert "3 rows read, 5 kept now, each for 365 days" in hazemap("device", "add", rows).out
    status = hazemap("device", "status", "--json").json
    assert (status["rows"], status["server"], status["spent"], status["campaigns"]) == (5, None, "0", {})
    assert "a device that is not enrolled: 5 rows" in hazemap("device", "status").out


def test_a_store_that_was_put_back_has_nothing_left_to_spend(hazemap, rows, tmp_path):
    hazemap("device", "add", rows, "--store", "copy.sqlite")
    with EncryptedStore.opened(tmp_path / "copy.sqlite") as store:
        assert store.commit([[ForgottenCharges(store, 1).charge(7, datetime.now(UTC))]]) == [None]
    facts = hazemap("device", "status", "--store", "copy.sqlite", "--json").json
    assert facts["spent"] == facts["period"] and facts["campaigns"] == {}


def test_rows_of_which_nobody_knows_how_old_they_are_are_not_kept_and_that_is_said(hazemap, tmp_path):
    (tmp_path / "unix.csv").write_text("lon,lat,timestamp\n" + "13.4,52.5,1546300800\n" * 24)
    for also in ((), ("--time-format", "seconds")):
        done = hazemap("device", "add", "unix.csv", "--keep", "30", *also)
        assert "24 rows read, 0 kept now, each for 30 days; 24 were older than that and are gone" in done.out
        assert ("of 24 the time cannot be read" in done.out) == (not also)
    (tmp_path / "undated.csv").write_text("lon,lat\n13.4,52.5\n")
    assert "1 say nothing of when, so they count as of now" in hazemap("device", "add", "undated.csv").out


def test_a_new_device_has_nothing_on_its_log(hazemap, rows):
    hazemap("device", "add", rows)
    assert "nothing was ever asked" in hazemap("device", "log").out
    assert hazemap("device", "log", "--json").json == {"log": []}


def test_without_a_store_every_reader_says_what_to_do(hazemap):
    for command in ("log", "status", "run", "forget"):
        done = hazemap("device", command)
        assert done.code == 2
        assert "there is no device at" in done.err


def test_the_policy_is_printed_with_comments_and_written_once(hazemap, home):
    printed = hazemap("device", "policy").out
    assert Policy.parse(printed) == Policy()
    assert "# The most ε that one campaign, or one analysis in its period, may cost" in printed
    assert hazemap("device", "policy", "--write").code == 0
    file = home / "policy.toml"
    file.write_text(file.read_text().replace("days = 30", "days = 7"))
    assert "days = 7" in hazemap("device", "policy").out
    again = hazemap("device", "policy", "--write")
    assert again.code == 2 and "exists: edit it" in again.err
    assert "days = 7" in file.read_text()


def test_rows_are_forgotten_and_then_everything(hazemap, rows, home):
    hazemap("device", "add", rows)
    assert hazemap("device", "forget", "--yes").code == 0
    assert hazemap("device", "status", "--json").json["rows"] == 0
    assert hazemap("device", "forget", "--everything", "--yes").code == 0
    assert list(home.glob("device*")) == []


def test_a_passphrase_opens_what_it_closed(hazemap, rows, monkeypatch):
    monkeypatch.setenv("HAZEMAP_DEVICE_PASSPHRASE", "correct horse")
    assert hazemap("device", "add", rows).code == 0
    monkeypatch.delenv("HAZEMAP_DEVICE_PASSPHRASE")
    done = hazemap("device", "status")
    assert done.code == 2 and "opened by a passphrase" in done.err


def test_only_https_or_this_machine_is_a_server(hazemap):
    done = hazemap("device", "enrol", "--server", "http://maps.example", "--token", "x")
    assert done.code == 2 and "is not HTTPS" in done.err


def test_a_device_enrols_with_the_token_and_with_no_other(hazemap, server, tmp_path):
    wrong = hazemap("device", "enrol", "--server", server, "--token", "wrong")
    assert wrong.code == 4 and "no enrolment code or token" in wrong.err
    (tmp_path / "token").write_text(TOKEN + "\n")
    done = hazemap("device", "enrol", "--server", server, "--token-file", "token", "--json")
    assert done.code == 0, done.err
    assert done.json["new"] == 1
    again = hazemap("device", "enrol", "--server", server, "--token", TOKEN, "--json")
    assert (again.json["new"], again.json["devices"]) == (0, done.json["devices"])
    idle = hazemap("device", "run", "--until-idle", "0.5")
    assert "1 devices: 0 answers" in idle.out


@pytest.mark.slow
def test_many_devices_answer_a_campaign_and_can_show_what_they_sent(hazemap, server, visits, tmp_path):
    (tmp_path / "few.toml").write_text(FEW)
    tree = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 4)
    cohort = Cohort(30, 30)
    campaign = Campaign("berlin", "a test", "town", Flat(tree, 2), PureDP(1), cohort, Deadlines.all(600), wait=600)
    begun = httpx.post(
        f"{server}/v1/campaigns", content=dumps(campaign), headers={"Authorization": f"Bearer {OPERATOR}"}
    )
    assert begun.status_code == 201, begun.text
    options = ("--table", "visits.parquet", "--person", "person", "--server", server, "--token", TOKEN)
    more = ("--policy", "few.toml", "--store", "many.sqlite", "--until-idle", "20", "--json")
    done = hazemap("device", "--many", "30", *options, *more)
    assert done.code == 0, done.err
    assert (done.json["devices"], done.json["finished"], done.json["answers"]) == (30, 30, 6 * 30)
    assert done.json["sent"] > 30 * 1_000
    status = httpx.get(f"{server}/v1/campaigns/berlin", headers={"Authorization": f"Bearer {OPERATOR}"}).json()
    assert status["state"] == "done", status["reason"]
    [line] = hazemap("device", "log", "--device", "7", "--store", "many.sqlite", "--json").json["log"]
    assert (line["campaign"], line["round"], line["epsilon"]) == ("berlin", 1, "1")
    shown = hazemap("device", "log", "--device", "7", "--store", "many.sqlite").out
    assert "how many people are in each of 16 cells" in shown and "ε = 1 charged" in shown
    assert "berlin: ε = 1 of 1" in hazemap("device", "status", "--device", "7", "--store", "many.sqlite").out


def test_many_devices_need_as_many_people(hazemap, visits):
    few = hazemap("device", "--many", "1000000", "--table", "visits.parquet", "--token", "x")
    assert few.code == 2 and "too few" in few.err
    none = hazemap("device", "--many", "10", "--token", "x")
    assert none.code == 2 and "needs --table" in none.err


def test_the_account_s_time_goes_on_from_a_date_that_somebody_confirms_and_from_no_other(hazemap, rows, home):
    hazemap("device", "add", rows)
    path = home / "device.sqlite"
    with EncryptedStore.opened(path) as store:
        AccountClock(store).keep(datetime.now(UTC) - timedelta(days=3))
    shown = hazemap("device", "clock")
    assert shown.code == 0 and "so they come back 72 hours later, unless you confirm the date" in shown.out
    wrong = hazemap("device", "clock", "--today", "2020-02-30")
    assert wrong.code == 2 and "a date such as" in wrong.err
    other = hazemap("device", "clock", "--today", "2020-02-29")
    assert other.code == 2 and "not 2020-02-29: put it right first" in other.err
    today = datetime.now(UTC).date().isoformat()
    assert hazemap("device", "clock", "--today", today, "--json").json["behind"] < 60
    assert "later" not in hazemap("device", "clock").out
