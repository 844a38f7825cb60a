"""The compose files of `deploy/`: no root, nothing writable but a volume, and options that exist."""

from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from hazemap.cli.main import app

DEPLOY = Path(__file__).parents[1] / "deploy"
IMAGE = (DEPLOY / "Containerfile").read_text()
FILES = sorted(DEPLOY.glob("compose.*.yaml"))


def service(path):
    [(name, found)] = yaml.safe_load(path.read_text())["services"].items()
    assert path.name == f"compose.{name}.yaml"
    return found


def understood(found):
    """The options that a container starts with, as the command itself reads them."""
    [own] = [line for line in IMAGE.splitlines() if line.startswith("ENTRYPOINT ")]
    words = [*found.get("entrypoint", yaml.safe_load(own.removeprefix("ENTRYPOINT "))), *found["command"]]
    assert words[0] == "/opt/hazemap/bin/hazemap"
    command = get_command(app)
    while hasattr(command, "commands"):
        words = words[1:]
        command = command.commands[words[0]]
    return command.make_context(words[0], words[1:]).params


def test_there_is_one_for_each_server():
    assert [path.name.split(".")[1] for path in FILES] == ["aggregator", "server", "studio"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_container_is_nobodys_root_and_writes_its_volume_alone(path):
    found = service(path)
    assert found["user"] == "10001:10001" and "USER 10001:10001" in IMAGE
    assert found["read_only"] is True and found["cap_drop"] == ["ALL"]
    assert found["security_opt"] == ["no-new-privileges:true"]
    assert found["tmpfs"] == ["/tmp"] and "NUMBA_CACHE_DIR=/tmp/" in IMAGE
    assert not {"privileged", "network_mode", "pid", "ipc", "devices", "environment"} & found.keys()
    [kept, *read] = found["volumes"]
    name, _, place = kept.partition(":")
    assert name in yaml.safe_load(path.read_text())["volumes"] and f"VOLUME {place}" in IMAGE
    assert all(each.endswith(":ro") for each in read)
    build = found["build"]
    assert (path.parent / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Containerfile"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_container_starts_with_options_that_exist_and_publishes_the_port_it_listens_on(path):
    found = service(path)
    options = understood(found)
    [published] = found["ports"]
    assert options["host"] == "0.0.0.0"
    assert str(options["port"]) == published.rpartition(":")[2]
    behind_proxy = options.get("behind_proxy", False)
    assert published.startswith("127.0.0.1:") if behind_proxy else options["certificate"] and options["key"]
    kept = [options[name] for name in ("data",) if options.get(name)]
    assert all(str(each).startswith("/data/") for each in kept)


def test_the_server_believes_the_gateway_of_its_own_network_alone():
    text = yaml.safe_load((DEPLOY / "compose.server.yaml").read_text())
    [network] = text["networks"]["default"]["ipam"]["config"]
    options = understood(text["services"]["server"])
    [proxy] = [str(each) for each in options["trusted_proxy"]]
    assert proxy.removesuffix("/32") == network["subnet"].replace(".0/24", ".1")
