"""`hazemap server codes`, `devices`, `revoke`, `token`, `tokens` and `audit`, against a server that runs."""

import json

import pytest
from tests.federated.device.serving import OPERATOR, serving


@pytest.fixture
def asked(hazemap, tmp_path):
    """Run one of the commands with a token."""
    with serving(tmp_path / "server") as url:
        (tmp_path / "operator.token").write_text(OPERATOR)

        def run(*words, token="operator.token"):
            return hazemap("server", *words, "--server", url, "--token-file", str(tmp_path / token))

        run.url = url
        yield run


def test_an_operator_makes_codes_shuts_devices_out_and_gives_tokens(asked, hazemap, tmp_path):
    made = asked("codes", "--number", "3", "--days", "30")
    codes = made.out.split()
    assert (made.code, len(codes)) == (0, 3)
    (tmp_path / "codes.txt").write_text(made.out)
    one = ("device", "enrol", "--server", asked.url, "--store", "one.sqlite", "--json")
    device = hazemap(*one, "--token", codes[0].lower()).json["devices"][0]
    used = hazemap("device", "enrol", "--server", asked.url, "--store", "two.sqlite", "--token", codes[0])
    assert (used.code, "used before" in used.err) == (4, True)
    assert f"{device}  enrolled" in asked("devices").out
    assert asked("revoke", device).code == 0
    assert [row["revoked"] is None for row in asked("devices", "--json").json["devices"]] == [False]
    assert (asked("revoke", "a/../b\nc").code, asked("revoke", "nobody").code) == (2, 2)

    anna = asked("token", "--role", "analyst", "--name", "anna", "--epsilon", "1/2")
    (tmp_path / "anna.token").write_text(anna.out)
    assert "anna  analyst, ε = 1/2 in all, 1 at a time" in asked("tokens").out
    denied = asked("codes", "--number", "1", token="anna.token")
    assert (denied.code, "your token is an analyst" in denied.err) == (2, True)
    assert "limit" in asked("token", "--role", "analyst", "--name", "otto").err
    assert asked("token", "--name", "anna").code == asked("token", "--name", "a", "--role", "king").code == 2
    assert asked("token", "--name", "anna", "--revoke").code == 0
    assert asked("codes", "--number", "1", token="anna.token").code == 2

    log = asked("audit")
    (tmp_path / "log.jsonl").write_text(log.out)
    last = json.loads(log.out.splitlines()[-1])
    assert (last["who"], last["act"], last["object"]) == ("operator", "token revoke", "anna")
    verified = hazemap("server", "audit", "--verify", "--file", "log.jsonl", "--head", last["digest"])
    assert verified.out == f"{last['seq']:,} entries follow each other; the last is {last['digest']}\n"
    (tmp_path / "cut.jsonl").write_text("".join(log.out.splitlines(keepends=True)[:-1]))
    cut = hazemap("server", "audit", "--file", "cut.jsonl", "--head", last["digest"])
    assert (cut.code, "cut off" in cut.err) == (4, True)
    (tmp_path / "changed.jsonl").write_text(log.out.replace("anna", "otto"))
    changed = hazemap("server", "audit", "--verify", "--file", "changed.jsonl")
    assert (changed.code, "broken at entry" in changed.err) == (4, True)
    assert hazemap("server", "audit", "--verify").code == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--behind-proxy",), "give --url"),
        (("--behind-proxy", "--url", "maps.example"), "such as https://maps.example"),
        (("--enrolment", "king"), "--enrolment is one of"),
        (("--enrolment", "attestation"), "names the function"),
        (("--attestation", "json:loads"), "names the function"),
        (("--trusted-proxy", "10.0.0.1"), "say both"),
        (("--behind-proxy", "--url", "https://maps.example", "--trusted-proxy", "all"), "an address or a network"),
    ],
)
def test_settings_that_cannot_be_are_refused(hazemap, options, words):
    done = hazemap("server", "--data", "coordinator", *options)
    assert (done.code, done.out) == (2, "")
    assert words in " ".join(done.err.split())
