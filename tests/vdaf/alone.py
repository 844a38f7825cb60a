"""A plug-in of pytest: `hazemap.vdaf` and its tests, with the rest of hazemap blocked.

`python -m pytest -p tests.vdaf.alone --confcutdir=tests/vdaf -o filterwarnings=error tests/vdaf`
"""

import sys
from importlib.abc import MetaPathFinder

from tests import shared_folder

shared = shared_folder.shared


class Blocked(MetaPathFinder):
    """Refuses to import any module of hazemap outside `hazemap.vdaf`."""

    def find_spec(self, name: str, *_: object) -> None:
        """Nothing for what is allowed, so that the next finder looks for it; an ImportError for the rest."""
        if name.startswith("hazemap.") and not (name + ".").startswith("hazemap.vdaf."):
            raise ImportError(f"{name} is not of hazemap.vdaf, which imports nothing else of hazemap")


def pytest_configure() -> None:
    """Block, before any test is imported, and take few examples without a deadline."""
    from hypothesis import settings

    block()
    settings.register_profile("alone", deadline=None, max_examples=20, derandomize=True)
    settings.load_profile("alone")


def block() -> None:
    """From now on nothing of hazemap outside vdaf can be imported in this process."""
    early = [name for name in sys.modules if name.startswith("hazemap.")]
    if early:
        raise ImportError(f"imported before it was blocked: {early}")
    sys.meta_path.insert(0, Blocked())
