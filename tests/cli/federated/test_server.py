"""`hazemap server`."""

import asyncio
import datetime
import signal
import ssl
import stat

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.cli.serving import Process
from tests.federated.server.fleet import FakeDevice


def certificate(folder):
    """A certificate for 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    from ipaddress import ip_address

    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "server.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "server.pem", folder / "server.key"


def enrolled(process):
    async def enrol():
        device = FakeDevice(13.3, 52.5)
        async with httpx.AsyncClient(base_url=process.url, verify=process.verify) as http:
            done = await device.enrol(http, process.token)
            assert done.status_code == 201, done.text
        return device

    return asyncio.run(enrol())


def polled(process, device):
    return httpx.get(f"{process.url}/v1/tasks", headers=device.headers, verify=process.verify)


@pytest.mark.slow
def test_a_server_keeps_its_devices_through_kill_9_and_ends_well_when_told_to(tmp_path):
    process = Process(tmp_path).start()
    device = enrolled(process)
    assert polled(process, device).status_code == 204
    token = process.token
    assert process.end(signal.SIGKILL) == -signal.SIGKILL
    process.start()
    assert polled(process, device).status_code == 204
    assert process.token == token
    assert stat.S_IMODE(process.data.stat().st_mode) == 0o700
    assert process.end() == 0
    assert sorted(file.name for file in process.data.iterdir()) == [
        "enrolment.token",
        "identity.key",
        "operator.token",
        "server.sqlite",
        "server.sqlite.lock",
    ]
    assert device.ticket not in process.log
    assert token not in process.log


@pytest.mark.slow
def test_a_server_speaks_tls(tmp_path):
    public, private = certificate(tmp_path)
    verify = ssl.create_default_context(cafile=public)
    options = ("--certificate", str(public), "--key", str(private))
    process = Process(tmp_path, options, "https", verify).start()
    assert polled(process, enrolled(process)).status_code == 204
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{process.port}/v1/status")
    assert process.end(signal.SIGINT) == 0


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--host", "0.0.0.0"), 2, "tickets would travel unprotected"),
        (("--certificate", "a.pem"), 2, "needs both"),
        (("--certificate", "a.pem", "--key", "a.key"), 2, "there is no file a.pem"),
        (("--database", "mysql://here"), 2, "postgresql://"),
    ],
)
def test_what_would_be_unsafe_or_cannot_be_is_refused(hazemap, options, code, words):
    done = hazemap("server", "--data", "coordinator", *options)
    assert (done.code, done.out) == (code, "")
    assert words in " ".join(done.err.split())


@pytest.mark.slow
def test_a_second_server_of_a_folder_is_refused(hazemap, tmp_path):
    process = Process(tmp_path).start()
    done = hazemap("server", "--data", str(process.data), "--port", str(process.port + 1))
    assert done.code == 5
    assert "another server" in " ".join(done.err.split())
    process.end()
