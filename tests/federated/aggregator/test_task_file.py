"""Tasks on file: each party is told what it needs, and nothing more; and the commands that write and read them."""

import os
from fractions import Fraction

import pytest
from tests.federated.aggregator.two_servers import NOISE, TwoServers, a_task

from hazemap.cli.main import main
from hazemap.errors import FileError, InputError
from hazemap.federated.aggregator.task_file import TaskFile, new_task_files
from hazemap.federated.aggregator.task_records import aggregator_task, measurement_of, noise_within, register_tasks
from hazemap.federated.protocols.dap.basic_types import DapRole
from hazemap.federated.protocols.dap.vdaf_configuration import (
    CountConfiguration,
    HistogramConfiguration,
    MultihotConfiguration,
    Poplar1Configuration,
    SumConfiguration,
    SumVecConfiguration,
)
from hazemap.federated.service.access_tokens import kept
from hazemap.privacy.mechanisms import DiscreteGaussian


def test_each_partys_file_has_what_it_needs_and_no_secret_of_another():
    files = new_task_files(a_task(), os.urandom, 86_400, 1_000)
    texts = {party: file.to_toml() for party, file in files.items()}
    assert {party: TaskFile.from_toml(text) for party, text in texts.items()} == files
    has = {
        party: {name for name in ("verify_key", "collector_key") if getattr(file, name)}
        for party, file in files.items()
    }
    assert has == {"leader": {"verify_key"}, "helper": {"verify_key"}, "collector": {"collector_key"}, "client": set()}
    assert kept(files["leader"].peer_token) == files["helper"].accepted_token
    assert kept(files["collector"].peer_token) == files["leader"].accepted_token
    assert files["leader"].peer_token not in texts["helper"]
    assert files["collector"].peer_token not in texts["leader"]
    assert all(
        secret.hex() not in repr(files) for secret in (files["leader"].verify_key, files["collector"].collector_key)
    )


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda text: text.replace('party = "leader"', 'party = "guest"'),
        lambda text: text.replace("verify_key", "verifykey"),
        lambda text: text.replace('version = "dap-18"', 'version = "dap-1"'),
        lambda text: text.replace('task_id = "', 'task_id = "A'),
        lambda text: "\n".join(line for line in text.splitlines() if "accepted" not in line),
        lambda text: text + "report_expiry_seconds = true\n",
        lambda _: "x = ",
    ],
)
def test_a_file_that_is_no_task_is_refused(tmp_path, spoilt):
    path = tmp_path / "leader.toml"
    path.write_text(spoilt(new_task_files(a_task(), os.urandom, open_reports=9)["leader"].to_toml()))
    with pytest.raises(FileError, match="holds no task"):
        TaskFile.read(path)


def test_an_aggregator_serves_its_own_role_and_tasks_that_never_change():
    two = TwoServers()
    files = new_task_files(a_task(privacy=NOISE), os.urandom, open_reports=9)
    task = aggregator_task(files["leader"])
    assert (task.role, task.draw_noise(NOISE.noise, 3).shape) == (DapRole.LEADER, (3,))
    with pytest.raises(InputError, match="leader's or a helper's"):
        aggregator_task(files["client"])
    two.leader.store.write_now()
    with pytest.raises(InputError, match="never change"):
        register_tasks(two.leader.store, [files["leader"]], DapRole.LEADER)
    with pytest.raises(InputError, match="is a leader"):
        register_tasks(two.leader.store, [files["helper"]], DapRole.LEADER)
    two.close()


def test_measurements_have_names():
    named = {
        "count": CountConfiguration(),
        "sum:255": SumConfiguration(255),
        "vector:10:3": SumVecConfiguration(10, 3, 4),
        "histogram:4096": HistogramConfiguration(4096, 64),
        "bits:64:3": MultihotConfiguration(64, 8, 3),
        "prefixes:20": Poplar1Configuration(20),
    }
    assert {text: measurement_of(text) for text in named} == named
    for wrong in ("", "counts", "sum", "sum:-1", "sum:1:2", "histogram:0", "prefixes:³", "sum:" + "9" * 30):
        with pytest.raises(InputError):
            measurement_of(wrong)


def test_noise_is_the_least_that_the_budget_pays_for():
    measured, epsilon, delta = HistogramConfiguration(64, 8), Fraction(1), Fraction(1, 10**6)
    found = noise_within(measured, epsilon, delta, 1)
    less = DiscreteGaussian(found.noise.variance - Fraction(1, 10**6))
    assert found.price(measured) <= epsilon < type(found).of(less, 1, epsilon, delta).price(measured)
    four = noise_within(Poplar1Configuration(8), epsilon, Fraction(0), 4)
    assert four.noise.scale == 4
    for wrong in ((Fraction(0), delta), (Fraction(1, 3), delta), (epsilon, Fraction(2, 3)), (epsilon, Fraction(1))):
        with pytest.raises(InputError):
            noise_within(measured, *wrong, 1)


def test_the_commands_write_tasks_and_refuse_what_cannot_be_asked(tmp_path, capsys):
    urls = ["--leader", "http://127.0.0.1:9/", "--helper", "http://127.0.0.1:10/", "--least", "5", "--open", "1000"]
    folder = tmp_path / "tasks"
    assert main(["collector", "task", "prefixes:8", *urls, "--epsilon", "1", "--levels", "2", "-o", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{p}.toml" for p in ("client", "collector", "helper", "leader")
    ]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())
    assert TaskFile.read(folder / "client.toml").task.privacy.levels == 2
    assert main(["collector", "task", "count", *urls, "-o", str(folder)]) == 2
    assert main(["collector", "task", "count", *urls, "--epsilon", "x", "-o", str(tmp_path / "more")]) == 2
    asked = ["collector", "collect", str(folder / "collector.toml"), "--start", "3600"]
    for wrong in ([], ["--prefix", "01", "--prefix", "1"], ["--prefix", "012"], ["--prefix", "0" * 9]):
        assert main([*asked, *wrong]) == 2
    assert main(["collector", "collect", str(folder / "collector.toml"), "--start", "1"]) == 2
    capsys.readouterr()
    assert main([*asked, "--prefix", "01"]) == 4  # nobody listens there
    assert "does not answer" in capsys.readouterr().err
    assert main(["aggregator", "--role", "helper", "--data", str(tmp_path), "--task", str(folder / "leader.toml")]) == 2
    assert main(["aggregator", "--role", "king", "--data", str(tmp_path), "--task", str(folder / "leader.toml")]) == 2
