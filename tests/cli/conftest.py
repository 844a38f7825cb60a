"""The command line as its users see it: an exit code, stdout and stderr."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
def visits(points, tmp_path) -> Path:
    """A table in the folder."""
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table(points), path)
    return path


@pytest.fixture
def release(hazemap, visits) -> Outcome:
    """A release, `map.parquet`, in the folder."""
    done = hazemap("release", "visits.parquet", "--person", "person", "--epsilon", "1", BOX, "-o", "map.parquet")
    assert done.code == 0, done.err
    return done
