"""The town of `tests.algorithms`."""

from tests.algorithms.conftest import curator, lost

__all__ = ["curator", "lost"]
