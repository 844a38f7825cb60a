"""What promises rest upon stays as it was when it was checked."""

import ast
from pathlib import Path

import hazemap

PACKAGE = Path(hazemap.__file__).parent
PARTS = (
    "privacy",
    "encoders",
    "trust",
    "codec",
    "tables",
    "engines",
    "readers",
    "federated/trust",
    "queries/algorithm_session.py",
    "statement_builder.py",
)


def test_prices_rules_and_questions_cannot_be_changed_after_they_were_checked():
    """A sensitivity, a share or a statement is computed from fields that were validated when they were given."""
    paths = [path for part in PARTS for path in sorted([PACKAGE / part, *(PACKAGE / part).rglob("*")])]
    loose, found = [], 0
    for path in paths:
        if path.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
                if "dataclass" in ast.unparse(decorator):
                    found += 1
                    if "frozen=True" not in ast.unparse(decorator):
                        loose.append(f"{path.relative_to(PACKAGE)}: {node.name}")
    assert not loose
    assert found > 80, "they were looked at"
