"""Tasks that an aggregator takes while it runs: from whom, which, and that none changes."""

import logging
import os
from dataclasses import replace

import httpx
import pytest
from tests.federated.aggregator.two_servers import NOISE, PRECISION, a_task

from hazemap.errors import CodecError, InputError
from hazemap.federated.aggregator.aggregator_process import AggregatorProcess, _Running
from hazemap.federated.aggregator.aggregator_routes import AggregatorRoutes, provisioning_route
from hazemap.federated.aggregator.hpke_key_ring import HpkeKeyStore
from hazemap.federated.aggregator.schema import SCHEMA
from hazemap.federated.aggregator.task_file import KEPT, TaskShelf, new_task_files
from hazemap.federated.protocols.dap.basic_types import TimeInterval
from hazemap.federated.protocols.dap.report_credentials import ReportAdmission
from hazemap.federated.protocols.dap.resource_paths import PROVISIONING, id_text
from hazemap.federated.protocols.dap.vdaf_configuration import MultihotConfiguration
from hazemap.federated.server.networked_two_servers import files_of
from hazemap.federated.service.state_folder import StateFolder
from hazemap.federated.service.store import Store

URL = "https://leader.example/"


def files(**options):
    return new_task_files(a_task(privacy=NOISE, **options), os.urandom, open_reports=9)


def test_a_task_is_kept_before_it_is_begun_and_is_there_after_a_restart(tmp_path):
    begun, text = [], files()["leader"].to_toml().encode()
    shelf = TaskShelf(tmp_path / "tasks", "leader", URL)
    assert shelf.take(text, lambda file: begun.append(shelf.files() == (file,)))
    assert not shelf.take(text, lambda _: begun.append(True))  # a coordinator repeats itself
    assert begun == [True, True]
    again = TaskShelf(tmp_path / "tasks", "leader", URL)
    assert [file.to_toml().encode() for file in again.files()] == [text]
    assert (tmp_path / "tasks").stat().st_mode & 0o077 == 0
    (tmp_path / "tasks" / ".half-made.part.toml").write_text("")
    assert len(again.files()) == 1


def test_a_log_says_of_each_new_task_whether_it_is_open_or_who_admits_to_it(tmp_path, caplog):
    shelf, secret = TaskShelf(tmp_path / "tasks", "leader", URL), bytes(32)
    bits = MultihotConfiguration(4, 2, 4)
    admitted = a_task(measured=bits, task_id=b"n" * 32, admission=ReportAdmission(b"\xab" * 32, 60))
    with caplog.at_level(logging.INFO, "hazemap.federated.aggregator"):
        for text in (files()["leader"].to_toml(), files_of(admitted, secret)["leader"].to_toml()):
            assert shelf.take(text.encode(), lambda _: None)
    said = [(each.levelname, each.getMessage().partition(": ")[2]) for each in caplog.records]
    assert said == [
        ("WARNING", "open to 9 reports of whoever sends them"),
        ("INFO", "for 60 reports, by credentials of issuer abababababababab"),
    ]


def test_a_task_that_is_over_is_not_taken_any_more(tmp_path):
    now, end = [0], 12 * PRECISION
    shelf = TaskShelf(tmp_path / "tasks", "leader", URL, lambda: now[0])
    text = files(interval=TimeInterval(10, 2))["leader"].to_toml().encode()
    now[0] = end + KEPT
    assert shelf.take(text, lambda _: None) and not shelf.take(text, lambda _: None)
    now[0] += 1
    with pytest.raises(InputError, match="is over, and all of it is forgotten"):
        shelf.take(text, lambda _: None)
    assert shelf.take(files(task_id=b"n" * 32)["leader"].to_toml().encode(), lambda _: None)


def test_a_file_that_is_damaged_keeps_no_other_task_from_being_served(tmp_path, caplog):
    shelf, own = TaskShelf(tmp_path / "tasks", "leader", URL), files()["leader"]
    shelf.take(own.to_toml().encode(), lambda _: None)
    (tmp_path / "tasks" / "damaged.toml").write_text(own.to_toml()[:200])
    assert shelf.files() == (own,)
    assert "damaged.toml holds no task" in caplog.text and "it is not served" in caplog.text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (lambda: b"\xff", CodecError),
        (lambda: b"", InputError),
        (lambda: b"party = 3", InputError),
        (lambda: files()["helper"].to_toml().encode(), InputError),
        (lambda: files()["client"].to_toml().encode(), InputError),
        (lambda: files()["collector"].to_toml().encode(), InputError),
        (lambda: b"#" * (2 << 20), CodecError),
    ],
)
def test_what_is_no_task_of_this_aggregator_is_refused(tmp_path, text, error):
    with pytest.raises(error):
        TaskShelf(tmp_path / "tasks", "leader", URL).take(text(), lambda _: None)
    assert not list(tmp_path.rglob("*.toml"))


def test_a_task_for_another_address_is_refused(tmp_path):
    with pytest.raises(InputError, match="for another"):
        TaskShelf(tmp_path, "leader", "https://another.example/").take(
            files()["leader"].to_toml().encode(), lambda _: None
        )


def test_a_task_never_changes(tmp_path):
    shelf, own = TaskShelf(tmp_path / "tasks", "leader", URL), files()["leader"]
    shelf.take(own.to_toml().encode(), lambda _: None)
    for other in (replace(own, verify_key=bytes(32)), replace(own, peer_token="another")):
        with pytest.raises(InputError, match="never changes"):
            shelf.take(other.to_toml().encode(), lambda _: None)
    assert shelf.files() == (own,)


def test_the_files_of_a_round_follow_from_its_secret():
    task = a_task(privacy=NOISE)
    assert files_of(task, bytes(32)) == files_of(task, bytes(32))
    one, two = files_of(task, bytes(32)), files_of(task, b"1" * 32)
    assert one["leader"].verify_key == one["helper"].verify_key != two["leader"].verify_key
    assert one["collector"].collector_key != two["collector"].collector_key
    secrets = {one["leader"].peer_token, one["collector"].peer_token, one["leader"].verify_key}
    assert len(secrets) == 3


async def requests(application, *bodies):
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="https://leader.example") as http:
        found = []
        for token, body in bodies:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            reply = await http.post(f"/{PROVISIONING}", content=body, headers=headers)
            found.append((reply.status_code, reply.text))
        return found


def test_only_who_shows_the_token_gives_tasks(tmp_path):
    import asyncio

    store, begun, text = Store(tmp_path / "a.sqlite", SCHEMA), [], files()["leader"].to_toml()
    try:
        shelf = TaskShelf(tmp_path / "tasks", "leader", URL)
        route = provisioning_route("the token of this test", shelf, begun.append)
        application = AggregatorRoutes(store, HpkeKeyStore(store, bytes(32)), {}).application("/", more=[route])
        good = "the token of this test"
        found = asyncio.run(
            requests(application, ("", text), ("another", text), (good, "{"), (good, text), (good, text))
        )
    finally:
        store.close()
    assert [status for status, _ in found] == [401, 401, 422, 201, 200]
    assert "TOML" in found[2][1] and len(begun) == 2


UNSERVABLE = {
    "a helper by plain HTTP": lambda: files(helper="http://10.1.2.3/")["leader"],
    "a key that is none": lambda: replace(files()["leader"], verify_key=b"short"),
    "reports that expire at once": lambda: replace(files()["leader"], report_expiry=1),
}


@pytest.mark.parametrize("wrong", UNSERVABLE.values(), ids=UNSERVABLE)
def test_a_task_that_cannot_be_served_stops_no_aggregator_at_its_next_start(tmp_path, wrong):
    """It was refused, and kept: whoever had the token of one aggregator could end it for all coordinators."""
    store, process = (
        Store(tmp_path / "a.sqlite", SCHEMA),
        AggregatorProcess("leader", StateFolder(tmp_path), (), take_tasks_at=URL),
    )
    try:
        running = _Running(process, store, HpkeKeyStore(store, bytes(32)))
        good, bad = replace(files()["leader"], task=a_task(privacy=NOISE, task_id=b"g" * 32)), wrong()
        assert running._shelf.take(good.to_toml().encode(), running._begin)
        with pytest.raises(InputError):
            running._shelf.take(bad.to_toml().encode(), running._begin)
        assert [path.stem for path in (tmp_path / "tasks").iterdir()] == [id_text(good.task.id)]
        bad.write(tmp_path / "tasks" / f"{id_text(bad.task.id)}.toml")  # as if it had died before it took it back
        assert _Running(process, store, HpkeKeyStore(store, bytes(32))).tasks == 1
    finally:
        store.close()


def test_an_aggregator_says_how_it_is_given_tasks(tmp_path):
    with pytest.raises(InputError, match="slash"):
        AggregatorProcess("leader", StateFolder(tmp_path), (), take_tasks_at="https://leader.example")
    assert (
        AggregatorProcess("leader", StateFolder(tmp_path), (), take_tasks_at="https://one.example/dap/").base == "/dap/"
    )
