"""A comparison as data: what is measured, and what is drawn of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from hazemap.compare.figures import Draw
from hazemap.compare.methods import Method
from hazemap.compare.settings import Everyone, Setting
from hazemap.compare.trials import Trial


@dataclass(frozen=True)
class Preset:
    """Maps × methods × settings × ε × repetitions, and the figures and columns that show the results.

    `what` says in a line what it shows, `note` what is to be known of it, on its page. `figures` are by the names of
    their files.

    >>> from hazemap.compare.methods import AG
    >>> one = Preset("one", "an example", ("city",), (AG,), ("1",), 3, scores=("mre",))
    >>> [trial.repetition for trial in one.trials()]
    [0, 1, 2]
    """

    name: str
    what: str
    maps: tuple[str, ...]
    methods: tuple[Method, ...]
    epsilons: tuple[str, ...]
    repetitions: int
    scores: tuple[str, ...]
    settings: tuple[Setting, ...] = (Everyone(),)
    figures: tuple[tuple[str, Draw], ...] = ()
    note: str = ""

    def trials(self) -> Iterator[Trial]:
        """Every trial; all of one repetition come before the next, so that a run that is ended early has of all."""
        for repetition in range(self.repetitions):
            for place in self.maps:
                for epsilon in self.epsilons:
                    for setting in self.settings:
                        for method in self.methods:
                            yield Trial(place, method, setting, epsilon, repetition)
