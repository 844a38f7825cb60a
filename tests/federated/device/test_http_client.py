"""Requests over real connections, by httpx and by the lean transport alike."""

import asyncio
import gzip
import ipaddress
import ssl
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hazemap.errors import FileError, InputError, Unreachable
from hazemap.federated.device import http_client as http_transports
from hazemap.federated.device import http_client as lean
from hazemap.federated.device.http_client import FleetClient, HttpClient, check_server_address

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(params=[HttpClient, FleetClient], ids=["httpx", "lean"])
def kind(request):
    return request.param


@asynccontextmanager
async def serving(answers, context=None):
    """A server that gives these bytes, one answer a request; None hangs up. Requests and connections are counted."""
    seen, connections, left = [], [], list(answers)

    async def serve(reader, writer):
        connections.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                content = await reader.readexactly(int(size[0].split(b":")[1])) if size else b""
                seen.append((head, content))
                answer = left.pop(0) if left else OK
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if b"Connection: close" in answer:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{port}", seen, connections
    finally:
        server.close()


def asked(kind, answers, *requests, at_once=False):
    """What a transport makes of these answers."""

    async def ask():
        async with serving(answers) as (url, seen, connections), kind.to(url) as http_transport:
            waiting = [http_transport.send(*request) for request in requests]
            if at_once:
                return await asyncio.gather(*waiting), seen, len(connections)
            return [await each for each in waiting], seen, len(connections)

    return asyncio.run(asyncio.wait_for(ask(), 600))


GET = ("GET", "/v1/tasks", "ticket")


def test_a_request_carries_its_ticket_and_content_and_nothing_of_the_machine(kind):
    _, seen, _ = asked(kind, [OK, OK], GET, ("POST", "/v1/tasks/ab", "ticket", b"bytes", "application/octet-stream"))
    (get, nothing), (post, content) = seen
    assert get.startswith(b"GET /v1/tasks HTTP/1.1\r\n") and nothing == b""
    assert post.startswith(b"POST /v1/tasks/ab HTTP/1.1\r\n") and content == b"bytes"
    for head in (get, post):
        assert b"authorization: bearer ticket" in head.lower()
        assert b"cookie" not in head.lower()


def test_one_connection_serves_many_requests(kind):
    answers, seen, connections = asked(kind, [OK] * 5, *[GET] * 5)
    assert [answer.content for answer in answers] == [b"ok"] * 5
    assert (len(seen), connections) == (5, 1)


def test_requests_at_once_get_each_their_own_answer(kind):
    each = [b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % i for i in range(10)]
    answers, _, connections = asked(kind, each, *[GET] * 10, at_once=True)
    assert sorted(answer.content for answer in answers) == [b"%d" % i for i in range(10)]
    assert connections <= 10


def test_an_answer_without_content_may_say_how_long_to_wait(kind):
    waits = (b"1.5", b"0", b"-1", b"nan", b"inf", b"Wed, 21 Oct 2026 07:28:00 GMT", b"x")
    answers = [b"HTTP/1.1 204 No Content\r\nRetry-After: %s\r\n\r\n" % wait for wait in waits]
    found, _, connections = asked(kind, answers, *[GET] * len(waits))
    assert [answer.wait for answer in found] == [1.5, 0, None, None, None, None, None]
    assert {answer.status for answer in found} == {204}
    assert connections == 1


def test_a_squeezed_answer_is_unpacked(kind):
    body = gzip.compress(b"task" * 1_000)
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    [found], seen, _ = asked(kind, [answer], GET)
    assert found.content == b"task" * 1_000
    assert b"accept-encoding: gzip" in seen[0][0].lower()


def test_an_answer_in_chunks_is_put_together(kind):
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    answers, _, _ = asked(kind, [chunked, OK], GET, GET)
    assert [answer.content for answer in answers] == [b"abcde", b"ok"]


def test_an_answer_that_is_too_large_is_not_read_to_its_end(kind, monkeypatch):
    for module in (http_transports, lean):
        monkeypatch.setattr(module, "LARGEST", 1_000)
    with pytest.raises(Unreachable, match="larger than"):
        asked(kind, [b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + bytes(100_000)], GET)
    bomb = gzip.compress(bytes(10_000_000))[:900]
    with pytest.raises(Unreachable, match="larger than"):
        asked(
            kind,
            [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb],
            GET,
        )


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(b"".join(b"X-%d: %060d\r\n" % (i, i) for i in range(20_000)), id="many headers"),
        pytest.param(b"X: " + b"a" * 1_500_000, id="one header without end"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" + b"X: a\r\n" * 200_000, id="trailers"),
    ],
)
def test_a_flood_of_headers_is_not_read_to_its_end(kind, flood):
    with pytest.raises(Unreachable):
        asked(kind, [b"HTTP/1.1 200 OK\r\n" + flood], ("GET", "/v1/tasks"))


@pytest.mark.parametrize(("status", "wait"), [(429, 7.0), (503, 30.0), (500, None)])
def test_a_busy_or_broken_server_is_unreachable_for_as_long_as_it_says(kind, status, wait):
    after = f"Retry-After: {wait:g}\r\n" if wait else ""
    with pytest.raises(Unreachable) as refused:
        asked(kind, [f"HTTP/1.1 {status} No\r\n{after}Content-Length: 0\r\n\r\n".encode()], GET)
    assert refused.value.wait == wait


@pytest.mark.parametrize(
    "answer",
    [None, b"not HTTP at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nhalf"],
)
def test_a_server_that_hangs_up_or_speaks_nonsense_is_unreachable(kind, answer):
    with pytest.raises(Unreachable):
        asked(kind, [answer], GET)


def test_a_server_that_is_not_there_is_unreachable(kind):
    async def ask():
        async with kind.to("http://127.0.0.1:9") as http_transport:
            await http_transport.send(*GET)

    with pytest.raises(Unreachable, match="cannot be reached"):
        asyncio.run(ask())


def test_a_connection_that_was_closed_meanwhile_is_made_anew(kind):
    closing = OK.replace(b"Content-Length", b"Connection: close\r\nContent-Length")
    answers, _, connections = asked(kind, [closing, OK], GET, GET)
    assert [answer.content for answer in answers] == [b"ok", b"ok"]
    assert connections == 2

    async def quietly():
        async with serving([OK, OK]) as (url, _, open_), kind.to(url) as http_transport:
            await http_transport.send(*GET)
            open_[0].close()
            await asyncio.sleep(0.05)
            return await http_transport.send(*GET)

    assert asyncio.run(quietly()).content == b"ok"


def test_an_answer_that_does_not_come_is_waited_for_only_so_long(kind, monkeypatch):
    for module in (http_transports, lean):
        monkeypatch.setattr(module, "PATIENCE", 0.1)
    with pytest.raises(Unreachable):
        asked(kind, [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"], GET)


SLOW = {
    "a letter now and then": [b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", *[b"x"] * 2_000],
    "a promise of an answer now and then": [b"HTTP/1.1 102 Processing\r\n\r\n"] * 2_000,
}


@pytest.mark.parametrize("what", SLOW)
def test_an_answer_that_comes_slower_than_it_ends_is_given_up(kind, monkeypatch, what):
    """Each part was in time, so a device waited for years, and kept the turns of all others in its process."""
    monkeypatch.setattr(http_transports, "LONGEST", 0.3)
    monkeypatch.setattr(lean, "PATIENCE", 0.3)

    async def ask():
        async def drip(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            with suppress(ConnectionError):
                for part in SLOW[what]:
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0.05)
            writer.close()

        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        async with kind.to(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as http_transport:
            with pytest.raises(Unreachable):
                await http_transport.send(*GET)
        server.close()

    asyncio.run(asyncio.wait_for(ask(), 600))


def test_nobody_gets_the_answer_of_a_request_that_was_given_up():
    async def ask():
        late = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsomebody"
        async with serving([late, OK]) as (url, seen, connections), FleetClient.to(url) as http_transport:
            given_up = asyncio.create_task(http_transport.send(*GET))
            while not seen:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)  # it waits for the rest of its answer
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            return await http_transport.send(*GET), len(connections)

    answer, connections = asyncio.run(ask())
    assert (answer.content, connections) == (b"ok", 2)


def test_bytes_that_nobody_asked_for_end_a_connection():
    async def ask():
        async with serving([OK + OK, OK]) as (url, _, connections), FleetClient.to(url) as http_transport:
            await http_transport.send(*GET)
            await asyncio.sleep(0.05)
            await http_transport.send(*GET)
            return len(connections)

    assert asyncio.run(ask()) == 2


@pytest.fixture
def authority(tmp_path):
    """A certificate for 127.0.0.1 that signs itself, and its TLS context."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file, private = tmp_path / "ca.pem", tmp_path / "key.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, private)
    return file, context


def test_a_certificate_must_be_trusted_by_the_system_or_by_the_person(kind, authority):
    file, context = authority

    async def ask(certificate):
        async with serving([OK], context) as (url, _, _), kind.to(url, certificate) as http_transport:
            return await http_transport.send(*GET)

    assert asyncio.run(ask(file)).content == b"ok"
    with pytest.raises(Unreachable):
        asyncio.run(ask(None))


def test_a_certificate_that_is_none_is_said_so(kind, tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    for name in ("ca.pem", "none.pem"):
        with pytest.raises(FileError, match="not a certificate"):
            kind.to("https://maps.example", tmp_path / name)


@pytest.mark.parametrize(
    "server",
    ["http://maps.example", "http://10.0.0.1:80", "ftp://127.0.0.1", "maps.example", "https://", "https://a/?b"],
)
def test_an_address_must_be_https_or_this_machine(server):
    with pytest.raises(InputError):
        check_server_address(server)


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("https://maps.example/", "https://maps.example"),
        ("https://maps.example/haze", "https://maps.example/haze"),
        ("http://localhost:8470", "http://localhost:8470"),
        ("http://[::1]:8470", "http://[::1]:8470"),
    ],
)
def test_an_address_is_kept_without_its_last_slash(server, address):
    assert check_server_address(server) == address


def test_a_server_below_a_path_is_asked_there(kind):
    async def ask():
        async with serving([OK]) as (url, seen, _), kind.to(f"{url}/haze/") as http_transport:
            await http_transport.send(*GET)
            return seen[0][0]

    assert asyncio.run(ask()).startswith(b"GET /haze/v1/tasks HTTP/1.1")


def test_the_media_type_of_an_answer_and_how_long_it_may_be_kept_are_told(kind):
    named = b"HTTP/1.1 200 OK\r\nContent-Type: application/ppm-dap;message=x\r\n"
    head = named + b"Cache-Control: %s\r\nContent-Length: 2\r\n\r\nok"
    said = [b"max-age=86400", b'public, Max-Age="7"', b"max-age=9, no-store", b"max-age=soon", b"", b"max-age=-1"]

    async def fetch():
        async with serving([head % each for each in said]) as (server, _, _), kind.to(server) as transport:
            return [await transport.send("GET", "/keys") for _ in said]

    replies = asyncio.run(fetch())
    assert {reply.kind for reply in replies} == {"application/ppm-dap;message=x"}
    assert [reply.fresh for reply in replies] == [86_400, 7, 0, None, None, None]
