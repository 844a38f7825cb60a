"""How large the bundles are that a wheel carries: the page of a release, the studio, the device in a tab.

    python -m research.benchmarks.bundle_sizes

Needs `make studio`. Bytes as they are and gzipped, and each file's SHA-256: the same sources give the same bytes.
Figures go to results/bundle_sizes.json.
"""

import gzip
import json
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

RESULTS = Path(__file__).with_name("results") / "bundle_sizes.json"
BUNDLES = {
    "page": "releases/page/page.html",
    "studio": "studio/app",
    "device in a tab": "federated/device/tab/device.html",
}
LICENCES = "licences.txt"


def measured(found: Traversable) -> dict[str, object]:
    """One file's size, and who it is."""
    content = found.read_bytes()
    gzipped = len(gzip.compress(content, mtime=0))
    return {"bytes": len(content), "gzipped": gzipped, "sha256": sha256(content).hexdigest()}


def main() -> None:
    """Measure each file of each bundle, and write the figures."""
    package = files("hazemap")
    rows = []
    for bundle, path in BUNDLES.items():
        place = package.joinpath(path)
        parts = sorted(place.iterdir(), key=lambda each: each.name) if place.is_dir() else [place]
        rows += [{"bundle": bundle, "file": each.name, **measured(each)} for each in parts if each.name != LICENCES]
    RESULTS.write_text(json.dumps({"files": rows}, indent=1) + "\n")
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
