"""A task that is over is forgotten, after what it holds was there to be fetched for as long as its file says."""

import asyncio
import os
from dataclasses import replace

import pytest
from tests.federated.aggregator.two_servers import PRECISION, a_task

from hazemap.errors import InputError, StoreError
from hazemap.federated.aggregator import aggregator_process
from hazemap.federated.aggregator.aggregator_process import AggregatorProcess, _Running
from hazemap.federated.aggregator.hpke_key_ring import HpkeKeyStore
from hazemap.federated.aggregator.schema import SCHEMA
from hazemap.federated.aggregator.task_file import KEPT, new_task_files, over, retention
from hazemap.federated.aggregator.task_records import register_tasks
from hazemap.federated.protocols.dap.basic_types import DapRole, TimeInterval
from hazemap.federated.protocols.dap.client import DapClient
from hazemap.federated.protocols.dap.collection_messages import CollectionJobResp
from hazemap.federated.protocols.dap.collector import Collector
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.upload_messages import UploadRequest
from hazemap.federated.service.state_folder import StateFolder
from hazemap.federated.service.store import Store, Write
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

ROLES = {"leader": DapRole.LEADER, "helper": DapRole.HELPER}
URLS = {role: f"https://{role}.example/" for role in ROLES}
EXPIRY = 100 * PRECISION
END = 1_001 * PRECISION
TABLES = [
    "reports",
    "jobs",
    "claims",
    "shards",
    "collected",
    "questions",
    "aggregate_shares",
    "collections",
    "rejections",
]


class Pair:
    """Both aggregators as processes with folders of their own; `now` is their clock."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.now, self.stores, self.running = folder, END - PRECISION, {}, {}
        monkeypatch.setattr(aggregator_process, "time", lambda: self.now)
        for role in ROLES:
            self.start(role)

    def start(self, role, looked=True):
        """Begin, or begin again; a process before may have looked at the clock until just now."""
        if role in self.stores:
            self.stores[role].close()
        folder = self.folder / role
        folder.mkdir(exist_ok=True)
        self.stores[role] = Store(folder / "a.sqlite", SCHEMA)
        process = AggregatorProcess(role, StateFolder(folder), (), take_tasks_at=URLS[role])
        if looked:
            self.stores[role].write_now(Write("DELETE FROM facts WHERE name = 'clock'"))
        keys = HpkeKeyStore(self.stores[role], bytes(32))
        self.running[role] = _Running(process, self.stores[role], keys)
        self.running[role]._shelf._clock = lambda: self.now

    def take(self, files):
        for role in ROLES:
            self.running[role]._shelf.take(files[role].to_toml().encode(), self.running[role]._begin)

    def service(self, role, task):
        return self.running[role]._services[task.id]

    def ring(self, role):
        return self.running[role]._keys.ring()

    def look(self, role):
        asyncio.run(self.running[role]._end_tasks(self.now))

    def exchange(self, task):
        leader, helper = self.service("leader", task), self.service("helper", task)
        for request in leader.requests(self.ring("leader"), self.now):
            if request.kind == "init":
                outcome = helper.init_job(request.body, self.ring("helper"), self.now)
            else:
                outcome = helper.aggregate_share(request.body, self.ring("helper"))
            leader.answered(request, outcome.resource, outcome.message, self.ring("leader"))

    def rows(self, role):
        return {table: self.stores[role].read(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}

    def close(self):
        for store in self.stores.values():
            store.close()


@pytest.fixture
def pair(tmp_path, monkeypatch):
    made = Pair(tmp_path, monkeypatch)
    yield made
    made.close()


def collected(pair, files):
    """A batch of four reports that was collected: the job and its answer, and the collector's request."""
    task = files["leader"].task
    keys = [pair.running[role]._keys.announced(pair.now).configs[0] for role in ROLES]
    client = DapClient(task, vdaf_of(task), *keys)
    made = [client.report(1, pair.now, os.urandom(client.randomness_bytes)) for _ in range(4)]
    leader = pair.service("leader", task)
    _, writes = leader.upload(UploadRequest(tuple(made)).to_bytes(), pair.ring("leader"), pair.now)
    pair.stores["leader"].write_now(*writes)
    config = files["collector"].collector
    collector = Collector(task, vdaf_of(task), config, HpkeKeyPair(Kem(config.kem), files["collector"].collector_key))
    request = collector.request(TimeInterval(pair.now // PRECISION, 1))
    job = leader.collect(request.to_bytes()).resource
    for _ in range(4):
        pair.exchange(task)
    answer = leader.poll_collection(job).message
    assert collector.result(request, CollectionJobResp.from_bytes(answer)).sums == (4,)
    return job, answer


def task_files(expiry=EXPIRY, **options):
    return new_task_files(a_task(interval=TimeInterval(1_000, 1), **options), os.urandom, expiry, 100_000)


def test_results_stay_as_long_as_a_task_s_file_says_and_then_nothing_does(pair, caplog):
    files, other = task_files(), task_files(None, task_id=b"o" * 32)
    pair.take(files)
    pair.take(other)
    job, answer = collected(pair, files)
    pair.now = END + EXPIRY
    for role in ROLES:
        pair.start(role)  # a restart, on the last day
        pair.look(role)
        assert pair.running[role].tasks == 2
    assert pair.service("leader", files["leader"].task).poll_collection(job).message == answer
    pair.now += 1
    caplog.set_level("INFO")
    pair.start("leader")  # one is started again, one goes on
    pair.look("helper")
    assert pair.running["helper"].tasks == 1 and sum(pair.rows("helper").values()) > 0  # requests may be under way
    pair.look("helper")
    for role in ROLES:
        assert pair.running[role].tasks == 1 and set(pair.rows(role).values()) == {0}
        assert [file.task.id for file in pair.running[role]._shelf.files()] == [b"o" * 32]
    assert caplog.text.count("its reports, shares and results are forgotten") == 2
    assert "has been over for 4 days" in caplog.text


def test_nobody_begins_a_task_anew_that_is_forgotten(pair):
    """Its reports, sent once more, would be added up with new noise."""
    files = task_files()
    pair.take(files)
    collected(pair, files)
    pair.now = END + EXPIRY + 1
    for role, number in ROLES.items():
        pair.start(role)
        with pytest.raises(InputError, match="over"):
            pair.running[role]._shelf.take(files[role].to_toml().encode(), pair.running[role]._begin)
        longer = replace(files[role], report_expiry=10 * EXPIRY)
        with pytest.raises(InputError, match="over"):
            pair.running[role]._shelf.take(longer.to_toml().encode(), pair.running[role]._begin)
        assert not pair.running[role]._shelf.files()
        with pytest.raises(InputError, match="over, and was forgotten"):
            register_tasks(pair.stores[role], (longer,), number)


@pytest.mark.parametrize("writes", range(11))
def test_a_server_that_dies_while_it_forgets_goes_on_at_its_next_start(pair, writes, monkeypatch):
    files = task_files()
    pair.take(files)
    collected(pair, files)
    pair.now = END + EXPIRY + 1
    done, write_now = [], Store.write_now

    def dying(store, *each):
        if "facts" in each[0].sql:  # the clock
            return write_now(store, *each)
        if len(done) == writes:
            raise StoreError("the disk is full")
        done.append(each)
        return write_now(store, *each)

    monkeypatch.setattr(Store, "write_now", dying)
    pair.start("leader")  # it starts all the same
    monkeypatch.setattr(Store, "write_now", write_now)
    assert pair.running["leader"].tasks == 0
    pair.look("leader")
    assert set(pair.rows("leader").values()) == {0} and not pair.running["leader"]._shelf.files()


def test_a_task_without_an_end_is_never_over():
    endless, ended = new_task_files(a_task(), os.urandom, open_reports=9)["leader"], task_files(None)["leader"]
    assert not over(endless, 1 << 60)
    assert retention(ended) == KEPT
    assert not over(ended, END + KEPT) and over(ended, END + KEPT + 1)


WEEK = 7 * 86_400


def test_nothing_is_lost_by_a_clock_that_was_weeks_ahead_for_less_than_a_day(pair, caplog):
    """Reports, claims, keys and tasks were deleted by it, and a key that it made was the last for as many weeks."""
    files = task_files()
    pair.take(files)
    job, answer = collected(pair, files)
    [key], before = pair.running["leader"]._keys.announced(pair.now).configs, pair.rows("leader")
    right = pair.now
    for pair.now in (right + 20 * WEEK, right + 20 * WEEK + 86_399, right):
        asyncio.run(pair.running["leader"]._look(pair.now))
        assert pair.ring("leader").knows(key.id) and pair.rows("leader") == before
    assert "the clock is 140.0 days from where it was" in caplog.text
    assert pair.service("leader", files["leader"].task).poll_collection(job).message == answer
    pair.stores["leader"].write_now(Write("UPDATE facts SET value = ? WHERE name = 'clock'", (f"{right} {right}",)))
    for days in range(12 * 7 + 1):
        asyncio.run(pair.running["leader"]._look(right + days * 86_400))
    pair.now = right + 12 * WEEK + 3_600
    [newer] = pair.running["leader"]._keys.announced(pair.now).configs
    assert newer != key, "a key that is of a time to come was waited for"
    assert set(pair.rows("leader").values()) == {0}


def test_a_clock_that_stays_ahead_is_believed_after_a_day(pair):
    pair.take(task_files())
    start = pair.now
    for pair.now in (start + 20 * WEEK, start + 20 * WEEK + 86_400):
        asyncio.run(pair.running["helper"]._look(pair.now))
        asyncio.run(pair.running["helper"]._look(pair.now))
    assert pair.running["helper"].tasks == 0 and not pair.running["helper"]._shelf.files()


def test_a_restart_does_not_make_a_clock_believed(pair):
    pair.take(task_files())
    asyncio.run(pair.running["leader"]._look(pair.now))
    pair.now += 20 * WEEK
    pair.start("leader", looked=False)
    assert pair.running["leader"].tasks == 1
    pair.start("leader", looked=False)
    assert pair.running["leader"].tasks == 1
