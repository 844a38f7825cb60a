"""Makes an environment with the lowest versions that pyproject.toml allows, or with the newest: `lowest FOLDER`.

What runs the tests is new in both. A file `ready` in the folder says that all is there; without PyPI there is none.
"""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("lakes", "server")
RUNNERS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "polars", "jsonschema", "mpmath")
FLOOR = re.compile(r"([\w.-]+)(\[[\w,]+\])?>=([\d.]+)")


def requirements(end: str) -> list[str]:
    """What to install: of the lowest end, the first version of each range.

    >>> [each for each in requirements("lowest") if each.startswith("h3=")]
    ['h3==4.2']
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(each for extra in EXTRAS for each in project["optional-dependencies"][extra])]
    if end != "lowest":
        return asked
    floors = [FLOOR.match(each) for each in asked]
    if None in floors:
        raise SystemExit(f"a dependency has no lowest version: {asked[floors.index(None)]}")
    return [f"{found[1]}{found[2] or ''}=={found[3]}" for found in floors if found]


def make(end: str, folder: Path) -> None:
    """The environment; an error where pip cannot install it."""
    venv.create(folder, with_pip=True, clear=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    subprocess.run([*command, *requirements(end), *RUNNERS], check=True)
    (folder / "ready").touch()


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2]))
