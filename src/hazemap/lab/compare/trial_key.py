"""The key of a trial: one method in one place, and what distinguishes it from every other.

What was measured with other code is measured again, so the code of a method is part of its key.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from hazemap import __version__
from hazemap.codec import dumps, to_json
from hazemap.errors import InputError
from hazemap.lab.compare.map_scores import VERSION, WORKLOAD
from hazemap.lab.compare.trial_settings import Named, Place, Row, TrialSetting


@dataclass(frozen=True)
class Trial:
    """A place by its name, a method, a setting, the budget ε, and which of several repetitions it is.

    What a place and a method are is the setting's: a map and a way to release it, a table of speeds and a mean.
    """

    place: str
    method: Named
    setting: TrialSetting
    epsilon: str
    repetition: int

    def key(self, place: Place) -> str:
        """A digest of all that its result can depend on but luck: the people, the method, its parameters and its code,
        the setting, ε, the queries, the version of the scores and of hazemap.

        A name is not part of it: a method or a map that is only called otherwise need not be measured again.
        `InputError` if this method cannot be run here.
        """
        if not isinstance(place, self.setting.places):
            raise InputError(f"{self.place} holds nothing that {self.method.name} could be compared on here")
        if not isinstance(self.method, self.setting.methods):
            raise InputError(f"the method {self.method.name} is no method for {self.place} here")
        algorithm = self.setting.algorithm(place, self.method, self.epsilon)
        known = (
            place.digest,
            dumps(algorithm),
            code_of(type(algorithm).__module__),
            type(self.setting).__name__,
            str(to_json(self.setting)),
            self.epsilon,
            str(self.repetition),
            WORKLOAD.decode(),
            str(VERSION),
            __version__,
        )
        return sha256("\n".join(known).encode()).hexdigest()

    def labels(self, place: Place) -> Row:
        """What a row of results says of its trial before any score."""
        settings = {name: value for name, value in vars(self.setting).items() if type(value) in (int, float, str)}
        return {
            "map": self.place,
            "people": place.people,
            **place.size,
            "method": self.method.name,
            "spelled": self.method.spelled,
            "epsilon": float(self.epsilon),
            "repetition": self.repetition,
            "at": self.method.at,
            **{f"set_{name}": value for name, value in {**settings, **self.method.settings}.items()},
        }


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
