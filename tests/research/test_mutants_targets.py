"""What `make mutants` changes and by which tests: files that there are."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_target_and_every_test_of_it_is_there():
    targets = tomllib.loads((ROOT / "research" / "benchmarks" / "mutants_targets.toml").read_text())
    assert not [name for name in targets if not (ROOT / "src" / "hazemap" / name).is_file()]
    tests = {test for own in targets.values() for test in own}
    assert not [name for name in tests if not (ROOT / "tests" / name).exists()]
