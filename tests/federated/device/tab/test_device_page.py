"""The page of a device in a tab, as a file: who it is, who serves it, and whether another is the same."""

import hashlib

import httpx
import pytest
from starlette.testclient import TestClient

from hazemap.errors import CodecError, Refused
from hazemap.federated.device.tab.device_page import LONGEST, DevicePage

PAGE = DevicePage(b"<!doctype html><title>a device</title>")


def served(content, status=200):
    return httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(status, content=content)))


def test_the_small_server_gives_the_page_and_what_a_file_cannot_say_of_itself():
    client = TestClient(PAGE.application())
    found = client.get("/")
    assert found.content == PAGE.content and found.headers["content-type"] == "text/html; charset=utf-8"
    assert found.headers["content-security-policy"] == "frame-ancestors 'none'"
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["cross-origin-opener-policy"] == "same-origin"
    assert "access-control-allow-origin" not in found.headers
    assert [client.get(path).status_code for path in ("/v1/tasks", "/device.html")] == [404, 404]
    assert client.post("/").status_code == 405


def test_a_page_elsewhere_is_this_one_or_is_named_with_its_digest():
    assert PAGE.digest == hashlib.sha256(PAGE.content).hexdigest()
    PAGE.compare(served(PAGE.content), "https://tab.example/")
    other = PAGE.content + b"\n"
    with pytest.raises(CodecError, match=hashlib.sha256(other).hexdigest()):
        PAGE.compare(served(other), "https://tab.example/")
    with pytest.raises(CodecError, match="HTTP 404"):
        PAGE.compare(served(PAGE.content, 404), "https://tab.example/")
    with pytest.raises(Refused, match="more than"):
        PAGE.compare(served(bytes(LONGEST + 1)), "https://tab.example/")
