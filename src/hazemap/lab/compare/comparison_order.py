"""An order of a comparison as somebody writes it: a known one, with other maps, methods, prices or repetitions."""

from dataclasses import dataclass, replace
from pathlib import Path

from hazemap.errors import InputError
from hazemap.lab.compare.practices import practice_named
from hazemap.lab.compare.presets import Catalogue, Preset
from hazemap.lab.compare.trial_settings import Everyone
from hazemap.privacy.budget import PureDP


@dataclass(frozen=True)
class ComparisonOrder:
    """The options of `hazemap compare`; a map may be NAME=FILE, somebody's own.

    >>> order = ComparisonOrder("quick", maps=("city", "own=people.csv"), methods=("AG",), epsilons=("1",))
    >>> order.own, len(list(order.preset(Catalogue()).trials()))
    ((('own', PosixPath('people.csv')),), 10)
    """

    comparison: str = "quick"
    maps: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    practices: tuple[str, ...] = ()
    epsilons: tuple[str, ...] = ()
    repetitions: int | None = None
    emd: bool = False

    @property
    def own(self) -> tuple[tuple[str, Path], ...]:
        """Somebody's own maps: what they are called, and their files."""
        return tuple(_own(text) for text in self.maps if "=" in text)

    def preset(self, catalogue: Catalogue) -> Preset:
        """The comparison; everything is looked at before anything is measured."""
        preset = catalogue.preset(self.comparison)
        if self.maps:
            preset = preset.on(tuple(dict.fromkeys(text.partition("=")[0] for text in self.maps)))
        if self.methods:
            preset = replace(preset, methods=tuple(preset.method(text) for text in self.methods))
        if self.practices:
            preset = preset.beside(tuple(dict.fromkeys(practice_named(text) for text in self.practices)))
        if self.epsilons:
            preset = replace(preset, epsilons=tuple(dict.fromkeys(self.epsilons)))
        for epsilon in preset.epsilons:
            PureDP(epsilon)
        if self.emd:
            settings = tuple(replace(s, emd=True) if isinstance(s, Everyone) else s for s in preset.settings)
            preset = replace(preset, settings=settings, scores=(*preset.scores, "emd"))
        if self.maps or self.methods or self.practices or self.epsilons:
            preset = replace(preset, what=_what(preset))
        return replace(preset, repetitions=self.repetitions or preset.repetitions)


def _what(preset: Preset) -> str:
    """What is measured, where somebody replaced a part of it."""
    named = ", ".join(each.name for each in (*preset.methods, *preset.practices))
    return f"these methods: {named}; on {', '.join(preset.places)}; ε {', '.join(preset.epsilons)}"


def _own(text: str) -> tuple[str, Path]:
    name, _, file = text.partition("=")
    if not name.isidentifier() and not name.replace("-", "_").isidentifier():
        raise InputError(
            f"write a map of your own as NAME=FILE, with letters, digits and hyphens in the name; found {text!r}"
        )
    return name, Path(file)
