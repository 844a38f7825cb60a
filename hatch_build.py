"""What a wheel installs beside the package: the man pages, where `make man` has written them."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGES = "man"


class ManPages(BuildHookInterface):
    """A clone without its man pages still makes a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - as hatchling calls it
        """Put every page into share/man/man1 of the environment."""
        for page in sorted(Path(self.root, PAGES).glob("*.1")):
            build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"
