"""Groups of commands of which one need not be named."""

from typing import Any

from typer.core import TyperGroup


class RunByDefault(TyperGroup):
    """`hazemap device --many …` is `hazemap device run --many …`."""

    default = "run"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The words, after the name of the default command where they begin with an option of it."""
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)
