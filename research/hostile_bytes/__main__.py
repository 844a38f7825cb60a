"""Bytes that a stranger might send, and what each reader says of them.

    python -m research.hostile_bytes --only 'secure_sums:Client*' --number 1000000

Every reader of bytes from outside is one row of a table: its name, bytes that it takes, and the reader. Here they are
spoilt (`spoilt.py` says how), `--number` times for every reader. Nothing may fail but in words, take long or much
room, or be taken for what it does not say. `--list` names the readers; `--json` adds the figures to a file.
"""

import argparse
import json
import subprocess
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from research.hostile_bytes import dap_messages, devices, poplar1, prio3, secure_sums, servers
from research.hostile_bytes.spoilt import Found, fuzzed

TABLES: Final[Mapping[str, Callable[[], Mapping[str, Any]]]] = {
    "dap": dap_messages.corpus,
    "devices": devices.corpus,
    "poplar1": poplar1.corpus,
    "prio3": prio3.corpus,
    "secure_sums": secure_sums.corpus,
    "servers": servers.corpus,
}
SHOWN: Final = 3
"""Faults of a reader that are printed."""


def row(found: Found, seed: int) -> dict[str, Any]:
    """The figures of a reader."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 - fixed words
    return {
        "inputs": found.inputs,
        "taken": found.taken,
        "faults": len(found.faults),
        "slowest_ms": round(found.slowest * 1_000, 1),
        "grown_mb": found.grown,
        "cpu_s": round(found.seconds),
        "seed": seed,
        "commit": commit.strip(),
    }


def written(path: Path, name: str, figures: dict[str, Any]) -> None:
    """Put the figures of a reader into a file, in the place of older ones."""
    rows = json.loads(path.read_text())["readers"] if path.exists() else {}
    path.write_text(json.dumps({"readers": dict(sorted((rows | {name: figures}).items()))}, indent=1) + "\n")


def main() -> None:
    """Fuzz the readers that are asked for, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="readers by table and name, such as 'devices:head*'")
    parser.add_argument("--number", type=int, default=100_000, help="inputs to each reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a file of figures, to which these are added")
    parser.add_argument("--list", action="store_true", help="name the readers, and end")
    options = parser.parse_args()
    faults = 0
    for table, corpus in TABLES.items():
        if not fnmatchcase(table, options.only.partition(":")[0]):
            continue

        def asked(name: str, table: str = table) -> bool:
            return fnmatchcase(f"{table}:{name}", options.only if ":" in options.only else f"{options.only}:*")

        def tell(found: Found, table: str = table) -> None:
            name, figures = f"{table}:{found.name}", row(found, options.seed)
            print(name, json.dumps(figures), flush=True)
            if options.json is not None:
                written(options.json, name, figures)

        readers = corpus()
        if options.list:
            print("\n".join(f"{table}:{name}" for name in readers if asked(name)))
            continue
        for found in fuzzed(options.number, options.seed, readers, asked, tell):
            faults += len(found.faults)
            for fault in found.faults[:SHOWN]:
                print(f"    {found.name}: {fault[:2_000]}")
    if faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
