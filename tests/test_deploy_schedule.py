"""The examples of `deploy/schedule`: each runs the schedule that stands beside it, where its tool is installed."""

import configparser
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.main import get_command

import hazemap
from hazemap.cli.main import app

FOLDER = Path(__file__).parents[1] / "deploy" / "schedule"
FILE = "/etc/hazemap/release.toml"


def understood(words):
    """The options of a `hazemap schedule run`, as the command itself reads them."""
    words = words[words.index("hazemap") :]
    assert words[:3] == ["hazemap", "schedule", "run"]
    return get_command(app).commands["schedule"].commands["run"].make_context("run", words[3:]).params


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def order(tmp_path, home, monkeypatch):
    """The example's own schedule, with a table of its kind, over two days of the past; `hazemap` is on the path."""
    shown = (FOLDER / "release.toml").read_text()
    text = shown.replace("begins = 2026-01-01", "begins = 2025-01-01\nends = 2025-01-03").replace("flat:6", "flat:2")
    (tmp_path / "release.toml").write_text(text)
    (tmp_path / "maps").mkdir()
    at = pa.array(np.arange(2_000) * 86 + 1_735_689_600, pa.timestamp("s"))
    columns = {"user": np.arange(2_000), "lon": np.full(2_000, 13.4), "lat": np.full(2_000, 52.5), "at": at}
    pq.write_table(pa.table(columns), tmp_path / "rides.parquet")
    script = f'#!/bin/sh\nexec {sys.executable} -c "from hazemap.cli.main import run; run()" "$@"\n'
    (tmp_path / "hazemap").write_text(script)
    (tmp_path / "hazemap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path / "release.toml"


def test_the_schedule_is_one():
    spec = hazemap.ScheduleSpec.read(FOLDER / "release.toml")
    assert (spec.name, spec.calendar.zone, str(spec.yearly)) == ("rides every night", "Europe/Berlin", "ε = 36.5")


def test_the_crontab_has_a_line_that_runs_it():
    [line] = [each for each in (FOLDER / "crontab").read_text().splitlines() if re.match(r"\S+ \* \* \* \* ", each)]
    command, _, log = line.split(maxsplit=6)[6].partition(" >> ")
    assert understood(shlex.split(command))["as_json"] and log == "/var/lib/hazemap/schedule.jsonl"


def test_the_unit_takes_budgets_that_are_spent_for_no_failure_and_has_no_network():
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string((FOLDER / "hazemap-schedule.service").read_text())
    unit = parser["Service"]
    assert str(understood(shlex.split(unit["ExecStart"]))["file"]) == FILE
    assert (unit["Type"], unit["User"], unit["SuccessExitStatus"]) == ("oneshot", "hazemap", "3 6")
    assert unit["PrivateNetwork"] == unit["NoNewPrivileges"] == "yes" and unit["UMask"] == "0077"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_the_units():
    units = [str(FOLDER / f"hazemap-schedule.{kind}") for kind in ("service", "timer")]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if "hazemap-schedule" in line and "not executable" not in line]
    assert ours == []


def test_the_model_of_dbt_lists_what_was_released_and_builds_twice_at_one_price(order):
    """As dbt calls it: with a config that is declared beside it; the session is not used."""
    declared = (FOLDER / "dbt" / "models" / "schema.yml").read_text()
    assert re.search(r'release: "\{\{ var\(\'release\', \'/etc/hazemap/release.toml\'\) \}\}"', declared)
    model = loaded(FOLDER / "dbt" / "models" / "hazemap_releases.py").model
    config = type("Config", (), {"__call__": lambda *_, **__: None, "get": lambda *_: str(order)})()
    built = [model(types.SimpleNamespace(config=config), None) for _ in range(2)]
    assert [list(each["state"]) for each in built] == [["released"] * 2, ["there"] * 2]
    assert list(built[1]["period"]) == ["2025-01-01", "2025-01-02"] and len(hazemap.Ledger.default().history()) == 2


@pytest.mark.slow
def test_dbt_builds_the_model(order, tmp_path):
    pytest.importorskip("dbt.adapters.duckdb", reason="dbt-duckdb is not installed")
    output = {"type": "duckdb", "path": f"{tmp_path}/dbt.duckdb"}
    profile = {"hazemap_schedule": {"target": "dev", "outputs": {"dev": output}}}
    (tmp_path / "profiles.yml").write_text(json.dumps(profile))  # JSON is YAML
    command = [sys.executable, "-m", "dbt.cli.main", "run", "--project-dir", str(FOLDER / "dbt")]
    command += ["--profiles-dir", str(tmp_path), "--vars", f"{{release: {order}}}"]
    command += ["--target-path", str(tmp_path / "target"), "--log-path", str(tmp_path / "logs")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    assert done.returncode == 0, done.stdout
    assert len(hazemap.Ledger.default().history()) == 2


@pytest.mark.slow
def test_prefect_runs_the_flow_twice_at_one_price(order, tmp_path, monkeypatch):
    pytest.importorskip("prefect", reason="Prefect is not installed")
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    flow = [sys.executable, str(FOLDER / "prefect_flow.py"), str(order)]
    for _ in range(2):
        done = subprocess.run(flow, capture_output=True, text=True, check=False, timeout=1200)
        assert done.returncode == 0, done.stderr
    assert len(hazemap.Ledger.default().history()) == 2


@pytest.mark.slow
def test_the_flow_of_prefect_calls_what_exists(order, monkeypatch):
    """With a stand-in for Prefect: the command runs, and its JSON comes back."""
    plain = types.SimpleNamespace(info=lambda *_: None)
    stand_in = types.ModuleType("prefect")
    stand_in.flow = stand_in.task = lambda *_, **__: lambda function: function
    stand_in.get_run_logger = lambda: plain
    monkeypatch.setitem(sys.modules, "prefect", stand_in)
    release = loaded(FOLDER / "prefect_flow.py").release
    assert [each["state"] for each in release(str(order))["periods"]] == ["released"] * 2
    told = release(str(order))
    assert (told["exit"], told["there"]) == (0, 2)
    with pytest.raises(RuntimeError, match="ended with 2"):
        release("nowhere.toml")


@pytest.mark.slow
def test_the_dag_of_airflow_runs_what_exists(order):
    text = (FOLDER / "airflow_dag.py").read_text()
    [command] = re.findall(r'bash_command="([^"]+)"', text)
    assert understood(shlex.split(command))["as_json"] and "catchup=False" in text and "max_active_runs=1" in text
    done = subprocess.run(
        ["bash", "-c", command.replace(FILE, str(order))], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()  # what goes to XCom
    assert json.loads(line)["exit"] == 0


@pytest.mark.slow
def test_airflow_loads_the_dag(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    pytest.importorskip("airflow", reason="Airflow is not installed")
    dag = loaded(FOLDER / "airflow_dag.py").dag
    assert [each.task_id for each in dag.tasks] == ["release"] and not dag.catchup
