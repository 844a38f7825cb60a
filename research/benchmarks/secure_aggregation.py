"""A secure sum in one process: CPU seconds of the server by stage, of a client in all stages, and bytes on the wire.

    python -m research.benchmarks.secure_aggregation         (two sessions: about 10 minutes of CPU, most of it clients)
    python -m research.benchmarks.secure_aggregation --quick (the first session only)

First 1,000 clients with 65,536 numbers of 32 bits and 100 neighbours each, of whom a tenth leave after they have
shared: the costly moment, for a mask with each of their neighbours has to be found. Beside the server's unmasking
stands what the mask stream alone takes in the same run: the same bytes of AES-128 in counter mode, and nothing done
with them. Then 10,000 clients with 4,096 numbers, to the end; then its server alone, replayed from what it was sent,
for its memory. Results go to results/secure_aggregation.json beside this script. It judges nothing.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from statistics import mean, median

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hazemap.federated.protocols.secure_aggregation import merkle_roster as roster
from hazemap.federated.protocols.secure_aggregation import neighbour_graph as graph
from hazemap.federated.protocols.secure_aggregation.client import SecureSumClient
from hazemap.federated.protocols.secure_aggregation.graph_degree import weakness
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.minimum_parameters import MinimumParameters
from hazemap.federated.protocols.secure_aggregation.server import Server
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.signing_identities import Identity

RESULTS = Path(__file__).with_name("results") / "secure_aggregation.json"
TENTH = Fraction(1, 10)
DEGREE, THRESHOLD = 100, 51
SEED = bytes(range(32))  # everything that is random here is the clients' own


class Stopwatch:
    """CPU seconds of this process, all threads together, by what they were spent on."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Count what is done inside as `what`."""
        start = time.process_time()
        yield
        self.seconds[what] += time.process_time() - start


def terms_for(identities: list[Identity], size: int, bits: int) -> SessionParameters:
    """A session of these people at ε = 1, that a client which fears a tenth of the others would accept."""
    clients = len(identities)
    missing = clients // 10
    assert weakness(clients, DEGREE, THRESHOLD, TENTH, TENTH, Mode.SEMI_HONEST) is None
    return SessionParameters(
        mode=Mode.SEMI_HONEST,
        task=bytes(32),
        nonce=os.urandom(32),
        clients=clients,
        degree=DEGREE,
        threshold=THRESHOLD,
        survivors=clients - missing,
        size=size,
        bits=bits,
        noise=DistributedNoise(Fraction(1), clients - 2 * missing),
        roster=roster.root([identity.public for identity in identities]),
        graph=graph.commitment(SEED),
    )


def session(clients: int, size: int, bits: int, record: Path | None) -> dict[str, object]:
    """One session with everybody in this process; a tenth leave after SHARES. What it cost.

    `record` is a file for what the server is sent, and the moments it closes a stage: what `replay` reads.
    """
    identities = [Identity.create() for _ in range(clients)]
    terms = terms_for(identities, size, bits)
    rng = np.random.default_rng(1)
    places = rng.integers(0, size, clients)
    leaving = set(rng.choice(clients, clients // 10, replace=False).tolist())

    def contribution(position: int) -> np.ndarray:
        vector = np.zeros(size, dtype=np.int64)
        vector[places[position]] = 1
        return vector

    kept: dict[str, bytes] = {}
    people = [
        SecureSumClient(
            identity,
            MinimumParameters(modes=frozenset([terms.mode])),
            lambda _terms, i=i: contribution(i),
            save=lambda state: kept.update(last=state),
        )
        for i, identity in enumerate(identities)
    ]
    server_cpu, client_cpu = Stopwatch(), np.zeros((clients, len(Stage)))
    up: defaultdict[str, list[int]] = defaultdict(list)
    down: defaultdict[str, list[int]] = defaultdict(list)
    with server_cpu.on("set up"):
        server = Server(terms, [identity.public for identity in identities], SEED)
    log = record.open("wb") if record else None
    if record:
        record.with_suffix(".terms").write_bytes(terms.to_bytes())
        record.with_suffix(".roster").write_bytes(b"".join(identity.public for identity in identities))
    wall = time.perf_counter()
    while server.result is None:
        stage = server.stage
        for position, client in enumerate(people):
            with server_cpu.on(stage.name):
                message = server.message_for(position)
            if message is None or (stage >= Stage.MASKED and position in leaving):
                continue
            start = time.process_time()
            reply = client.receive(message)
            client_cpu[position, stage - 1] = time.process_time() - start
            down[stage.name].append(len(message))
            up[stage.name].append(len(reply))
            if log:
                log.write(position.to_bytes(4, "big") + len(reply).to_bytes(4, "big") + reply)
            with server_cpu.on(stage.name):
                server.receive(position, reply)
        with server_cpu.on("unmasking" if stage is Stage.UNMASK else stage.name):
            server.advance()
        if log:
            log.write(bytes(4) + b"\xff" * 4)
        print(f"  {stage.name:8}{time.perf_counter() - wall:8.1f} s, {server.waiting} to answer", flush=True)
    if log:
        log.close()
    stayed = [p for p in range(clients) if p not in leaving]
    noise = server.result.sums - np.bincount(places[stayed], minlength=size)
    per_client = client_cpu[stayed].sum(axis=1) * 1e3
    total_up = sum(median(sizes) for sizes in up.values())
    vector = -(-size * bits // 8)
    masks = len(stayed) + sum(int((~np.isin(row, list(leaving))).sum()) for row in rows_of(terms, sorted(leaving)))
    return {
        "clients": clients,
        "size": size,
        "bits": bits,
        "degree": DEGREE,
        "threshold": THRESHOLD,
        "left_after_shares": len(leaving),
        "people_in_the_sum": server.result.people,
        "noise_stddev": round(float(noise.std()), 3),
        "noise_stddev_expected": round(terms.noise.stddev(server.result.people), 3),
        "server_cpu_seconds": {what: round(seconds, 3) for what, seconds in server_cpu.seconds.items()},
        "unmasking_cpu_seconds": round(server_cpu.seconds["unmasking"], 3),
        "masks_taken_off": masks,
        "client_cpu_milliseconds": {
            "mean": round(float(per_client.mean()), 2),
            "median": round(float(np.median(per_client)), 2),
            "by_stage": {
                stage.name: round(float(client_cpu[stayed, stage - 1].mean() * 1e3), 2)
                for stage in Stage
                if stage.name in up
            },
        },
        "vector_bytes": vector,
        "upload_bytes": {stage: round(mean(sizes)) for stage, sizes in up.items()} | {"total": round(total_up)},
        "upload_over_vector_and_10_kB": round(total_up / (vector + 10_000), 3),
        "download_bytes": {stage: round(mean(sizes)) for stage, sizes in down.items()}
        | {"total": round(sum(mean(sizes) for sizes in down.values()))},
        "peak_megabytes": peak_megabytes(),
        "wall_seconds": round(time.perf_counter() - wall, 1),
    }


def rows_of(terms: SessionParameters, positions: list[int]) -> list[np.ndarray]:
    """The neighbours of some, when everybody has sent keys."""
    rows = graph.ring_neighbours(SEED, np.arange(terms.clients), terms.degree)
    return [rows[position] for position in positions]


def replay(record: Path) -> None:
    """The server alone, from what it was sent: its CPU seconds and its memory, as JSON on standard output."""
    start = time.process_time()
    before = peak_megabytes()
    keys = record.with_suffix(".roster").read_bytes()
    terms = SessionParameters.from_bytes(record.with_suffix(".terms").read_bytes())
    server = Server(terms, [keys[i : i + 32] for i in range(0, len(keys), 32)], SEED)
    with record.open("rb") as log:
        while head := log.read(8):
            position, length = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
            if length == 0xFFFFFFFF:
                server.advance()
                continue
            server.message_for(position)
            server.receive(position, log.read(length))
    assert server.result is not None
    seconds = round(time.process_time() - start, 1)
    print(json.dumps({"cpu_seconds": seconds, "peak_megabytes": peak_megabytes(), "megabytes_before": before}))


def peak_megabytes() -> int:
    """What this program has had in memory at most; what the system counts for a process began with its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024)


def stream_limit(masks: int, nbytes: int) -> float:
    """CPU seconds that this many mask streams take, and nothing else: the best of three."""
    zeros, out = bytes(1 << 16), bytearray(1 << 16)

    def once() -> float:
        start = time.process_time()
        for _ in range(masks):
            cipher = Cipher(algorithms.AES128(bytes(16)), modes.CTR(bytes(16))).encryptor()
            for _ in range(nbytes // len(zeros)):
                cipher.update_into(zeros, out)
        return time.process_time() - start

    return min(once() for _ in range(3))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first session only, nothing written")
    parser.add_argument("--replay", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay:
        return replay(options.replay)
    session(110, 64, 32, None)  # what is compiled or loaded at first use is not what is measured
    print("1,000 clients, 65,536 numbers of 32 bits")
    shard = session(1000, 1 << 16, 32, None)
    limit = stream_limit(int(str(shard["masks_taken_off"])), 4 << 16)
    shard["mask_stream_alone_cpu_seconds"] = round(limit, 3)
    print(json.dumps(shard, indent=2))
    if options.quick:
        return None
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "messages"
        print("10,000 clients, 4,096 numbers of 32 bits")
        large = session(10_000, 1 << 12, 32, record)
        said = subprocess.run(
            [sys.executable, __file__, "--replay", str(record)], check=True, capture_output=True, text=True
        )
        large["server_alone"] = json.loads(said.stdout)
    print(json.dumps(large, indent=2))
    result = {
        "shard": shard,
        "large_shard": large,
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("numpy", "cryptography")},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {RESULTS.name}")
    return None


if __name__ == "__main__":
    main()
