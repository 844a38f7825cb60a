"""A real server on a port of its own, in a thread."""

import asyncio
import threading
import time
from contextlib import contextmanager

import uvicorn

from hazemap.privacy.ledger import Ledger
from hazemap.server.campaign_store import CampaignStore
from hazemap.server.coordinator import Coordinator
from hazemap.server.device_enrolment import Admission
from hazemap.server.http_routes import Application

TOKEN, OPERATOR = "enrolment", "operator"
AS_OPERATOR = {"Authorization": f"Bearer {OPERATOR}"}


@contextmanager
def serving(folder, pace=None, judge=None):
    """Its address."""
    folder.mkdir()
    store = CampaignStore(folder / "server.sqlite")
    coordinator = Coordinator(store, folder, Ledger(folder / "ledger.sqlite"), Admission(TOKEN), pace, judge=judge)
    application = Application(coordinator, OPERATOR)
    config = uvicorn.Config(application, port=0, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        store.close()
