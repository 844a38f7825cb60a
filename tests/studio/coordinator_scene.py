"""Coordinators for a studio: a real one in a thread of this process, and one that answers whatever it is told to."""

import asyncio
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from tests.federated.device.serving import listening
from tests.federated.server.asking_studies import judge
from tests.federated.server.fleet import OPERATOR, TOKEN, crowd

from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.coordinator import Coordinator
from hazemap.federated.server.device_enrolment import Admission
from hazemap.federated.server.http_routes import Application
from hazemap.privacy.ledger import Ledger
from hazemap.studio.coordinator_access import CoordinatorAccess
from hazemap.studio.stewards import Stewards

from .scene import Scene

SECRET = "the operator's token, which is nobody else's"


def token_in(folder, token):
    file = folder / "operator.token"
    file.write_text(token + "\n")
    return file


def operating(folder, url, token=OPERATOR, **address):
    """A studio with a coordinator."""
    access = CoordinatorAccess.at(url, token_in(folder, token), aggregators=tuple(address.pop("aggregators", ())))
    root = folder / "data"
    root.mkdir(exist_ok=True)
    return Scene(folder, stewards=Stewards.alone(root, folder / "ledger.sqlite", access), **address)


@contextmanager
def coordinator(folder):
    """A coordinator that listens: its address."""
    folder.mkdir()
    store = CampaignStore(folder / "server.sqlite")
    book = Ledger(folder / "coordinator.sqlite")
    try:
        with listening(Application(Coordinator(store, folder, book, Admission(TOKEN), judge=judge), OPERATOR)) as url:
            yield url
    finally:
        store.close()


@contextmanager
def people(url, number, declining=0, devices=None):
    """Made-up devices that answer until the block ends."""
    devices, enough = devices or crowd(number), threading.Event()
    for device in devices[:declining]:
        device.declines = "<b>not</b> me"

    async def live():
        async with httpx.AsyncClient(base_url=url, timeout=300) as http:
            for device in devices:
                assert (await device.enrol(http)).status_code == 201
            while not enough.is_set():
                for device in devices:
                    await device.step(http)
                await asyncio.sleep(0.01)

    thread = threading.Thread(target=lambda: asyncio.run(live()), daemon=True)
    thread.start()
    try:
        yield devices
    finally:
        enough.set()
        thread.join(600)


@contextmanager
def hostile(answers):
    """A server that gives each path its answer: bytes, or what writes them; it notes what it was asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.command, self.path, dict(self.headers)))
            status, headers, content = answers.get(self.path.partition("?")[0], (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for part in [content] if isinstance(content, bytes) else content():
                    self.wfile.write(part)
            except (BrokenPipeError, ConnectionResetError):
                pass

        do_POST = do_GET  # noqa: N815 - the library's name

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
