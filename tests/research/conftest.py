"""The command of research as its users see it."""

import json
from typing import Any, NamedTuple

import pytest

from research.compare.__main__ import run


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout: a second one, or anything beside it, fails."""
        return json.loads(self.out)


@pytest.fixture
def compare(home, tmp_path, monkeypatch, capsys):
    """Run `python -m research.compare` in an empty folder with an empty ledger."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = run(arguments)
        return Outcome(code, *capsys.readouterr())

    return command
