"""Compiled loops on disk: the one place that imports numba.

Machine code is kept in the user's cache folder (that of `NUMBA_CACHE_DIR`, where it is set), under a digest of all
that it was made from: the byte code and constants of the loop, those of every loop it calls, every constant they read,
and the versions of Python, NumPy and the compiler. A file with another digest is another file, so that no upgrade, no
checkout and no edit ever runs the machine code of another source.
"""

import fcntl
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
import platformdirs
from llvmlite import ir
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = {"nogil": True, "no_cfunc_wrapper": True}
VERSIONS = (sys.version, np.__version__, numba.__version__, llvmlite.__version__, OPTIONS)
VERSIONED = {"builtins", "llvmlite", "math", "numba", "numpy", "typing"}
"""Packages whose functions are what their versions say."""

PATIENCE = 2.0
"""Seconds of compiling after which a process says what it is waiting for."""

UNUSED_DAYS = 60
"""Machine code that nobody ran for this many days is deleted."""

log = logging.getLogger("hazemap")


def cached(function: F, inline: str = "never") -> F:
    """The function in machine code that lets other threads run, kept on disk where a folder can be written."""
    njit: Any = numba.njit
    loop = njit(**OPTIONS, inline=inline)(function)
    loop._cache = _Kept(function)
    return cast(F, loop)


@cache
def folder() -> Path:
    """Where machine code is kept."""
    chosen: str = getattr(numba.config, "CACHE_DIR", "")
    if chosen:
        return Path(chosen, "hazemap")
    return Path(platformdirs.user_cache_dir("hazemap", appauthor=False), "loops")


def digest(function: Any) -> str:
    """A digest of all that the machine code of a function is made from.

    >>> def outer(x):
    ...     return inner(x) + 1
    >>> inner = cached(lambda x: x * 2)
    >>> before = digest(outer)
    >>> inner = cached(lambda x: x * 3)
    >>> digest(outer) == before
    False
    """
    return blake2b(repr((VERSIONS, _made_from(function, ()))).encode(), digest_size=16).hexdigest()


def _made_from(value: Any, above: tuple[Any, ...]) -> Any:
    """What a value in the source of a loop stands for, as something of which the `repr` says all; or a TypeError."""
    value = value.py_func if isinstance(value, Dispatcher) else value
    value = value._defn if isinstance(value, _Intrinsic) else value
    kind: str = type(value).__name__
    what: Any = None
    if (getattr(value, "__module__", None) or "").partition(".")[0] in VERSIONED and hasattr(value, "__name__"):
        what = value.__module__, value.__name__
    elif isinstance(value, FunctionType):
        what = above.index(value) if value in above else [_made_from(part, (*above, value)) for part in _parts(value)]
    elif isinstance(value, np.ndarray):
        what = value.dtype.str, value.shape, value.strides, blake2b(value.tobytes()).hexdigest()
    elif isinstance(value, tuple | list):
        what = [_made_from(part, above) for part in value]
    elif isinstance(value, frozenset | dict):
        parts = value.items() if isinstance(value, dict) else value
        what = sorted(repr(_made_from(part, above)) for part in parts)
    elif value is None or isinstance(
        value, bool | int | float | complex | str | bytes | np.generic | np.dtype | ir.Type
    ):
        what = repr(value)
    elif isinstance(value, type) and issubclass(value, Exception):
        what = value.__module__, value.__qualname__
    elif isinstance(value, type) and value.__bases__ == (object,) and value not in above:
        own = {name: part for name, part in vars(value).items() if name not in {"__dict__", "__weakref__"}}
        what = [(name, _made_from(part, (*above, value))) for name, part in sorted(own.items())]
    else:
        raise TypeError(f"{value!r} in a loop: its machine code is not kept")
    return kind, what


def _parts(function: FunctionType) -> Iterator[Any]:
    """The parts of a function."""
    yield from (function.__module__, function.__qualname__, function.__defaults__, function.__kwdefaults__)
    yield [cell.cell_contents for cell in function.__closure__ or ()]
    yield from _code(function.__code__, function.__globals__)


def _code(code: CodeType, outside: dict[str, Any]) -> Iterator[Any]:
    """The parts of byte code, and the global values that it names; of modules, the attributes that it names."""
    yield from (code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames, code.co_freevars, code.co_flags)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield list(_code(constant, outside))
        else:
            yield constant
    for name in code.co_names:
        value = outside.get(name)
        if not isinstance(value, ModuleType):
            yield value
        elif value.__name__.partition(".")[0] not in VERSIONED:
            yield from (getattr(value, attribute, None) for attribute in code.co_names)


class _Locator(_CacheLocator):
    """A file in the cache folder, named by the digest; the folder need not be writable to be read."""

    def __init__(self, function: FunctionType) -> None:
        self._digest = digest(function)

    @classmethod
    def from_function(cls, py_func: FunctionType, py_file: str) -> "_Locator":  # noqa: ARG003 - as numba calls it
        return cls(py_func)

    def get_cache_path(self) -> str:
        return str(folder())

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return self._digest


class _Files(CompileResultCacheImpl):
    _locator_classes: Any = (_Locator,)


class _OnDisk(FunctionCache):
    _impl_class = _Files


class _Kept:
    """The machine code of one loop on disk. Whatever is wrong there, the loop is compiled again and never fails."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @cached_property
    def _files(self) -> Any:
        """The files; at the first call, when all that the loop names is there."""
        try:
            return _OnDisk(self._function) if folder().is_absolute() else None  # type: ignore[no-untyped-call]
        except TypeError:
            return None

    @property
    def cache_path(self) -> str | None:
        """As numba names it."""
        return None if self._files is None else str(folder())

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The machine code for arguments of these types, if it is there."""
        found = None
        if self._files is not None:
            try:
                found = self._files.load_overload(signature, context)
            except Exception:  # a damaged file
                with suppress(OSError):
                    self._files.flush()
        if found is None:
            _waiting.begin()
        return found

    def save_overload(self, signature: Any, made: Any) -> None:
        """Keep machine code, if the folder can be written."""
        _waiting.end()
        if self._files is None:
            return
        try:
            with _alone():
                self._replace(signature, made)
        except OSError as error:
            _waiting.unkept = f"cannot keep them in {folder()} ({error.strerror})"

    def _replace(self, signature: Any, made: Any) -> None:
        """Add machine code to the index; begin a new one where that of another version names a class we lack."""
        try:
            self._files.save_overload(signature, made)
        except OSError:
            raise
        except Exception:
            self._files.flush()
            self._files.save_overload(signature, made)


@contextmanager
def _alone() -> Iterator[None]:
    """While no other process writes there: numba reads an index, adds a line and writes it back."""
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder() / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _forget_the_unused()
        yield


@cache
def _forget_the_unused() -> None:
    """Delete what no process has read or written for `UNUSED_DAYS`; once a process, and only if it compiles."""
    oldest = time.time() - UNUSED_DAYS * 24 * 3600
    for file in folder().glob("*.nb[ic]"):
        with suppress(OSError):
            seen = file.stat()
            if max(seen.st_atime, seen.st_mtime) < oldest:
                file.unlink()


class _Waiting:
    """How long this process has waited for the compiler; it says so once, when that was longer than `PATIENCE`.

    A loop that calls others is compiled around them; numba's lock lets one thread compile at a time.
    """

    def __init__(self) -> None:
        self._seconds, self._since, self._depth, self._said = 0.0, 0.0, 0, False
        self.unkept = ""

    def begin(self) -> None:
        """A loop is being compiled."""
        if not self._depth:
            self._since = time.monotonic()
        self._depth += 1
        self._say()

    def end(self) -> None:
        """It is done."""
        self._say()
        self._depth = max(self._depth - 1, 0)
        if not self._depth:
            self._seconds += time.monotonic() - self._since

    def _say(self) -> None:
        if self._said or self._seconds + time.monotonic() - self._since < PATIENCE:
            return
        self._said = True
        if self.unkept:
            log.warning("compiling loops, which takes some 15 seconds in every process: %s", self.unkept)
        else:
            log.warning("compiling loops, once for this version of hazemap: this command takes some 15 seconds longer")


_waiting = _Waiting()
