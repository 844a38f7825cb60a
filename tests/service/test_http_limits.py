"""What strangers may use of the server: each was attacked on a socket."""

import asyncio
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from hazemap.errors import InputError
from hazemap.server.metrics import Metrics
from hazemap.service.http_limits import BODY, HandshakeLoop, HttpLimits, limited
from hazemap.service.rate_limit import REMEMBERED, RateLimit, place_of

LIMITS = HttpLimits(connections=12, per_address=6)
HEAD = b"POST /v1/enrol HTTP/1.1\r\nHost: maps\r\n"


async def application(scope, receive, send):
    """Reads a body, and answers with the client's address, or with a lot."""
    while (await receive()).get("more_body"):
        pass
    content = bytes(8 << 20) if scope["path"] == "/large" else scope["client"][0].encode()
    length = str(len(content)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": content})


@contextmanager
def serving(limits=LIMITS, proxies=()):
    metrics = Metrics()
    config = uvicorn.Config(
        application,
        port=0,
        log_config=None,
        lifespan="off",
        http=limited(limits, metrics, proxies),
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_keep_alive=60,
    )
    server = uvicorn.Server(config)

    def serve():
        with asyncio.Runner(loop_factory=HandshakeLoop) as runner:
            runner.run(server.serve())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield server.servers[0].sockets[0].getsockname()[1], metrics
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def served():
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def roomy():
    with serving(HttpLimits()) as found:
        yield found


def awaited(condition, seconds=600):
    """Wait until it holds, sooner or later."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def connected(port, address="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), 600, (address, 0))


def answer(line):
    """All that comes until the server closes the connection; nothing where it was reset."""
    found = b""
    try:
        while some := line.recv(1 << 16):
            found += some
    except ConnectionError:
        pass
    return found


def said(port, *parts):
    with connected(port) as line:
        try:
            for part in parts:
                line.sendall(part)
        except ConnectionError:
            pass
        return answer(line)


KEEP = b"GET / HTTP/1.1\r\nHost: maps\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: maps\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("parts", "status", "limit"),
    [
        ([HEAD, *[b"x-%d: 1\r\n" % i for i in range(80)]], b"431", "headers"),
        ([HEAD + b"x: " + b"a" * 30_000], b"431", "head"),
        ([HEAD + b"x" * 30_000], b"431", "head"),
        ([HEAD + b"x: " + b"a" * 17_000 + b"\r\n\r\n"], b"431", "headers"),
        ([b"GET /" + b"a" * 3_000], b"414", "url"),
        ([HEAD + b"Content-Length: %d\r\n\r\n" % (BODY + 1)], b"413", "body"),
        ([HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"e" * 9_000], b"411", "length"),
        ([b"\x16\x03\x01 this is TLS\r\n\r\n"], b"400", "malformed"),
        ([HEAD + b"Content-Length: -1\r\n\r\n"], b"400", "malformed"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_is_too_much_is_turned_away(served, parts, status, limit):
    port, metrics = served
    before = metrics.rejected[limit]
    assert said(port, *parts)[9:12] == status
    assert metrics.rejected[limit] == before + 1
    assert said(port, GET).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("parts", "status", "limit"),
    [
        ([b"GET / HTTP/1.1\r\nHo"], b"", "head_seconds"),
        ([b""], b"", "head_seconds"),
        ([HEAD + b"Content-Length: 9\r\n\r\n", b"12"], b"", "body_seconds"),
        ([KEEP + GET[:9]], b"200", "head_seconds"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_who_is_too_slow_is_left(parts, status, limit):
    """A test that is kept waiting itself may be too slow as well: then it tries again."""
    with serving(HttpLimits(body_rate=1e6, **{limit: 0.3})) as (port, metrics):
        awaited(lambda: said(port, *parts)[9:12] == status)
        assert metrics.rejected[limit] >= 1
        awaited(lambda: said(port, GET).startswith(b"HTTP/1.1 200"))


def test_a_flood_of_headers_costs_no_memory(roomy):
    """300 MB of them were taken, and the process had grown by as much."""
    port, metrics = roomy
    before = metrics.received
    said(port, HEAD, *[b"x: " + b"a" * 1_000_000 + b"\r\n"] * 30)
    assert metrics.received - before < 3_000_000


def test_what_is_within_the_limits_is_answered(roomy):
    port, _ = roomy
    large = HEAD + b"x: " + b"a" * 15_000 + b"\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n"
    assert said(port, large, bytes(100_000)).startswith(b"HTTP/1.1 200")
    assert said(port, KEEP + GET).count(b"HTTP/1.1 200") == 2
    bytewise = [GET[at : at + 1] for at in range(len(GET))]
    assert said(port, *bytewise).startswith(b"HTTP/1.1 200")


def test_a_hundred_requests_on_a_line_are_not_kept_waiting(roomy):
    port, metrics = roomy
    before = metrics.rejected["pipelined"]
    said(port, KEEP * 2_000)
    assert metrics.rejected["pipelined"] == before + 1


def test_whoever_does_not_read_an_answer_is_left():
    with serving(HttpLimits(answer_seconds=0.3)) as (port, metrics), connected(port) as line:
        line.sendall(GET.replace(b" / ", b" /large "))
        awaited(lambda: metrics.rejected["answer_seconds"] == 1)


def test_half_open_connections_are_few_from_one_address_and_few_in_all():
    slow = HttpLimits(head_seconds=3_600, connections=12, per_address=6)
    with serving(slow) as (port, metrics):
        held = [connected(port) for _ in range(6)]
        awaited(lambda: metrics.connections == 6)
        assert answer(connected(port))[9:12] == b"503"
        other = connected(port, "127.0.0.2")
        other.sendall(GET)
        assert answer(other).startswith(b"HTTP/1.1 200"), "another address is served"
        awaited(lambda: metrics.connections == 6)
        held += [connected(port, "127.0.0.2") for _ in range(6)]
        awaited(lambda: metrics.connections == 12)
        assert answer(connected(port, "127.0.0.3"))[9:12] == b"503"
        assert dict(metrics.rejected) == {"connections_per_address": 1, "connections": 1}
        for line in held:
            line.close()
        awaited(lambda: metrics.connections == 0)
        assert said(port, GET).startswith(b"HTTP/1.1 200")


def test_connections_that_idle_make_room_for_new_ones():
    """Many phones behind one address keep connections that they do not use."""
    with serving(HttpLimits(connections=12, per_address=3)) as (port, metrics):
        idle = [connected(port) for _ in range(3)]
        for line in idle:
            line.sendall(GET.replace(b"Connection: close\r\n", b""))
            assert line.recv(4096)
        for _ in range(5):
            assert said(port, GET).startswith(b"HTTP/1.1 200")
        assert not metrics.rejected
        assert answer(idle[0]) == b""
        for line in idle:
            line.close()


def test_addresses_come_from_a_proxy_only_if_the_operator_trusts_it():
    forged = GET.replace(b"Connection", b"X-Forwarded-For: 203.0.113.9, 192.0.2.7\r\nConnection")
    with serving() as (port, _):
        assert said(port, forged).endswith(b"127.0.0.1")
    with serving(proxies=("127.0.0.1",)) as (port, metrics):
        assert said(port, forged).endswith(b"192.0.2.7"), "the last one, which the proxy itself wrote"
        held = [connected(port) for _ in range(10)]
        assert said(port, forged).endswith(b"192.0.2.7"), "a proxy has many connections"
        other = [connected(port, "127.0.0.2") for _ in range(2)]
        assert metrics.rejected["connections_per_address"] == 0
        for line in (*held, *other):
            line.close()


def test_a_rate_fills_evenly_and_forgets_who_was_silent_longest():
    now = [0.0]
    limit = RateLimit(60, clock=lambda: now[0])
    assert [limit.taken("a") for _ in range(61)] == [None] * 60 + [1.0]
    now[0] = 2.0
    assert [limit.taken("a") for _ in range(3)] == [None, None, 1.0]
    assert limit.taken("b") is None
    for number in range(REMEMBERED):
        limit.taken(str(number))
    assert len(limit._levels) == REMEMBERED


def test_addresses_of_one_house_count_as_one():
    assert place_of("2001:db8::1") == place_of("2001:db8::ffff:1") != place_of("2001:db8:0:1::1")
    assert place_of("fe80::1%eth0") == "fe80::"
    assert len(place_of("x" * 1_000)) == 64


@pytest.mark.parametrize("change", [{"head": 0}, {"connections": -1}, {"guesses": float("nan")}])
def test_limits_that_let_nobody_in_are_refused(change):
    with pytest.raises(InputError, match="above 0"):
        HttpLimits(**change)
