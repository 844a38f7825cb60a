"""The wheel: it carries the built pages and their licences, and where it is installed nothing needs Node."""

import hashlib
import json
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pytest
from tests.ports import free_port

import hazemap

ROOT = Path(__file__).parents[1]
WEB = ROOT / "web"
LICENCES = "hazemap/bundled_licences.txt"
PAGES = ("hazemap/releases/page/page.html", "hazemap/studio/app/index.html", "hazemap/federated/device/tab/device.html")
BUNDLES = ("page", "studio", "tab")


def need(*paths):
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        pytest.skip(f"`make studio` builds what is missing: {missing}")


def ran(words, **how):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=1200, **how)
    assert done.returncode == 0, f"{words}\n{done.stdout[-3_000:]}\n{done.stderr[-3_000:]}"
    return done.stdout


def built_into(bundle, folder):
    ran(["npm", "run", "bundle"], cwd=WEB / bundle, env={**os.environ, "OUT": str(folder)})
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("bundle", BUNDLES)
def test_two_builds_of_a_bundle_have_the_same_bytes_and_its_licences_name_what_it_bundles(bundle, tmp_path):
    need(WEB / "node_modules" / "vite")
    if shutil.which("npm") is None:
        pytest.skip("Node builds the bundles")
    one, two = (built_into(bundle, tmp_path / name) for name in ("one", "two"))
    assert one == two and "licences.txt" in one and len(one) > 1
    text = (tmp_path / "one" / "licences.txt").read_text()
    named = set(re.findall(r"^(@?[a-z0-9./-]+) \d+\.\d+\.\d+(?:-[a-z0-9]+)? \(", text, re.MULTILINE))
    described = json.loads((WEB / bundle / "package.json").read_text()).get("dependencies", {})
    if bundle == "tab":  # it has no package of its own, and those of the device around which it is
        described = json.loads((WEB / "device" / "package.json").read_text())["dependencies"]
    assert named == set(described)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the sources as they are, by pip, which fetches the build's own tool."""
    need(*(ROOT / "src" / name for name in (*PAGES, LICENCES)))
    folder = tmp_path_factory.mktemp("wheel")
    words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--disable-pip-version-check", "-w", str(folder), str(ROOT)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=1200)
    if "hatchling" in done.stderr and "No matching distribution" in done.stderr:
        pytest.skip("there is no way to the tool that builds wheels")
    assert done.returncode == 0, done.stderr[-3_000:]
    [found] = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel in it, and a search path on which there is no Node. Other packages are ours."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    target = sysconfig.get_path("purelib", "venv", {"base": str(folder)})
    words = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    ran([sys.executable, "-m", "pip", f"--python={python}", "install", *words])
    # A path that a .pth file names is searched last, and its own .pth files are not read: ours is not seen from there.
    (Path(target) / "ours.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    environment = {
        **{name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ},
        "PATH": str(folder / "bin"),
        "PYTHONHASHSEED": "0",
    }
    assert shutil.which("node", path=environment["PATH"]) is None
    where = ran([python, "-c", "import hazemap; print(hazemap.__file__)"], env=environment, cwd=folder)
    assert where.startswith(target), where
    return folder, environment


@pytest.mark.slow
def test_the_wheel_carries_the_pages_and_one_file_of_licences(wheel):
    with zipfile.ZipFile(wheel) as inside:
        names = inside.namelist()
        text = inside.read(LICENCES).decode()
        same = {name: inside.read(name) == (ROOT / "src" / name).read_bytes() for name in (*PAGES, LICENCES)}
    assert all(same.values()), same
    assert not [name for name in names if "node_modules" in name or name.endswith(".ts")]
    assert "Natural Earth" in text and "public domain" in text
    described = [json.loads((WEB / name / "package.json").read_text()) for name in ("page", "studio", "device")]
    bundled = {package: exact for each in described for package, exact in each.get("dependencies", {}).items()}
    assert bundled, "hexagons and a cipher"
    for package, exact in bundled.items():
        assert f"{package} {exact} (" in text
    assert "MIT License" in text and "Apache License" in text


@pytest.mark.slow
def test_what_a_wheel_installs_draws_pages_and_serves_the_device_without_node(installed, tmp_path):
    folder, environment = installed
    command, made = folder / "bin" / "hazemap", tmp_path / "map.parquet"
    chance = np.random.default_rng(1)
    visits = pd.DataFrame({"user": np.arange(500), "lon": chance.normal(13.4, 0.03, 500), "lat": np.full(500, 52.5)})
    asked = {"person": "user", "epsilon": 1, "box": "13.2,52.4,13.6,52.6", "dataset": "visits"}
    hazemap.release(visits, output=str(made), ledger=hazemap.Ledger(tmp_path / "ledger.sqlite"), **asked)
    ran([command, "show", made, "-o", tmp_path / "map.html"], env=environment, cwd=tmp_path)
    assert "Content-Security-Policy" in (tmp_path / "map.html").read_text()
    said = ran([command, "browser-device", "-o", tmp_path / "device.html"], env=environment, cwd=tmp_path)
    digest = hashlib.sha256((tmp_path / "device.html").read_bytes()).hexdigest()
    assert digest in said
    assert "Publish maps in a browser" in ran([command, "studio", "--help"], env=environment, cwd=tmp_path)
    port = free_port()
    words = [command, "browser-device", "--port", str(port)]
    with subprocess.Popen(
        words, env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as it:
        try:
            end = time.monotonic() + 600
            while True:
                try:
                    page = httpx.get(f"http://127.0.0.1:{port}/").content
                    break
                except httpx.TransportError:
                    assert it.poll() is None and time.monotonic() < end, it.stderr.read()
                    time.sleep(0.1)
        finally:
            it.terminate()
    assert hashlib.sha256(page).hexdigest() == digest
