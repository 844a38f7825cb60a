"""A comparison as data: what is measured and drawn, the presets of `hazemap compare`, and orders that change one."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hazemap.errors import InputError
from hazemap.lab.compare.attacked_releases import Attacked
from hazemap.lab.compare.charts import Draw, against_epsilon, ranking
from hazemap.lab.compare.datasets import Datasets
from hazemap.lab.compare.practices import (
    AG,
    AUTO,
    METHODS,
    GridBlur,
    KAnonymity,
    Practice,
    Rounding,
    Suppression,
    method_named,
    practice_named,
)
from hazemap.lab.compare.result_tables import Table, beside_practices, hindsight
from hazemap.lab.compare.results import Results
from hazemap.lab.compare.trial_settings import Everyone, Named, Trial, TrialSetting
from hazemap.privacy.budget import PureDP


@dataclass(frozen=True)
class Preset:
    """Maps × methods × settings × ε × repetitions (and those of `more`), and what shows the results.

    `maps` are places of any kind, and `noun` says which. `what` says in a line what it shows, `note` what is to be
    known of it, on its page. `figures` are by the names of their files; `across` is what varies from column to column
    of a table, and `verdicts` are tables that stand before all others, if the results are such that there are any.
    `practices` have no ε and nothing is drawn by them: they are measured beside the methods at ε = ∞.

    >>> from hazemap.lab.compare.practices import AG
    >>> one = Preset("one", "an example", ("city",), (AG,), ("1",), 3, scores=("mre",))
    >>> [trial.repetition for trial in one.trials()]
    [0, 1, 2]
    """

    name: str
    what: str
    maps: tuple[str, ...]
    methods: tuple[Named, ...]
    epsilons: tuple[str, ...]
    repetitions: int
    scores: tuple[str, ...]
    settings: tuple[TrialSetting, ...] = (Everyone(),)
    figures: tuple[tuple[str, Draw], ...] = ()
    note: str = ""
    pairs: tuple[tuple[str, TrialSetting], ...] = ()
    more: tuple["Preset", ...] = ()
    title: str = ""
    noun: str = "map"
    across: str = "epsilon"
    verdicts: tuple[Callable[[Results], Table | None], ...] = (hindsight,)
    practices: tuple[Practice, ...] = ()

    @property
    def cases(self) -> tuple[tuple[str, TrialSetting], ...]:
        """Maps with their settings: all of each, unless only some `pairs` of them belong together."""
        return self.pairs or tuple((place, setting) for place in self.maps for setting in self.settings)

    @property
    def places(self) -> tuple[str, ...]:
        """The maps of all its trials."""
        return tuple(dict.fromkeys(trial.place for trial in self.trials()))

    def on(self, maps: tuple[str, ...]) -> "Preset":
        """The same of other maps."""
        if self.pairs or self.more:
            raise InputError(f"the maps of {self.name} belong to its settings and cannot be replaced")
        return replace(self, maps=maps)

    def method(self, name: str) -> Named:
        """One of its methods, or any other for maps."""
        return next((method for method in self.methods if method.name == name), None) or method_named(name)

    def told(self, results: Results) -> list[Table]:
        """The verdicts that there are."""
        return [table for verdict in self.verdicts if (table := verdict(results)) is not None]

    def beside(self, practices: tuple[Practice, ...]) -> "Preset":
        """The same beside these practices, and with what is learnt of people from each map."""
        if self.pairs or self.more or not all(isinstance(setting, Everyone) for setting in self.settings):
            raise InputError(f"the settings of {self.name} leave no room for practices; `quick` and `today` do")
        settings = tuple(Attacked(setting.emd) for setting in self.settings if isinstance(setting, Everyone))
        verdicts = (beside_practices, *(verdict for verdict in self.verdicts if verdict is not beside_practices))
        note = self.note if ATTACKS in self.note else self.note + ATTACKS
        return replace(self, practices=practices, settings=settings, verdicts=verdicts, note=note)

    def trials(self) -> Iterator[Trial]:
        """Every trial; all of one repetition come before the next, so that a run that is ended early has of all."""
        for repetition in range(self.repetitions):
            for place, setting in self.cases:
                for epsilon in self.epsilons:
                    for method in self.methods:
                        yield Trial(place, method, setting, epsilon, repetition)
                for practice in self.practices:
                    yield Trial(place, practice, setting, "inf", repetition)
        for part in self.more:
            yield from part.trials()


QUICK = Preset(
    name="quick",
    what="every method on a made-up city and on three Gaussians, ε 0.1, 0.3, 0.5",
    maps=("city", "gaussian-20", "gaussian-50", "gaussian-100"),
    methods=METHODS,
    epsilons=("0.1", "0.3", "0.5"),
    repetitions=5,
    scores=("mre", "mre_2", "l1", "seconds"),
    figures=(
        ("rectangles", ranking("mre", "How wrong are counts in rectangles?")),
        ("rectangles-epsilon", against_epsilon("mre", "Counts in rectangles, by the price")),
        ("density", ranking("l1", "How wrong is the density?")),
        ("density-epsilon", against_epsilon("l1", "The density, by the price")),
        ("seconds", ranking("seconds", "How long does a release take?")),
    ),
)
"""Every method on maps that need no data, in ten minutes."""

ATTACKS = """
    Somebody who knows where everybody else is looks for 40 people in each of the maps of each row, and says of each
    whether the person is there. "Told apart" is how often this is right of people who are there, less how often wrong
    of people who are not: 0 is a coin's, 1 is certainty. "At most" is what nobody exceeds whatever they know, by the
    proof of differential privacy; a rule that draws nothing has no such bound. Few people are looked for, so where
    noise decides "told apart" may come out above what it cannot exceed: ± says how sure it is. "Newcomers found" is how
    often the maps of two days, between which one person came, show in which of 256 areas this person is, and "by
    chance" how often who always names the fullest area is right. Where several maps are published of the same people,
    ε adds up; of k-anonymous, rounded and suppressed maps nothing is known that could be added up.
"""
"""What is to be known of `Attacked`, for the pages of its results."""

TODAY = Preset(
    name="today",
    what="what offices publish today beside private maps: errors, and what is learnt of people, ε 0.1 and 1",
    maps=("city/256", "gaussian-50/256"),
    methods=(AUTO, AG),
    epsilons=("0.1", "1"),
    repetitions=5,
    scores=(),
    settings=(Attacked(),),
    figures=(("today-rectangles", ranking("mre", "How wrong are counts in rectangles?")),),
    verdicts=(beside_practices,),
    practices=(KAnonymity(5), Suppression(10), Rounding(10), GridBlur(500)),
    note=ATTACKS,
)
"""Practices without differential privacy beside two methods that have it."""

PRESETS: dict[str, Preset] = {QUICK.name: QUICK, TODAY.name: TODAY}
"""The comparisons that need no data."""


@dataclass(frozen=True)
class Catalogue:
    """What a command line can compare: presets by name, and the maps that they name."""

    presets: Mapping[str, Preset] = field(default_factory=lambda: PRESETS)
    datasets: Datasets = field(default_factory=Datasets)

    def preset(self, name: str) -> Preset:
        """The preset of this name."""
        if name not in self.presets:
            raise InputError(f"there is no comparison {name!r}; there are {', '.join(self.presets)}")
        return self.presets[name]


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
