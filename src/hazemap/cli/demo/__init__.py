"""`hazemap demo`: demonstrations on this machine, with people who do not exist."""

from collections.abc import Callable
from typing import Any

import typer

from hazemap.cli.demo import browser, devices, recipes
from hazemap.cli.demo import map as city
from hazemap.cli.main import RunByDefault


class _MapByDefault(RunByDefault):
    """`hazemap demo` is `hazemap demo map`."""

    default = "map"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or [self.default])


app = typer.Typer(
    name="demo",
    cls=_MapByDefault,
    help="Try hazemap on made-up people: a map from a table (the default), from devices, or in browsers.",
    epilog="Example: [bold]hazemap demo --folder /tmp/demo --people 20000[/bold]",
)
EXAMPLES: dict[str, tuple[Callable[..., None], str]] = {
    "map": (city.city_map, "hazemap demo map --folder /tmp/demo --people 20000"),
    "devices": (devices.devices, "hazemap demo devices --folder /tmp/devices --people 500"),
    "recipes": (recipes.recipes, "hazemap demo recipes --folder /tmp/recipes --people 500"),
    "two-servers": (devices.two_servers, "hazemap demo two-servers --folder /tmp/two --people 500"),
    "browser": (browser.browser, "hazemap demo browser --folder /tmp/browser"),
}
for _name, (_command, _example) in EXAMPLES.items():
    app.command(_name, epilog=f"Example: [bold]{_example}[/bold]")(_command)
