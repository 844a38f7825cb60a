"""The four commands that serve: their options have the same names, defaults and words, and reach the server."""

import pytest
import typer
from typer.main import get_command

from hazemap.cli.federated.party_servers import aggregator, shuffler
from hazemap.cli.federated.server import run as server
from hazemap.cli.federated.serving_options import Serving, serving
from hazemap.cli.studio import studio

COMMANDS = {"server": server, "aggregator": aggregator, "shuffler": shuffler, "studio": studio}
OWN_WORDS = {"port", "connections", "per_address"}


def options(command):
    app = typer.Typer()
    app.command()(command)
    return {each.name: each for each in get_command(app).params if each.name != "help"}


def test_an_option_of_several_servers_has_one_name_one_default_and_one_meaning():
    every = {name: options(command) for name, command in COMMANDS.items()}
    shared = set.intersection(*map(set, every.values()))
    assert {"host", "port", "certificate", "key", "connections", "per_address", "verbose"} <= shared
    with_state = set.intersection(*(set(each) for name, each in every.items() if name != "studio"))
    assert {"data", "database", "standby", "behind_proxy", "trusted_proxy"} <= with_state
    for name in shared | with_state:
        found = [each[name] for each in every.values() if name in each]
        assert len({(*each.opts, each.metavar) for each in found}) == 1, name
        assert len({each.default for each in found}) == 1 or name == "port"
        assert len({each.help for each in found}) == 1 or name in OWN_WORDS


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_chosen_reaches_the_server(name):
    state = name != "studio"
    seen = []

    @serving(8470, "uploads", state=state)
    def command(serving: Serving, other: int = 3) -> None:
        seen.append((serving, other))

    app = typer.Typer()
    app.command()(command)
    proxy = ["--behind-proxy", "--trusted-proxy", "10.0.0.1", "--data", "d", "--standby"] if state else []
    words = ["--connections", "7", "--uploads", "9", "--host", "0.0.0.0", "--other", "4", *proxy]
    get_command(app)(words, standalone_mode=False)
    [(found, other)] = seen
    limits = found.address().limits(per_address=5)
    assert (limits.connections, limits.per_address, limits.uploads, limits.enrolments, other) == (7, 5, 9, 60, 4)
    assert found.address().port == 8470
    if state:
        assert found.address().trusted_proxies == ("10.0.0.1",) and found.state.standby
