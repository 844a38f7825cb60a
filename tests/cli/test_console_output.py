"""What commands print does nothing to a terminal, whoever wrote the words."""

import pytest
from rich.table import Table

from hazemap.cli.console_output import complain, console, deliver, note, printable

SLY = "ill\x1b[2K\x1b[1A\x9b2Jhealthy\u202eneddih\r\x07\n\tnext"


def test_letters_that_steer_a_terminal_are_shown():
    shown = printable(SLY)
    assert shown == "ill\\x1b[2K\\x1b[1A\\x9b2Jhealthy\\u202eneddih\\r\\x07\n\tnext"
    assert printable("Zürich, 東京, ½ … ± 1 %") == "Zürich, 東京, ½ … ± 1 %"


@pytest.mark.parametrize("as_table", [False, True])
def test_results_notes_and_errors_are_printable(as_table, capsys):
    table = Table(SLY, box=None)
    table.add_row(SLY)
    deliver({}, False, SLY, *([table] if as_table else []))
    note(SLY)
    complain("FileError", SLY, False, hint="look")
    console(stderr=True).print(SLY)
    written = "".join(capsys.readouterr())
    assert not set(written) & set("\x1b\x9b\r\x07\u202e")
    assert written.count("\\x1b[2K") >= 4
