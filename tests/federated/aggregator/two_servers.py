"""Leader, helper and collector of one task in one process, over a network that loses, and machines that die."""

import random
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from uuid import uuid4

import numpy as np

from hazemap.federated.aggregator.hpke_key_ring import SUITE, DecryptionKeyRing, HpkeKey
from hazemap.federated.aggregator.schema import SCHEMA
from hazemap.federated.aggregator.task_services import LEASE, HelperService, LeaderService, RequestKind
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import DapRole, TimeInterval
from hazemap.federated.protocols.dap.client import DapClient
from hazemap.federated.protocols.dap.collection_messages import CollectionJobResp
from hazemap.federated.protocols.dap.collector import Collector
from hazemap.federated.protocols.dap.privacy_parameters import PrivacyParameters
from hazemap.federated.protocols.dap.problem_types import DapProblem
from hazemap.federated.protocols.dap.report_sizes import longest_result
from hazemap.federated.protocols.dap.task import BatchMode, DapTask
from hazemap.federated.protocols.dap.upload_messages import UploadRequest
from hazemap.federated.protocols.dap.vdaf_configuration import CountConfiguration, HpkeConfig
from hazemap.federated.service.store import Store, Write
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.vdaf.hpke import HpkeKeyPair
from hazemap.vdaf.prio3 import prio3_count

PRECISION = 3_600
NOISE = PrivacyParameters.of(DiscreteLaplace(Fraction(20)), levels=1, epsilon=Fraction(1, 20))


def last_lease(leases):
    """The end of the last lease of a request; 0 if there is none."""
    return max((until for _, until in leases._leases.values()), default=0)


class Crash(Exception):
    """The machine dies."""


class MemoryDatabase:
    """SQLite in memory that outlives its connections, as a disk outlives a process."""

    failures = (sqlite3.Error,)
    contradictions = (sqlite3.IntegrityError,)

    def __init__(self):
        self.name = f"file:{uuid4().hex}?mode=memory&cache=shared"
        self.disk = self.connect()

    def connect(self):
        db = sqlite3.connect(self.name, uri=True, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA read_uncommitted = 1")  # else who reads a shared cache locks its tables for who writes
        return db

    own = connect

    def spelled(self, sql):
        return sql

    def emptied(self, writer):
        pass


class DyingStore(Store):
    """A store whose machine can die just before or just after a commit."""

    dies = None

    def write_now(self, *writes):
        dies, self.dies = self.dies, None
        if dies == "before":
            raise Crash
        super().write_now(*writes)
        if dies == "after":
            raise Crash


def key_of(number, seed):
    pair = HpkeKeyPair.derived(SUITE.kem, bytes([seed]) * 32)
    return HpkeConfig(number, SUITE.kem, SUITE.kdf, SUITE.aead, pair.public), pair


def a_task(least=3, privacy=None, mode=BatchMode.TIME_INTERVAL, measured=None, **options):
    return DapTask.created(
        options.pop("task_id", bytes(range(32))),
        options.pop("info", b"test"),
        "https://leader.example/",
        options.pop("helper", "https://helper.example/"),
        PRECISION,
        least,
        mode,
        measured or CountConfiguration(),
        privacy=privacy,
        **options,
    )


@dataclass
class Server:
    """One aggregator's machine: its disk, and the process that runs now."""

    role: DapRole
    task: AggregatorTask
    draw: object
    database: MemoryDatabase = field(default_factory=MemoryDatabase)
    store: DyingStore | None = None
    service: object = None

    def start(self):
        if self.store is not None:
            self.store.close()
        self.store = DyingStore(self.database, SCHEMA)
        kind = LeaderService if self.role is DapRole.LEADER else HelperService
        self.service = kind(self.store, 1, self.task, self.draw)


class TwoServers:
    """A task with both servers, its collector and a client; `now` is its clock, and `draw` gives a server's noise."""

    def __init__(self, seed=0, least=3, privacy=None, mode=BatchMode.TIME_INTERVAL, measured=None, vdaf=None, **more):
        self.random = random.Random(seed)
        self.now = 1_000 * PRECISION
        self.vdaf = vdaf or prio3_count()
        self.task = a_task(least, privacy, mode, measured, **more.pop("options", {}))
        self.collector_config, pair = key_of(7, 9)
        self.collector = Collector(self.task, self.vdaf, self.collector_config, pair)
        self.noise = {role: [] for role in (DapRole.LEADER, DapRole.HELPER)}
        numbers = {DapRole.LEADER: key_of(1, 1), DapRole.HELPER: key_of(2, 2)}
        self.rings = {role: DecryptionKeyRing.of([HpkeKey(*key, 0)]) for role, key in numbers.items()}
        self.client = DapClient(self.task, self.vdaf, numbers[DapRole.LEADER][0], numbers[DapRole.HELPER][0])
        self.leader, self.helper = (self._server(role, privacy, **more) for role in (DapRole.LEADER, DapRole.HELPER))
        self.left_helper = {}

    def _server(self, role, privacy, draw=None, **more):
        draws = count(1)

        def numbered(role, size):
            return np.array([next(draws) * (1 if role is DapRole.LEADER else 1_000)] * size, dtype=np.int64)

        def draw_noise(law, size):
            assert law is self.task.blank or law.fits
            drawn = (draw or numbered)(role, size)
            self.noise[role].append(drawn)
            return drawn

        noise = draw_noise if self.task.noisy else None
        if self.task.admission is None:
            more.setdefault("open_reports", 100_000)
        task = AggregatorTask(self.task, role, self.vdaf, bytes(32), self.collector_config, noise, **more)
        server = Server(role, task, self.random.randbytes)
        server.start()
        server.store.write_now(*_known_task(self.task))
        return server

    def close(self):
        for server in (self.leader, self.helper):
            server.store.close()
            server.database.disk.close()

    def report(self, measurement, seconds=None):
        randomness = self.random.randbytes(self.client.randomness_bytes)
        return self.client.report(measurement, self.now if seconds is None else seconds, randomness)

    def upload(self, *reports):
        body = UploadRequest(tuple(reports)).to_bytes()
        answer, writes = self.leader.service.upload(body, self.rings[DapRole.LEADER], self.now)
        if writes:
            self.leader.store.write_now(*writes)
        return answer

    def at_helper(self, request):
        """What the helper answers to a request of the leader: its id of the job, and the body."""
        helper, ring = self.helper.service, self.rings[DapRole.HELPER]
        if request.kind is RequestKind.INIT_JOB:
            outcome = helper.init_job(request.body, ring, self.now)
        elif request.kind is RequestKind.CONTINUE_JOB:
            outcome = helper.continue_job(request.peer, request.body, ring)
        else:
            outcome = helper.aggregate_share(request.body, ring)
            self.left_helper.setdefault(request.body, set()).add(outcome.message)
        return outcome.resource, outcome.message

    def exchange(self, lossy=0.0, deadly=0.0):
        """One turn of the leader: ask the helper, take its answers."""
        ring = self.rings[DapRole.LEADER]
        try:
            self._may_die(self.leader, deadly)
            requests = self.leader.service.requests(ring, self.now)
        except Crash:
            self.leader.start()
            return
        for request in requests:
            try:
                peer, answer = self._sent(request, lossy, deadly)
            except DapProblem as problem:
                self.leader.store.dies = None
                self.leader.service.refused(request, problem.document(), ring)
                continue
            except ConnectionError:
                self.leader.store.dies = None
                self.leader.service.failed(request, self.now)
                continue
            try:
                self._may_die(self.leader, deadly)
                self.leader.service.answered(request, peer, answer, ring)
            except Crash:
                self.leader.start()
        self.leader.store.dies = self.helper.store.dies = None

    def _sent(self, request, lossy, deadly):
        for _ in range(1 + (self.random.random() < lossy)):  # now and then twice
            if self.random.random() < lossy:
                raise ConnectionError
            self._may_die(self.helper, deadly)
            try:
                found = self.at_helper(request)
            except Crash:
                self.helper.start()
                raise ConnectionError from None
            assert len(found[1]) <= self.leader.service.longest_answer(request)
        if self.random.random() < lossy:
            raise ConnectionError
        return found

    def _may_die(self, server, deadly):
        server.store.dies = self.random.choice(["before", "after"]) if self.random.random() < deadly else None

    def run(self):
        """Until nothing is under way, on a network that works."""
        quiet = 0
        for _ in range(60):
            self.exchange()
            self.now += LEASE + 1 if last_lease(self.leader.service._leases) > self.now else 0
            quiet = 0 if self._under_way() else quiet + 1
            if quiet == 2:  # the second turn closes the batches of what the first has aggregated
                return
        raise AssertionError("the leader does not come to an end")

    def _under_way(self):
        waiting = self.leader.store.read(
            "SELECT count(*) FROM reports WHERE body IS NOT NULL AND NOT EXISTS "
            "(SELECT 1 FROM claims WHERE claims.report = reports.report)"
        )
        jobs = self.leader.store.read("SELECT count(*) FROM jobs WHERE request IS NOT NULL")
        closed = self.leader.store.read("SELECT count(*) FROM collections WHERE state = 'closed'")
        if self.vdaf.ROUNDS > 1:
            waiting = [(0,)]
        return bool(waiting[0][0] or jobs[0][0] or closed[0][0])

    def ask(self, start=None, duration=1, agg_param=b""):
        """A collection job: its id and its request."""
        interval = None if start is None else TimeInterval(start, duration)
        request = self.collector.request(interval, agg_param)
        return self.leader.service.collect(request.to_bytes()).resource, request

    def result(self, job, request):
        answer = self.leader.service.poll_collection(job).message
        assert len(answer) <= longest_result(self.task, self.vdaf, request.agg_param)
        return self.collector.result(request, CollectionJobResp.from_bytes(answer)) if answer else None

    def collect(self, start=None, duration=1, agg_param=b""):
        job, request = self.ask(start, duration, agg_param)
        for _ in range(20):
            self.exchange()
            found = self.result(job, request)
            if found:
                return found
        return None

    def rejections(self, server):
        return Counter(dict(server.store.read("SELECT reason, number FROM rejections")))


def _known_task(task):
    return [Write("INSERT INTO tasks VALUES (1, ?, ?)", (task.id, b"terms"))]
