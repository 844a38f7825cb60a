"""Methods that are imported when they are chosen: comparators, and those of other packages.

The latter are entry points of the group `hazemap.methods`, each a `NamedMethod`. They are looked for when somebody asks
for a method by name, and when a file or a campaign holds a type that is not hazemap's. Such a type is stored as
PACKAGE.CLASS, so it is never mistaken for one of hazemap's own. Devices never look here: they decode the closed list
and nothing else.
"""

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from hazemap.algorithms.built_in_methods import ALIASES, BUILT_IN
from hazemap.algorithms.comparators import METHODS as COMPARATORS
from hazemap.algorithms.comparators import comparator_named, comparator_type
from hazemap.algorithms.named_methods import NamedMethod
from hazemap.algorithms.private_bounding_box import PrivateBoundingBox
from hazemap.codec.allowed_types import OWN, package_of, written_name
from hazemap.errors import PlugInError
from hazemap.field_types import kinds_of

GROUP = "hazemap.methods"


@dataclass(frozen=True)
class PlugIn:
    """A method and the installed package that brings it."""

    method: NamedMethod
    package: str


@cache
def _entries() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def plug_in_names() -> tuple[str, ...]:
    """The names of all methods that plug-ins bring; none of them is loaded."""
    return tuple(sorted({entry.name for entry in _entries()}))


def method_named(name: str) -> NamedMethod | None:
    """A method by its name, hazemap's own or a plug-in's; None if there is none. A name that means two is refused."""
    name = ALIASES.get(name, name)
    found = [entry for entry in _entries() if ALIASES.get(entry.name, entry.name) == name]
    packages = " and ".join(sorted(_package(entry) for entry in found))
    if found and (name in BUILT_IN or name in COMPARATORS):
        raise PlugInError(
            f"the plug-in {packages} brings a method called {name!r}, but that is one of hazemap's own: uninstall the "
            "plug-in, or ask its authors for another name"
        )
    if len(found) > 1:
        raise PlugInError(f"the plug-ins {packages} both bring a method called {name!r}: uninstall one of them")
    return _loaded(found[0]).method if found else BUILT_IN.get(name) or comparator_named(name)


def plug_in_type(written: str) -> type | None:
    """The class that a file calls PACKAGE.CLASS, or a comparator's; None for any other without a package.

    `PlugInError` if the package is not here.
    """
    package, dot, name = written.partition(".")
    if not dot:
        return comparator_type(written)
    for plug_in in _of_package(package):
        for each in plug_in.method.types:
            if written_name(each) == written:
                return each
    raise PlugInError(
        f"it holds a {name:.80} of the plug-in {package:.80}, which is not installed here, or not in this version: "
        "install that package first, if you trust it (a file can name any package)"
    )


def plug_in_of(algorithm: object) -> PlugIn | None:
    """The plug-in that an algorithm comes from, if any; of one that finds its box first, that of the inner one."""
    algorithm = algorithm.method if isinstance(algorithm, PrivateBoundingBox) else algorithm
    package = package_of(type(algorithm))
    if package == OWN:
        return None
    return next((each for each in _of_package(package) if type(algorithm) in each.method.types), None)


def credited(name: str, algorithm: object) -> tuple[str, tuple[str, ...]]:
    """A method's name as a privacy statement says it, and what is taken on trust if it comes from a plug-in."""
    plug_in = plug_in_of(algorithm)
    if plug_in is None:
        return name, ()
    encoders = [each.__name__ for each in plug_in.method.types if hasattr(each, "sensitivity")]
    bounds = f"the plug-in {plug_in.package} is right about how much one person changes {' and '.join(encoders)}"
    return f"{name} of the plug-in {plug_in.package}", (bounds,) if encoders else ()


def _of_package(package: str) -> list[PlugIn]:
    return [_loaded(entry) for entry in _entries() if entry.module.partition(".")[0] == package]


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module


@cache
def _loaded(entry: EntryPoint) -> PlugIn:
    """A plug-in's method, after its code has run; `PlugInError` for one that cannot be used."""
    source = f"the plug-in {_package(entry)}"
    try:
        method = entry.load()
    except Exception as error:  # whatever another package's code raises
        raise PlugInError(
            f"{source} could not be loaded ({type(error).__name__}: {error!s:.200}): mend or uninstall it"
        ) from error
    if not isinstance(method, NamedMethod) or method.name != entry.name:
        raise PlugInError(f"{source} calls its entry point {entry.name!r}, but that is no NamedMethod of this name")
    for each in method.types:
        if package_of(each) not in (OWN, entry.module.partition(".")[0]):
            raise PlugInError(f"{source} registers {each.__name__}, which belongs to the package {package_of(each)}")
        try:
            kinds_of(each)
        except (TypeError, NameError) as error:
            raise PlugInError(f"{source}: the fields of {each.__name__} cannot be stored: {error}") from error
    return PlugIn(method, _package(entry))
