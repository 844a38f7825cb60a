"""`hazemap browser-device`: the page as a file, with its digest and its signature."""

import pytest

from hazemap.device.tab.device_page import DevicePage

PAGE = DevicePage(b"<!doctype html><title>a device</title>")


@pytest.fixture(autouse=True)
def built(monkeypatch):
    monkeypatch.setattr(DevicePage, "built", classmethod(lambda _: PAGE))


def test_a_page_is_written_signed_and_verified(hazemap, tmp_path):
    key = hazemap("policy", "key", "page.key", "--json").json["key"]
    found = hazemap("browser-device", "-o", "device.html", "--key-file", "page.key", "--json").json
    signature = "device.html.sig"
    assert found == {"sha256": PAGE.digest, "file": "device.html", "signature": signature, "key": key}
    assert len((tmp_path / signature).read_bytes()) == 64
    said = hazemap("browser-device", "--verify", "device.html", "--key", key)
    assert (said.code, f"{PAGE.digest}  device.html: signed by {key}, and whole" in said.out) == (0, True)
    (tmp_path / "device.html").write_bytes(PAGE.content + b" ")
    changed = hazemap("browser-device", "--verify", "device.html", "--key", key)
    assert changed.code != 0 and "does not fit" in changed.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--verify", "none.html", "--key", "00" * 32), "none.html cannot be read"),
        (("--verify", "none.html"), "--key with --verify"),
        (("--key", "00" * 32), "--key with --verify"),
        (("--verify", "none.html", "--key", "00"), "64 hexadecimal digits"),
        (("--key-file", "page.key"), "goes with --output"),
        (("-o", "a.html", "--compare", "https://tab.example/"), "one of them"),
        (("-o", "a.html", "--key-file", "none.key"), "none.key"),
    ],
)
def test_what_cannot_be_is_refused_in_words(hazemap, tmp_path, words, said):
    (tmp_path / "none.html.sig").write_bytes(b"")
    done = hazemap("browser-device", *words)
    assert (done.code, said in done.err) == (2, True), done.err
    assert not (tmp_path / "a.html").exists()
