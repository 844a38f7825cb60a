"""A published map of which marks are counted too, in every slot of time: how many of those there at 8 are ill."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.estimate.marked_counts import MarkedSlots
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.queries.noisy_queries import Prices
from hazemap.releases.base_release import Bands, BaseRelease, Rows
from hazemap.releases.estimates import PeopleOutside
from hazemap.releases.file_metadata import MARKED, OF_MARKS_IN_SLOTS, MarkedSlotsContents
from hazemap.releases.marked_release import MarkedRelease, shares_of
from hazemap.releases.slot_rows import heading, in_blocks, numbered, total_first, with_slots
from hazemap.releases.timed_release import MOST_FRAMES

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from hazemap.releases.gis.layer_styles import LayerStyle

SHOWN_SLOTS = 24
"""Slots of which a summary tells the shares, at most."""


@dataclass(frozen=True, eq=False, repr=False)
class MarkedTimedRelease(MarkedRelease, contents=MarkedSlotsContents):
    """A map with marks of all slots together; and `during` some slots a map with marks of them, of the same cells.

    All numbers are made from `by_mark`, noisy numbers of each side of each cell in each slot; slots add up to it.
    """

    by_mark: MarkedSlots

    HOLDS: ClassVar[str] = "a map with marks and time"
    MADE: ClassVar[str] = "by_mark"

    @cached_property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots, in order."""
        return self.by_mark.slots.names

    def numbered(self, slots: str | int | Iterable[str | int]) -> list[int]:
        """Slots by names or numbers, as `TimedRelease.numbered` takes them; `InputError` for what is no slot here."""
        return numbered(self.slots, slots)

    def during(self, slots: str | int | Iterable[str | int]) -> MarkedRelease:
        """The map with marks of some slots: counts, shares, intervals and pictures of it."""
        return self._during(self.numbered(slots))

    def _during(self, chosen: list[int]) -> MarkedRelease:
        counts = self.by_mark.during(chosen)
        made = MarkedRelease(counts.map, self.statement, self.algorithm, self.transcript, counts)
        made.__dict__["ground"] = self.ground  # the cells are the same
        made.__dict__["heading"] = heading(self.slots, chosen)
        return made

    @cached_property
    def by_slot(self) -> tuple[MarkedRelease, ...]:
        """The map with marks of each slot."""
        return tuple(self._during([number]) for number in range(len(self.slots)))

    @property
    def told(self) -> int:
        """How many places are told: the cells of all slots together, and of every slot."""
        return self.cells.size * (1 + len(self.slots))

    def replay(self, prices: Prices) -> Self:
        """The same release, made again from its stored answers: see `BaseRelease.replay`."""
        made = BaseRelease.replay(self, prices)
        counts = made.by_mark.total
        return replace(made, map=counts.map, counts=counts)

    def columns(self, positions: Ints | None = None, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """Every cell as a row, in each slot; with positions those cells in all slots together, without a slot.

        `total_release` has the table of all slots together.
        """
        if positions is not None:
            return super().columns(positions, confidence)
        return self._of_slots(self.ground.places, confidence)

    def outlines(self) -> NDArray[Any]:
        """The polygon of each row, in degrees."""
        return np.repeat(super().outlines(), len(self.slots))

    def rows(self, most: int) -> Iterator[Rows]:
        """The table of slots in blocks of about so many rows."""
        ground, slots = self.ground, len(self.slots)

        def made(block: Ints) -> Rows:
            return Rows(self._of_slots(block, 0.95), ground.outlines(block), slots)

        return in_blocks(ground.places, slots, most, made)

    def file_rows(self, most: int) -> Iterator[Rows]:
        """Those of the total, as a slot `all`, then those of slots: a saved file holds both."""
        return total_first(super().rows(most), self.rows(most))

    @cached_property
    def total_release(self) -> MarkedRelease:
        """The map with marks of all slots together alone: its tables and exports are apart from those of slots."""
        return MarkedRelease(self.map, self.statement, self.algorithm, self.transcript, self.counts)

    def label(self) -> dict[str, Any]:
        """The marks and the slots; all else is in the last answer."""
        return {"format": MARKED, "kind": OF_MARKS_IN_SLOTS, "marks": list(self.marks), "slots": list(self.slots)}

    def bands(self, column: str | None) -> Bands:
        """The share of each mark, or another column of shares, in a band for every slot."""
        tables = [each.bands(column) for each in self.by_slot]
        several = len(tables[0].names) > 1
        names = [
            f"{name} {slot}" if several else slot
            for slot, table in zip(self.slots, tables, strict=True)
            for name in table.names
        ]
        return Bands(tuple(names), [each for table in tables for each in table.numbers], False, {}, self.ground)

    def layer_styles(self) -> "tuple[LayerStyle, ...]":
        """The share of each mark in each slot, then the density of people."""
        from hazemap.releases.gis.layer_styles import MOST_STYLES, density_style, for_each_slot

        people = density_style([each.map for each in self.by_slot[:MOST_STYLES]], self.counted)
        shares = super().layer_styles()[: len(self.marks)]
        return tuple(each for style in (*shares, people) for each in for_each_slot(style, self.slots))

    def summary(self) -> list[str]:
        """Statement, total, number of cells, the share of each mark in all slots together and in each."""
        shown = self.slots[:SHOWN_SLOTS]
        told = [f"{name}: {share}" for at, name in enumerate(shown) for share in self._during([at]).share().shares]
        more = len(self.slots) - SHOWN_SLOTS
        return [*super().summary(), *told, *([f"… and {more:,} slots more"] if more > 0 else [])]

    def plot(self, **options: Any) -> "Figure":
        """Small maps of the share of each mark in every slot, in one scale; `during(slot).plot()` draws a slot alone.

        Options are those of `hazemap.draw.draw_small_shares`.
        """
        from hazemap.draw import draw_small_shares, shown_part

        frame = {name: options[name] for name in ("frame", "box") if name in options}
        usual = self._look
        if "note" not in options:
            usual["note"] = str(PeopleOutside.of(self, shown_part(self.map, **frame)))
        return draw_small_shares(self.map, self._frames, **{**usual, **options})

    def animate(
        self,
        path: "str | Path",
        seconds: float = 0.7,
        tell: Callable[[str, float | None], None] | None = None,
        **options: Any,
    ) -> None:
        """A moving picture, a frame for every mark in every slot, as `.gif` or `.apng`. Options are those of `plot`."""
        from hazemap.draw.animations import animate_shares

        if len(self.slots) * len(self.marks) > MOST_FRAMES:
            raise InputError(
                f"a moving picture has at most {MOST_FRAMES} frames; found {len(self.slots):,} slots of "
                f"{len(self.marks)} marks"
            )
        animate_shares(self.map, self._frames, path, seconds, tell, **{**self._look, **options})

    def page_data(self, title: str | None = None) -> dict[str, Any]:  # noqa: ARG002 - there is no page
        """`InputError`: a page shows the shares of one slot, or of several together."""
        raise InputError(
            "a page shows the shares of some slots together: name them (`hazemap show FILE --slot 8 -o page.html`, "
            "or during(8).to_html()); a .png, .svg, .pdf, .gif or .apng shows each slot"
        )

    @cached_property
    def _frames(self) -> list[tuple[str, Floats]]:
        """A name and the shares of each picture: of the first mark in every slot, then of the next."""
        return [
            (slot if len(self.marks) == 1 else f"{mark}, {slot}", made.known(mark))
            for mark in self.marks
            for slot, made in zip(self.slots, self.by_slot, strict=True)
        ]

    @property
    def _look(self) -> dict[str, Any]:
        marks = self.marks[0] if len(self.marks) == 1 else "share of a mark"
        return {"caption": self.statement.line(), "counted": self.counted, "marks": marks}

    def _of_slots(self, block: Ints, confidence: float) -> dict[str, NDArray[Any]]:
        """The rows of some cells: of each cell, all slots. O(cells · slots · marks)."""
        found, slots = self.by_mark.in_each(block), len(self.slots)
        people, (stddev, kurtosis) = found.people, found.noise
        numbers = (people, people, np.full(len(people), stddev))
        table = self._table(block, numbers, kurtosis, confidence, slots) | shares_of(found, confidence)
        return with_slots(table, np.tile(self._names, len(block)))

    @cached_property
    def _names(self) -> NDArray[Any]:
        return np.array(self.slots, dtype=object)
