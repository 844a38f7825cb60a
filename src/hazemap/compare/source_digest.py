"""Which code makes a release: what was measured with other code is measured again."""

import ast
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path


@cache
def code_of(module: str) -> str:
    """SHA-256 of a module and of all that it may import of hazemap and of its own package.

    Comments, docstrings and layout aside.
    """
    seen, todo = dict[str, str](), [module]
    packages = frozenset({"hazemap", module.partition(".")[0]})
    while todo:
        name = todo.pop()
        path = None if name in seen else _file(name)
        if path is not None:
            seen[name], imported = _read(path, packages)
            todo += imported
    return sha256(repr(sorted(seen.items())).encode()).hexdigest()


@cache
def _read(path: Path, packages: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """A digest of a file as it runs, and the modules of these packages that it names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return sha256(ast.dump(tree).encode()).hexdigest(), tuple(_imported(tree, packages))


def _imported(tree: ast.Module, packages: frozenset[str]) -> Iterator[str]:
    """Modules of these packages, also those that functions import as they run; a name may be something in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in packages)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in packages:
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _file(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # a name in a module
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None
