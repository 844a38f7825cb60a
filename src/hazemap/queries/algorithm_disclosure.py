"""What an algorithm discloses about itself: what it learns and pays for, how it chooses, and what it takes as public.

An algorithm knows best what it asks. So each says it once, as data, and all that people read of it (the privacy
statement of a curator's release or of a campaign among devices) is made of that, by one builder
(`hazemap.statement_builder`).
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol


class Learned(Enum):
    """What may be learned at a price, as a statement says it; the ways of choosing are those of the questions asked."""

    BOX = "the box, found by two coarse grids of the world"
    BOUNDS = "the bounds of the values"
    SELECTION = "in which cells many people are"
    PEOPLE = "the number of people"
    DISTRICTS = "which districts are cut further, and where"
    FINENESS = "how fine the cells are"
    SLOTS = "the number of people in every slot"
    MEDIANS = "where the cells are cut, chosen by permute-and-flip"
    EVENNESS = "where the cells are cut, chosen by permute-and-flip by the costs of cutting them on every line"
    COSTS = "where the cells are cut, by the least of the noisy costs of cutting them here or there"
    GROWTH = "which cells are cut, by a tree that grows wherever noisy numbers are large"
    BINS = "the number of people in every bin that was asked for, and by it which are asked for next"
    NUMBERS = "every number in the cells"
    SIDES = "every number of those with marks and without, in every cell and slot"
    VALUES = "every number, of people and of values, in every cell and slot"
    REPORTS = "the sum of the reports to every recipe that was asked, bin by bin"
    ONLY_VALUES = "every number that is made of values"


@dataclass(frozen=True)
class Disclosure:
    """What is `learned` at a price, in the order in which it is asked, and what is `public`, in words.

    >>> Disclosure((Learned.NUMBERS,)).after(Learned.BOX).learned
    (<Learned.BOX: 'the box, found by two coarse grids of the world'>, <Learned.NUMBERS: 'every number in the cells'>)
    """

    learned: tuple[Learned, ...]
    public: tuple[str, ...] = ()

    def after(self, *first: Learned) -> "Disclosure":
        """The same, and before it something else is learned: what a wrapper adds."""
        return replace(self, learned=(*first, *self.learned))


class Disclosing(Protocol):
    """An algorithm that says what it learns."""

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""


def counted(*learned: Learned, people: int | None = None) -> Disclosure:
    """What a method says that ends in the numbers of its cells; `people` are as many as it was told there are.

    >>> counted(Learned.FINENESS, people=1_000).public
    ('that there are about 1,000 people, which decides how fine the cells are',)
    """
    told = () if people is None else (f"that there are about {people:,} people, which decides how fine the cells are",)
    return Disclosure((*learned, Learned.NUMBERS), told)


class DisclosesPeople:
    """A method that cuts cells by the number of people, which is public (`people`) or bought with a share."""

    people: int | None

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        asked = (Learned.PEOPLE,) if self.people is None else ()
        return counted(*asked, Learned.FINENESS, people=self.people)
