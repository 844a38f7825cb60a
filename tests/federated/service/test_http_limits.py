"""What strangers may use of the server: each was attacked on a socket."""

import asyncio
import socket
import ssl
import struct
import threading
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hazemap.errors import InputError
from hazemap.federated.server.metrics import Metrics
from hazemap.federated.service.http_limits import BODY, HandshakeLoop, HttpLimits, limited
from hazemap.federated.service.rate_limit import REMEMBERED, RateLimit, place_of

LIMITS = HttpLimits(connections=12, per_address=6)
HEAD = b"POST /v1/enrol HTTP/1.1\r\nHost: maps\r\n"


class Working:
    """Requests that a server is at work on, and whether it may be done."""

    def __init__(self):
        self.number, self.done = 0, threading.Event()


WORKING = Working()


async def application(scope, receive, send):
    """Reads a body, and answers with the client's address, or with a lot; or refuses it by its head."""
    if scope["path"] == "/refused":
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})
        return
    if scope["path"] == "/known":
        scope["hazemap.known"] = True
    if scope["path"] == "/working":
        WORKING.number += 1
        await asyncio.to_thread(WORKING.done.wait)
    while (await receive()).get("more_body"):
        pass
    content = bytes(8 << 20) if scope["path"] == "/large" else (scope["client"] or "?")[0].encode()
    length = str(len(content)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": content})


@contextmanager
def serving(limits=LIMITS, proxies=(), application=application, **more):
    metrics = Metrics()
    protocol = limited(limits, metrics, proxies)
    metrics.every = protocol.every
    config = uvicorn.Config(
        application,
        port=0,
        log_config=None,
        lifespan="off",
        http=protocol,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_keep_alive=60,
        **more,
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


def self_signed(folder):
    """The files of a certificate of localhost and of its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "here")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files = folder / "here.pem", folder / "here.key"
    files[0].write_bytes(certificate.public_bytes(form[0]))
    files[1].write_bytes(key.private_bytes(*form))
    return [str(file) for file in files]


def send(line, content):
    """Send it, as far as the server takes it."""
    with suppress(ConnectionError):
        line.sendall(content)


def held_by(metrics):
    """Bytes of bodies that a server has in memory."""
    return metrics.every.held


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
        ([b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"], b"400", "host"),
        ([b"GET / HTTP/2.0\r\nConnection: close\r\n\r\n"], b"400", "host"),
        ([b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"], b"400", "host"),
        ([b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"], b"400", "host"),
        ([HEAD + b"Transfer-Encoding: gzip, chunked\r\nContent-Length: 3\r\n\r\n"], b"400", "malformed"),
        ([HEAD + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\n"], b"400", "malformed"),
        ([HEAD + b"Content-Length: %d\r\n\r\n" % 10**30], b"400", "malformed"),
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
    assert said(port, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200"), "without Host, as of old"
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


def test_empty_lines_between_requests_do_not_keep_a_connection():
    """Each put off the end of an idle connection: a byte a minute kept it for ever."""
    with serving(HttpLimits(head_seconds=0.3)) as (port, metrics):
        found = b""
        while not found:  # a test that is kept waiting itself may be too slow with its head
            line = connected(port)
            send(line, KEEP)
            with suppress(ConnectionError):
                found = line.recv(1_000)
        before = metrics.rejected["head_seconds"]
        send(line, b"\r\n")
        assert answer(line) == b""
        line.close()
        awaited(lambda: metrics.rejected["head_seconds"] == before + 1)


def test_answers_that_nobody_reads_take_room_too():
    """A request of 60 bytes made a server hold megabytes for a minute, as often as it had connections."""
    with serving(HttpLimits(room=12 << 20)) as (port, metrics):
        lines = []
        for _ in range(6):
            lines.append(line := socket.socket())
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            line.connect(("127.0.0.1", port))
            send(line, KEEP.replace(b" / ", b" /large "))
        awaited(lambda: metrics.rejected["room"] >= 2)
        awaited(lambda: held_by(metrics) <= 12 << 20)
        assert said(port, GET).startswith(b"HTTP/1.1 200")
        for line in lines:
            line.close()
        awaited(lambda: metrics.connections == 0)
        assert held_by(metrics) == 0


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """A certificate of this machine, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    return self_signed(folder)


def secured(port, certificate, address="127.0.0.1"):
    context = ssl.create_default_context(cafile=certificate)
    return context.wrap_socket(connected(port, address), server_hostname="localhost")


def test_handshakes_of_tls_are_counted_and_keep_nobody_out(tls):
    """They counted when they were over: one address could take all files of a server, ten seconds at a time."""
    certificate, key = tls
    with serving(ssl_certfile=certificate, ssl_keyfile=key) as (port, metrics):
        silent = [connected(port, f"127.0.0.{at % 3 + 2}") for at in range(60)]
        for line in silent[::2]:
            send(line, b"\x16\x03\x01\x02\x00\x01")
        awaited(lambda: metrics.rejected.total() >= 48)
        awaited(lambda: metrics.connections <= 12)
        for _ in range(3):
            with secured(port, certificate) as line:
                line.sendall(GET)
                assert answer(line).startswith(b"HTTP/1.1 200")
        for line in silent:
            line.close()
        awaited(lambda: metrics.connections == 0)
        assert not metrics.every._from and not metrics.every._waiting


def test_whoever_says_no_goodbye_over_tls_takes_no_place_of_others(tls):
    """It had to be said by both sides: for half a minute a connection that was ended was open, and could not end."""
    certificate, key = tls
    with serving(ssl_certfile=certificate, ssl_keyfile=key) as (port, metrics):
        slow = [secured(port, certificate, f"127.0.0.{at % 5 + 2}") for at in range(12)]
        for line in slow:
            line.sendall(HEAD + b"Content-Length: 100\r\n\r\n")
        for _ in range(30):
            with secured(port, certificate) as line:
                line.sendall(GET)
                assert answer(line).startswith(b"HTTP/1.1 200")
        awaited(lambda: metrics.connections <= 13)
        for line in slow:
            line.close()


def test_whoever_does_not_read_an_answer_is_left():
    with serving(HttpLimits(answer_seconds=0.3)) as (port, metrics), connected(port) as line:
        line.sendall(GET.replace(b" / ", b" /large "))
        awaited(lambda: metrics.rejected["answer_seconds"] == 1)


def test_half_open_connections_are_few_and_keep_nobody_out():
    """12 that sent nothing, or announced 64 MB and sent a byte, had kept everybody out: for hours, by their length."""
    large = HEAD + b"Content-Length: 60000000\r\n\r\n1"
    slow = HttpLimits(head_seconds=3_600, body_seconds=3_600, connections=12, per_address=6)
    with serving(slow) as (port, metrics):
        held = [connected(port, address) for address in ("127.0.0.1", "127.0.0.2") for _ in range(6)]
        for line in held[::2]:
            line.sendall(large)
        awaited(lambda: metrics.connections == 12)
        for address in ("127.0.0.1", "127.0.0.3", "127.0.0.3"):
            with connected(port, address) as other:
                other.sendall(GET)
                assert answer(other).startswith(b"HTTP/1.1 200"), address
        assert metrics.connections <= 12
        assert answer(held[0])[9:12] == b"503", "the one that waited longest, where most wait"
        more = [connected(port, "127.0.0.2") for _ in range(20)]
        awaited(lambda: metrics.connections <= 12)
        held[7].settimeout(0.01)
        assert said(port, GET).startswith(b"HTTP/1.1 200")
        for line in (*held, *more):
            line.close()
        awaited(lambda: metrics.connections == 0)


def test_where_everybody_answers_nobody_ends_for_others():
    """The server is at work for all of them: whoever comes then is turned away."""
    with serving(HttpLimits(connections=3)) as (port, metrics):
        busy = [connected(port, f"127.0.0.{at + 1}") for at in range(3)]
        for line in busy:
            line.sendall(GET.replace(b" / ", b" /working "))
        awaited(lambda: WORKING.number == 3)
        assert said(port, GET)[9:12] == b"503"
        WORKING.done.set()
        assert [answer(line)[9:12] for line in busy] == [b"200"] * 3
        assert metrics.rejected["connections"] == 1


def test_bodies_take_room_as_they_come_and_whoever_sends_most_makes_room_for_others():
    """91 that announced 2.9 MB each and sent 13 KB had taken all of it, behind a proxy."""
    with serving(HttpLimits(room=1_000_000, body_seconds=3_600)) as (port, metrics):
        one = HEAD + b"Content-Length: 60000000\r\n\r\n"
        announced = [connected(port, "127.0.0.2") for _ in range(40)]
        for line in announced:
            line.sendall(one + bytes(100))
        whole = HEAD + b"Connection: close\r\nContent-Length: 200000\r\n\r\n"
        assert said(port, whole, bytes(200_000)).startswith(b"HTTP/1.1 200"), "what is announced takes no room"
        large = [connected(port, "127.0.0.2") for _ in range(10)]
        for line in large:
            line.sendall(one)
            send(line, bytes(300_000))
            assert said(port, whole, bytes(200_000)).startswith(b"HTTP/1.1 200")
        assert metrics.rejected["room"] >= 5
        assert held_by(metrics) <= 1_000_000 + (256 << 10)
        for line in (*announced, *large):
            line.close()
        awaited(lambda: metrics.connections == 0)
        assert held_by(metrics) == 0


def test_whoever_has_shown_a_good_token_makes_room_last():
    with serving(HttpLimits(room=1_000_000, body_seconds=3_600)) as (port, metrics):
        body = b"Content-Length: 600000\r\nConnection: close\r\n\r\n"
        known = connected(port)
        known.sendall(HEAD.replace(b"/v1/enrol", b"/known") + body)
        send(known, bytes(500_000))
        others = [connected(port, f"127.0.0.{at + 2}") for at in range(9)]
        for line in others:
            send(line, HEAD + body + bytes(300_000))
        awaited(lambda: metrics.rejected["room"] >= 1)
        send(known, bytes(100_000))
        assert answer(known).startswith(b"HTTP/1.1 200")
        for line in others:
            line.close()


def test_a_body_goes_on_as_long_as_enough_of_it_comes():
    """A test that is kept waiting itself may be too slow: then it tries again."""

    def sent(port):
        with connected(port) as line:
            send(line, HEAD + b"Connection: close\r\nContent-Length: 12000\r\n\r\n")
            for _ in range(12):  # for three times as long as it is given at once
                send(line, bytes(1_000))
                time.sleep(0.03)
            return answer(line).startswith(b"HTTP/1.1 200")

    with serving(HttpLimits(body_seconds=0.12, body_rate=2_000)) as (port, _):
        awaited(lambda: sent(port))


def test_an_answer_to_the_head_is_read_though_a_body_goes_on_coming_and_then_the_connection_ends(monkeypatch):
    monkeypatch.setattr("hazemap.federated.service.http_limits.UNREAD", 0.1)
    with serving(HttpLimits(body_seconds=3_600)) as (port, metrics), connected(port) as line:
        line.sendall(HEAD.replace(b"/v1/enrol", b"/refused") + b"Content-Length: 60000000\r\n\r\n" + bytes(100_000))
        found = line.recv(4_096)
        assert found.startswith(b"HTTP/1.1 413")
        send(line, bytes(1_000_000))
        awaited(lambda: metrics.connections == 0, 60)
        assert held_by(metrics) == 0
    with serving() as (port, metrics), connected(port) as line:
        line.sendall(HEAD.replace(b"/v1/enrol", b"/refused") + b"Content-Length: 5\r\n\r\n")
        assert line.recv(4_096).startswith(b"HTTP/1.1 413")
        line.sendall(b"12345" + GET)
        assert answer(line).startswith(b"HTTP/1.1 200"), "where the rest comes at once it goes on"


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
        ported = forged.replace(b"192.0.2.7", b"192.0.2.7:65000")
        assert place_of(said(port, ported).rpartition(b"\n")[2].decode()) == "192.0.2.7"
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


ODD = [
    b"\r\n?",
    b"\r\n" * 9,
    b"CONNECT maps:443 HTTP/1.1\r\nHost: maps\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: maps\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 9\r\n\r\n123456789",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
    HEAD + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n12345",
    b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    KEEP.replace(b" / ", b" /large "),
    b"\x16\x03\x01\x02\x00\x01",
]
"""What is no plain request of ours."""


@pytest.mark.parametrize("seed", [7])
def test_nothing_is_left_of_connections_whatever_they_sent_and_wherever_they_ended(seed):
    """Requests in pieces, one behind the other, cut off, refused by their heads, and ended for others."""
    luck = Random(seed)
    whole = HEAD + b"Content-Length: 9000\r\n\r\n" + bytes(9_000)
    kinds = [KEEP, whole, whole.replace(b"/v1/enrol", b"/refused"), whole.replace(b"/v1/enrol", b"/known"), *ODD]
    with serving(HttpLimits(room=40_000, connections=12, per_address=5)) as (port, metrics):
        lines = []
        for _ in range(60):
            line = connected(port, f"127.0.0.{luck.randrange(1, 9)}")
            sent = b"".join(luck.choices(kinds, [8, 8, 4, 4, *[1] * len(ODD)], k=luck.randrange(1, 7)))
            sent = sent[: luck.randrange(len(sent) + 1)]
            cuts = sorted(luck.randrange(len(sent) + 1) for _ in range(3))
            for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
                send(line, sent[start:end])
            lines.append(line)
            if luck.random() < 0.2:
                with suppress(OSError):
                    line.shutdown(socket.SHUT_WR)
            if luck.random() < 0.5:
                other = lines.pop(luck.randrange(len(lines)))
                if luck.random() < 0.5:  # by a reset
                    other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                other.close()
        for line in lines:
            line.close()
        awaited(lambda: metrics.connections == 0)
        every = metrics.every
        assert (every.held, every._idle, every._waiting, dict(every._from)) == (0, {}, {}, {})
