"""The folder of evaluation data, for all tests and for those of `hazemap.vdaf` alone."""

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[1] / ".." / "shared"


@pytest.fixture
def shared() -> Path:
    """The folder of evaluation data beside the checkout; the test is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the evaluation data folder ../shared is not here")
    return SHARED.resolve()
