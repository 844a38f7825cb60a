"""Real servers on ports of their own, each in a thread."""

import asyncio
import threading
import time
from contextlib import contextmanager

import uvicorn
from tests.ports import free_port

from hazemap.federated.aggregator.aggregator_process import AggregatorProcess, _Running
from hazemap.federated.aggregator.aggregator_routes import AggregatorMetrics
from hazemap.federated.aggregator.hpke_key_ring import HpkeKeyStore
from hazemap.federated.aggregator.schema import SCHEMA
from hazemap.federated.aggregator.task_file import TOKEN_FILE
from hazemap.federated.server.campaign_house import NO_PEERS
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.coordinator import Coordinator
from hazemap.federated.server.device_enrolment import Admission
from hazemap.federated.server.http_routes import Application
from hazemap.federated.service.access_tokens import kept, token_file
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.service.state_folder import StateFolder
from hazemap.federated.service.store import Store
from hazemap.privacy.ledger import Ledger

TOKEN, OPERATOR = "enrolment", "operator"
AS_OPERATOR = {"Authorization": f"Bearer {OPERATOR}"}


@contextmanager
def listening(application, port=0):
    """An application on a port of this machine: its address."""
    config = uvicorn.Config(application, port=port, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def serving(folder, pace=None, judge=None, peers=NO_PEERS):
    """A coordinator's address."""
    folder.mkdir()
    store = CampaignStore(folder / "server.sqlite")
    options = {"judge": judge, "peers": peers}
    coordinator = Coordinator(store, folder, Ledger(folder / "ledger.sqlite"), Admission(TOKEN), pace, **options)
    try:
        with listening(Application(coordinator, OPERATOR)) as url:
            yield url
    finally:
        store.close()


@contextmanager
def aggregating(folder, role):
    """The address of an aggregator that takes tasks, and the token for it."""
    folder.mkdir()
    port = free_port()
    url, store = f"http://127.0.0.1:{port}/", Store(folder / "aggregator.sqlite", SCHEMA)
    process = AggregatorProcess(role, StateFolder(folder), (), take_tasks_at=url)
    running = _Running(process, store, HpkeKeyStore(store, bytes(32)))
    try:
        with listening(
            running.application(AggregatorMetrics(), kept("operator of an aggregator"), HttpLimits.here()), port
        ):
            yield url, token_file(folder / TOKEN_FILE)
    finally:
        store.close()
