"""What many tests start from: towns of made-up people, and answers without a trust model."""

import gc
import os
from collections.abc import Callable, Generator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from tests import luck, shared_folder

if luck.FIXED:
    luck.fix()  # before anything of hazemap is imported

from hazemap.execution import run
from hazemap.privacy.budget import Budget
from hazemap.privacy.first_cap import FirstCap
from hazemap.queries.noisy_queries import Question

EXAMPLES = 100 if os.environ.get("HAZEMAP_THOROUGH") else 50
"""On so many examples a law is tried: by `make test-slow`, and by `make test`."""

settings.register_profile("ci", deadline=None, max_examples=EXAMPLES, derandomize=True, print_blob=True)
settings.register_profile("dev", deadline=None, max_examples=EXAMPLES)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

gc.set_threshold(50_000, 20, 20)
"""Each worker holds thousands of tests: to look through all of them again and again would take a tenth of the time."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test has a luck of its own, whichever tests ran before it."""
    with luck.luck_of(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """And so has a fixture that several tests share."""
    if fixturedef.scope == "function":
        return (yield)
    with luck.luck_of(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param_index', 0)}"):
        return (yield)


shared = shared_folder.shared


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger of the test's own."""
    folder = tmp_path / "home"
    monkeypatch.setenv("HAZEMAP_HOME", str(folder))
    monkeypatch.delenv("HAZEMAP_LEDGER", raising=False)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _no_usual_cap() -> Generator[Callable[[Budget], FirstCap], None, None]:
    """Made-up people may be charged as often as a test likes, but for tests of the cap that a first charge sets."""
    usual = FirstCap.usual
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FirstCap, "usual", classmethod(lambda _cls, _price: None))
        yield usual


@pytest.fixture
def usual_cap(_no_usual_cap: Callable[[Budget], FirstCap], monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set gets its usual cap with its first charge, as it does for everybody else."""
    monkeypatch.setattr(FirstCap, "usual", _no_usual_cap)


@pytest.fixture(scope="session", autouse=True)
def _no_looks() -> Generator[Callable[[Question], Fraction | None], None, None]:
    """Made-up tables are small, and a look would often stop them: tests pay at once, but for those of looks."""
    look_share = run.look_share
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run, "look_share", lambda _question: None)
        yield look_share


@pytest.fixture
def looks(_no_looks: Callable[[Question], Fraction | None], monkeypatch: pytest.MonkeyPatch) -> None:
    """A release looks before it spends, as it does for everybody else."""
    monkeypatch.setattr(run, "look_share", _no_looks)


@pytest.fixture(scope="session")
def drawn_points() -> dict[str, np.ndarray]:
    """What `points` copies."""
    rng = np.random.default_rng(7)
    person = rng.integers(0, 4_000, 20_000)
    centre = np.where(rng.random(20_000) < 0.7, 0.3, 0.8)
    spot = np.clip(centre[:, None] + rng.normal(0, 0.05, (20_000, 2)), 0, 1 - 1e-9)
    return {"person": person, "lon": 13.2 + 0.4 * spot[:, 0], "lat": 52.4 + 0.2 * spot[:, 1]}


@pytest.fixture
def points(drawn_points: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """20,000 rows of 4,000 people in two clusters of a Berlin-sized box, the same every time."""
    return {name: column.copy() for name, column in drawn_points.items()}
