"""The device in Python and the device in TypeScript judge the same hostile bytes: do they say the same?

usage: python -m research.device_verdicts [--number 100000] [--seed 1] [--out FILE]

Tasks, recipes, announcements, invitations, policies, logs, messages and a server's work: valid ones with something
changed in their values or in their bytes (`tests.federated.device.hostile_bytes`). Both must give the same verdict by
the same rule, and where they accept, the same bytes: digests, terms, sums of rows, bins, tasks of DAP. The TypeScript
device is built before (`npm run build` in `web/device`), and is one process that reads the cases from a pipe.
"""

import argparse
import json
import resource
import warnings
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.federated.device.verdicts import OtherDevice, compared, rule

ROOT = Path(__file__).parents[1]
OTHER = ROOT / "web" / "device" / "dist" / "node" / "device" / "src" / "test" / "verdicts.js"
SHOWN = 10


def figures(number: int, seed: int) -> dict[str, Any]:
    """How many messages of each kind got which verdict from both, and the first on which they do not agree."""
    other, begun = OtherDevice(OTHER), perf_counter()
    verdicts, rules, unknown = Counter[str](), Counter[str](), Counter[str]()
    apart: list[dict[str, Any]] = []
    try:
        for kind, content, ours, theirs in compared(other, seed, number):
            verdicts[f"{kind}: {ours['verdict']}"] += 1
            if (found := rule(ours)) is not None:
                rules[found] += 1
            if theirs["verdict"] == "unknown":
                unknown[theirs["kind"]] += 1
            if content:
                apart.append({"kind": kind, "content": repr(content[:3_000]), "python": ours, "typescript": theirs})
    finally:
        other.close()
    return {
        "messages": number,
        "seed": seed,
        "disagreements": len(apart),
        "verdicts": dict(sorted(verdicts.items())),
        "refused by": dict(rules.most_common()),
        "of kinds that TypeScript does not answer": dict(unknown.most_common()),
        "seconds": round(perf_counter() - begun, 1),
        "peak MB of Python": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "first disagreements": apart[:SHOWN],
    }


def main() -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "research/benchmarks/results/device_verdicts.json")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    found = figures(asked.number, asked.seed)
    asked.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
