"""Vectors of the page's questions: a small map as its data holds it, regions, and what the library says of them.

`python -m tests.releases.page.vectors` writes `web/page/src/asking/vectors.json`; a test compares it with what the
library says, and the page's own tests with what the page says.
"""

import json
from typing import Any

import numpy as np
from tests.releases import conftest as made

from hazemap.errors import InputError
from hazemap.releases.page.asking_payload import asking_of

from .questions import PAGE, odd_regions, random_regions

FILE = PAGE / "src" / "asking" / "vectors.json"


def cases() -> dict[str, Any]:
    """The map and its questions; `found` is missing where there is no answer, and `said` says why."""
    release = made.released(made.flat(3))
    questions = list[dict[str, Any]]()
    for asked in [*random_regions(release, np.random.default_rng(2), 14), *odd_regions(release)[:9]]:
        try:
            found = release.count(asked.region, asked.confidence)
        except InputError as error:
            questions.append({**asked.to_json(), "said": str(error)})
            continue
        numbers = {name: number for name, number in found.to_json().items() if name not in ("counted", "noise_stddev")}
        questions.append({**asked.to_json(), "said": str(found), "found": numbers})
    plain: dict[str, Any] = json.loads(json.dumps({"asking": asking_of(release), "questions": questions}))
    return plain


if __name__ == "__main__":
    FILE.write_text(json.dumps(cases(), indent=None, separators=(",", ":")) + "\n", encoding="utf-8")
