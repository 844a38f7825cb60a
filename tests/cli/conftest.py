"""The command line as its users see it: an exit code, stdout and stderr."""

import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.ports import free_port

from hazemap.cli.demo import devices, processes, recipes
from hazemap.cli.main import main

BOX = "--box=13.2,52.4,13.6,52.6"


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout: a second one, or anything beside it, fails."""
        return json.loads(self.out)


Hazemap = Callable[..., Outcome]


@pytest.fixture
def hazemap(home, tmp_path, monkeypatch, capsys) -> Hazemap:
    """Run a command in an empty folder with an empty ledger."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = main(arguments)
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def unhurried(monkeypatch) -> None:
    """Demonstrations whose processes may take minutes to come, at ports that no other test is given."""
    monkeypatch.setattr(processes, "PATIENCE", 1_200.0)
    for each in (recipes, devices):
        monkeypatch.setattr(each, "free_port", free_port)


@pytest.fixture
def visits(points, tmp_path) -> Path:
    """A table in the folder."""
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table(points), path)
    return path


@pytest.fixture(scope="session")
def released(drawn_points: dict[str, np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """A folder with a table, its release and its ledger, made once; and what the command said."""
    folder = tmp_path_factory.mktemp("released")
    pq.write_table(pa.table(drawn_points), folder / "visits.parquet")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        patch.chdir(folder)
        patch.setenv("HAZEMAP_HOME", str(folder / "home"))
        patch.delenv("HAZEMAP_LEDGER", raising=False)
        code = main(("release", "visits.parquet", "--person", "person", "--epsilon", "1", BOX, "-o", "map.parquet"))
    return folder, Outcome(code, out.getvalue(), err.getvalue())


@pytest.fixture
def release(hazemap, released, tmp_path) -> Outcome:
    """A table and its release, `map.parquet`, in the folder, and its price in the ledger."""
    folder, done = released
    assert done.code == 0, done.err
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return done
