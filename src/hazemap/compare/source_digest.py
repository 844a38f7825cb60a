"""Which code makes a release: what was measured with other code is measured again."""

import ast
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "hazemap"


@cache
def code_of(module: str) -> str:
    """SHA-256 of a module and of all modules of hazemap that it may import: comments, docstrings and layout aside."""
    seen, todo = dict[str, str](), [module]
    while todo:
        name = todo.pop()
        path = None if name in seen else _file(name)
        if path is not None:
            seen[name], imported = _read(path)
            todo += imported
    return sha256(repr(sorted(seen.items())).encode()).hexdigest()


@cache
def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    """A digest of a file as it runs, and the modules of hazemap that it names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return sha256(ast.dump(tree).encode()).hexdigest(), tuple(_imported(tree))


def _imported(tree: ast.Module) -> Iterator[str]:
    """Modules of hazemap, those that functions import as they run too; a name may be a module or something in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == PACKAGE)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE:
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _file(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # a name in a module
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None
