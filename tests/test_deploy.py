"""The files of `deploy/`: what they say exists, and keeps the server small."""

import re
import shlex
from configparser import ConfigParser
from pathlib import Path

import pytest
from typer.main import get_command

from hazemap.cli.main import app
from hazemap.federated.service.http_limits import BODY, HttpLimits

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PAGE = ROOT / "docs" / "how-to" / "run-a-server.md"


def understood(words):
    """The options of a `hazemap server run`, as the command itself reads them."""
    assert words[:3] == ["hazemap", "server", "run"]
    command = get_command(app).commands["server"].commands["run"]
    return command.make_context("run", words[3:]).params


def service():
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string((DEPLOY / "hazemap.service").read_text().replace("\\\n", ""))
    return parser["Service"]


def entrypoint():
    text = (DEPLOY / "Containerfile").read_text()
    [words] = re.findall(r"^ENTRYPOINT \[(.*)\]$", text, re.MULTILINE)
    return [Path(word).name if "bin" in word else word for word in shlex.split(words.replace(",", " "))]


def test_the_service_and_the_container_start_the_server_with_options_that_exist():
    words = shlex.split(service()["ExecStart"])
    for found in (understood([Path(words[0]).name, *words[1:]]), understood([*entrypoint(), "--url", "https://a.b"])):
        assert (found["behind_proxy"], found["enrolment"], found["host"] != "") == (True, "codes", True)
        assert found["url"] and found["port"] == 8470
    with pytest.raises(Exception, match="No such option"):
        understood(["hazemap", "server", "run", "--data", "d", "--open-enrolment"])


def test_the_service_is_nobodys_root_and_writes_its_folder_alone():
    unit = service()
    assert unit["User"] == "hazemap" and unit["ProtectSystem"] == "strict" and unit["NoNewPrivileges"] == "yes"
    assert unit["CapabilityBoundingSet"] == "" and unit["UMask"] == "0077"
    assert "ReadWritePaths" not in unit
    assert int(unit["LimitNOFILE"]) > HttpLimits().connections


def test_the_container_is_not_root_and_keeps_everything_in_its_volume():
    text = (DEPLOY / "Containerfile").read_text()
    assert re.search(r"^USER (?!0|root)\S+$", text, re.MULTILINE)
    [volume] = re.findall(r"^VOLUME (\S+)$", text, re.MULTILINE)
    found = understood([*entrypoint(), "--url", "https://a.b"])
    assert str(found["data"]).startswith(volume) and f"HAZEMAP_HOME={volume}" in text
    for source in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE):
        assert all((ROOT / name).exists() for name in source.split()), source
    assert "--read-only" in text and "--read-only" in PAGE.read_text()


def test_the_proxy_lets_through_what_the_server_takes_and_hides_metrics():
    text = (DEPLOY / "Caddyfile").read_text()
    assert "reverse_proxy 127.0.0.1:8470" in text and "path /metrics" in text
    assert re.search(r"max_size (\d+)MB", text)[1] == str(BODY >> 20)
    assert re.search(r"max_header_size (\d+)KB", text)[1] == str(HttpLimits().head >> 10)
    assert text.count("{") == text.count("}")


def test_the_page_names_every_file_and_metric_that_is_there():
    from hazemap.federated.server.metrics import DurationHistogram, Metrics

    page = PAGE.read_text()
    assert not [path.name for path in DEPLOY.iterdir() if path.name not in page]
    named = set(re.findall(r"`(hazemap_\w+)", page))
    gauges = dict.fromkeys(("devices_enrolled", "devices_recent", "audit_entries"), ("", 0.0))
    there = set(re.findall(r"^# TYPE (\w+)", Metrics().text(gauges, DurationHistogram()), re.MULTILINE))
    assert named <= there
