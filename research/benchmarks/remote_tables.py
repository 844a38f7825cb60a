"""Reading Parquet from a bucket and over https, beside the same file on this machine: processor seconds and memory.

    python -m research.benchmarks.remote_tables [--rows 1e7] [--folder DIR] [--repeat 3]

The bucket is moto's, the server one of this script with a certificate made for it; both are processes of their own on
the loopback, so nothing here says what a network costs. A row has an id, two coordinates and two columns that nobody
asks for; row groups are of 1,000,000 rows. One run is `open_table` and the votes of a rule over a quadtree of depth 10,
in a process of its own; runs of the three take turns. Every run is in results/remote_tables.json, with the load.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "remote_tables.json"
RULES = ("rows are people", "one row")
KEYS = {"AWS_ACCESS_KEY_ID": "measured", "AWS_SECRET_ACCESS_KEY": "measured", "AWS_REGION": "eu-central-1"}


def measure(source: str, rule: str) -> None:
    """In a process of its own: open, read, print what it took."""
    from hazemap.readers.open_table import open_table
    from hazemap.spatial.bounding_box import Box
    from hazemap.spatial.quadtree import Quadtree
    from hazemap.tables.contribution_bounding import AtMostRows, RowIsPerson

    tree = Quadtree.around(Box(13.0, 52.3, 13.8, 52.7), 10)
    start = time.perf_counter()
    votes = open_table(source, key=1).votes(tree, AtMostRows(1) if rule == "one row" else RowIsPerson())
    seconds, usage = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    figures = {"seconds": seconds, "cpu_seconds": usage.ru_utime + usage.ru_stime}
    told = hash((votes.cells.tobytes(), votes.weights.tobytes()))
    high = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps(figures | {"peak_gb": int(high.split()[1]) * 1024 / 1e9, "votes": told}))


def serve(folder: Path, kind: str) -> None:
    """A server of one kind, until the process is ended; it prints where it is."""
    if kind == "s3":
        import logging

        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").disabled = True
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        print("http://{}:{}".format(*server.get_host_and_port()), flush=True)
        time.sleep(86_400)
    from tests.readers.range_server import served

    with served(folder) as (state, _):
        state.files = {f"/{file.name}": (file.read_bytes(), '"1"') for file in folder.glob("*.parquet")}
        print(f"https://localhost:{state.port}", flush=True)
        time.sleep(86_400)


@contextmanager
def serving(folder: Path, kind: str) -> Iterator[str]:
    command = [sys.executable, "-m", "research.benchmarks.remote_tables", "--serve", str(folder), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def table(folder: Path, rows: int) -> Path:
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    path = folder / f"visits_{rows}.parquet"
    if not path.exists():
        rng = np.random.default_rng(1)
        columns = {"user": rng.integers(0, max(1, rows // 100), rows)}
        columns |= {"lon": rng.uniform(13.0, 13.8, rows), "lat": rng.uniform(52.3, 52.7, rows)}
        columns |= {"speed": rng.uniform(0, 100, rows), "mode": rng.integers(0, 9, rows)}
        partial = path.with_suffix(".partial")
        parquet.write_table(pa.table(columns), partial, row_group_size=1_000_000)
        partial.replace(path)
    return path


def apart(source: str, rule: str, environment: dict[str, str]) -> dict[str, float]:
    command = [sys.executable, "-m", "research.benchmarks.remote_tables", "--measure", source, rule]
    told = {**os.environ, **environment, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=told)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure, print, write."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rows", type=float, default=1e7)
    options.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "hazemap-benchmarks-remote")
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.measure:
        measure(*asked.measure)
        return
    if asked.serve:
        serve(Path(asked.serve[0]), asked.serve[1])
        return
    asked.folder.mkdir(parents=True, exist_ok=True)
    small, path = table(asked.folder, 100_000), table(asked.folder, int(asked.rows))
    load, figures = [round(os.getloadavg()[0], 2)], []
    with serving(asked.folder, "https") as host, serving(asked.folder, "s3") as bucket:
        from pyarrow import fs

        environment = {**KEYS, "AWS_ENDPOINT_URL": bucket, "SSL_CERT_FILE": str(asked.folder / "certificate.pem")}
        store = fs.S3FileSystem(endpoint_override=bucket, access_key="x", secret_key="x", allow_bucket_creation=True)
        store.create_dir("city")
        for file in (small, path):
            fs.copy_files(str(file), f"city/{file.name}", fs.LocalFileSystem(), store)
        places = {"local": str(asked.folder), "s3": "s3://city", "https": host}
        for rule in RULES:
            runs: dict[str, list[dict[str, float]]] = {place: [] for place in places}
            for place in places.values():
                apart(f"{place}/{small.name}", rule, environment)  # compile once
            for _ in range(asked.repeat):
                for name, place in places.items():
                    runs[name].append(apart(f"{place}/{path.name}", rule, environment))
            figure: dict[str, object] = {"rows": int(asked.rows), "megabytes": path.stat().st_size >> 20, "rule": rule}
            for name, found in runs.items():
                figure[name] = {
                    key: [round(run[key], 3) for run in found] for key in ("seconds", "cpu_seconds", "peak_gb")
                }
            figure["same_votes"] = len({run["votes"] for found in runs.values() for run in found}) == 1
            for name in ("s3", "https"):
                pairs = zip(runs[name], runs["local"], strict=True)
                ratios = [there["cpu_seconds"] / here["cpu_seconds"] for there, here in pairs]
                figure[f"{name}_cpu_median_of_ratios"] = round(median(ratios), 2)
            figures.append(figure)
            print(json.dumps(figure))
    load.append(round(os.getloadavg()[0], 2))
    machine = {"processors": os.cpu_count(), "system": platform.platform(terse=True), "load": load}
    versions = {name: version(name) for name in ("hazemap", "pyarrow", "duckdb", "moto")}
    RESULTS.write_text(json.dumps({"figures": figures, "machine": machine, "versions": versions}, indent=2) + "\n")


if __name__ == "__main__":
    main()
