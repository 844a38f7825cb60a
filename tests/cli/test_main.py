"""What all commands have in common: help, errors, exit codes, speed."""

import json
import os
import resource
import signal
import subprocess
import sys

import pytest
import typer

from hazemap import __version__
from hazemap.cli import main as entry
from hazemap.cli.console_output import progress
from hazemap.privacy.ledger import Ledger

COMMANDS = ["demo", "release", "ask", "show", "plan", "inspect", "export"]
LEDGER = [["ledger", name] for name in ("list", "cap", "history")]
HEAVY = {"numpy", "numba", "pandas", "geopandas", "matplotlib", "duckdb", "pyarrow", "shapely", "scipy", "rasterio"}


@pytest.mark.parametrize("command", [*([name] for name in COMMANDS), ["ledger"], *LEDGER, []], ids=" ".join)
def test_every_help_ends_with_an_example(command, hazemap):
    done = hazemap(*command, "--help")
    assert (done.code, done.err) == (0, "")
    assert "Example: hazemap " in done.out
    assert " ".join(["Example: hazemap", *command]) in done.out


def test_the_version_is_said(hazemap):
    assert hazemap("--version").out == f"hazemap {__version__}\n"


def test_no_command_at_all_shows_the_commands(hazemap):
    done = hazemap()
    assert done.code == 2
    assert all(command in done.out for command in COMMANDS)


def test_an_unknown_command_is_a_usage_error(hazemap):
    done = hazemap("publish")
    assert (done.code, done.out) == (2, "")
    assert "publish" in done.err


def test_help_loads_nothing_heavy():
    program = (
        "import sys\nfrom hazemap.cli.main import main\n"
        "for command in (['--help'], ['release', '--help'], ['plan', '--help'], ['ledger', 'cap', '--help']):\n"
        "    assert main(command) == 0\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_a_bug_is_called_one_and_shown(monkeypatch, capsys):
    def broken(_):
        raise KeyError("a bug")

    monkeypatch.setattr(entry, "main", broken)
    with pytest.raises(KeyError, match="a bug"):
        entry.run()
    assert "this is a bug in hazemap" in capsys.readouterr().err


def test_an_interrupt_ends_with_130(hazemap, visits, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("hazemap.publish.run_release", interrupted)
    done = hazemap("release", "visits.parquet", "-e", "1", "-o", "map.parquet")
    assert done.code == 130


def test_what_the_system_refuses_is_no_bug(hazemap, visits, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hazemap.publish.run_release", full)
    done = hazemap("release", "visits.parquet", "-e", "1", "-o", "map.parquet")
    assert done.code == 1
    assert "No space left on device" in done.err


def test_progress_is_quiet_where_nobody_watches(capsys, monkeypatch):
    monkeypatch.setattr("hazemap.cli.console_output.PATIENCE", 0.0)
    with progress() as tell:
        tell("reading rows", 0.5)
        tell("drawing", None)
    assert capsys.readouterr() == ("", "")


def test_names_with_brackets_are_printed_as_they_are(hazemap, visits):
    goal = "map [red] :smile:.parquet"
    done = hazemap("release", "visits.parquet", "-e", "1", "--box=13.2,52.4,13.6,52.6", "-o", goal)
    assert done.out.startswith(goal)
    assert goal in hazemap("ledger", "history").out


@pytest.mark.slow
def test_the_installed_command_works_from_a_shell(visits, tmp_path):
    command = [sys.executable, "-c", "from hazemap.cli.main import run; run()"]
    environment = {**os.environ, "HAZEMAP_HOME": str(tmp_path / "home")}

    def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
        )

    done = shell("release", "visits.parquet", "--epsilon", "1", "-o", "map.parquet", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["file"] == "map.parquet"
    refused = shell("release", "visits.parquet", "--epsilon", "0", "-o", "new.parquet")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "error: epsilon must be above 0, not 0\n"


@pytest.mark.slow
def test_a_terminal_without_greek_letters_is_no_reason_to_fail(release, tmp_path):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for option in ([], ["--json"]):
        command = [sys.executable, "-c", "from hazemap.cli.main import run; run()", "ask", "map.parquet", *option]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["counted"] == "people"


@pytest.mark.slow
def test_an_interrupt_after_the_charge_says_that_it_stands(visits, tmp_path):
    program = (
        "import signal, time\nfrom hazemap.trust.curator import Curator\nfrom hazemap.cli.main import run\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # whoever runs us may have us ignore it
        "Curator.answer = lambda *_: (print('asked', flush=True), time.sleep(60))\nrun()"
    )
    arguments = ["release", "visits.parquet", "-e", "1", "--ledger", "ledger.sqlite", "-o", "map.parquet"]
    command = [sys.executable, "-c", program, *arguments]
    started = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stdout.readline() == "asked\n"
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=600)
    assert (started.returncode, out) == (130, "")
    assert err.endswith(
        "error: interrupted; a charge that was made stands, and `hazemap recover` lists what can be made of it\n"
    )
    assert not (tmp_path / "map.parquet").exists()
    [record] = Ledger(tmp_path / "ledger.sqlite").history()
    assert not record.released


def test_the_list_of_commands_loads_none_of_them_nor_rich():
    program = (
        "import sys\nfrom hazemap.cli.main import main\n"
        "assert main(['--help']) == 0 and main([]) == 2\n"
        "print(*(name for name in sys.modules if name.startswith(('rich', 'pydantic', 'hazemap.cli.'))), "
        "file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.split() == ["hazemap.cli.console_output", "hazemap.cli.main"]


def test_idle_threads_are_told_to_sleep_before_numpy_is_loaded():
    program = (
        "import os, sys\nfrom hazemap.cli import main\nfound = []\n"
        "main.main = lambda words: found.append(('numpy' in sys.modules, os.environ.get('OPENBLAS_THREAD_TIMEOUT')))\n"
        "try:\n    main.run()\nexcept SystemExit:\n    print(*found[0])"
    )
    without = {name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    for said, set_already in (("4", {}), ("20", {"OPENBLAS_THREAD_TIMEOUT": "20"})):
        words = [sys.executable, "-c", program]
        done = subprocess.run(words, env=without | set_already, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["False", said]


@pytest.mark.parametrize("name", entry.COMMANDS)
def test_the_list_says_of_a_command_what_its_own_help_begins_with(name):
    command = typer.main.get_command(entry.app).commands[name]
    assert command.name == name
    assert " ".join(command.help.split("\n\n")[0].split()) == entry.COMMANDS[name]


@pytest.mark.slow
def test_help_answers_in_a_seventh_of_a_second():
    """Measured 0.08 and 0.3 s; CPU time, the best of five, with room for a machine that does other work besides."""
    assert _best(["--help"]) < 3 * 0.15
    assert _best(["release", "--help"]) < 3 * 0.4


@pytest.mark.slow
def test_a_question_is_answered_in_four_fifths_of_a_second(release, tmp_path):
    """Measured 0.76 s beside other work; CPU time, with room as above."""
    assert _best(["ask", str(tmp_path / "map.parquet")]) < 3 * 0.8


@pytest.mark.slow
def test_a_plan_takes_three_seconds():
    """Measured 1.4 s; CPU time, the best of five, three times the promise where other work shares the machine."""
    assert _best(["plan", "--box=13.2,52.4,13.6,52.6", "--people", "1000000", "--epsilon", "1"]) < 3 * 3


def _best(arguments: list[str]) -> float:
    """Seconds that the processor works for it: a busy machine lets it wait as long as it likes."""
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", "from hazemap.cli.main import run; run()", *arguments]
        subprocess.run(command, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def test_the_list_of_commands_has_panels_and_a_demo_is_a_map_unless_another_is_named(hazemap, tmp_path):
    done = hazemap("--help")
    panels = [line for line in done.out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert panels == ["Options:", *(f"{panel}:" for panel in entry.PANELS)]
    (tmp_path / "demo").write_text("no folder")
    for words in ((), ("map",), ("--people", "2000")):
        done = hazemap("demo", *words)
        assert done.code == 2 and "the folder demo cannot be made" in done.err
    assert hazemap("demo", "--nobody").code == hazemap("demo-devices").code == 2
