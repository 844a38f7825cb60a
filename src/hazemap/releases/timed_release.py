"""A published map with time: the map of all slots together, and what it says of each."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Leaves
from hazemap.errors import FileError, InputError
from hazemap.estimate.slot_maps import SlotMaps
from hazemap.machine_code.arrays import Ints
from hazemap.queries.noisy_queries import Prices
from hazemap.releases.base_release import Bands, Rows
from hazemap.releases.file_metadata import OF_SLOTS, SLOTTED, TimedContents
from hazemap.releases.map_release import Release
from hazemap.releases.slot_rows import heading, in_blocks, numbered, total_first, with_slots

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from hazemap.releases.gis.layer_styles import LayerStyle

MOST_FRAMES = 400
"""Slots of a moving picture, at most."""

BORROWED = (
    "Where people lie inside these cells is borrowed from all slots together, not measured; cells are hatched whose "
    "own interval reaches down to nobody."
)


@dataclass(frozen=True, eq=False, repr=False)
class TimedRelease(Release, contents=TimedContents):
    """A map of all slots together, as any other; and `during` some slots a map of them, which answers as any other.

    The cells of the total are fine, those of a slot coarser, made of them. Pictures, pages, tables and answers of a
    slot are as fine as it was counted, and no finer; `borrowing` is the exception, and says so.
    """

    maps: SlotMaps

    HOLDS: ClassVar[str] = "a map with time"
    SUFFIXES: ClassVar[tuple[str, ...]] = (".parquet",)

    @cached_property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots, in order."""
        return self.maps.slots.names

    def numbered(self, slots: str | int | Iterable[str | int]) -> list[int]:
        """Slots by names or numbers; a text may list several, and ranges of them (`8-10,17:00`), over midnight too.

        `InputError` for what is no slot here.
        """
        return numbered(self.slots, slots)

    def during(self, slots: str | int | Iterable[str | int]) -> Release:
        """The map of some slots, named as `numbered` takes them: counts, intervals, pictures and regions of it."""
        return self._during(self.numbered(slots))

    def borrowing(self, slots: str | int | Iterable[str | int]) -> Release:
        """The same, in whose pictures people lie inside cells as in all slots together, which nobody measured.

        Cells are hatched whose own interval reaches down to nobody, and the picture says what it borrows. Numbers,
        answers and tables are those of `during`.
        """
        chosen = self.numbered(slots)
        made = self._during(chosen)
        if self.maps.cells.size < self.cells.size:
            made.__dict__["borrowed"] = self.maps.finer(chosen)
            made.__dict__["said_of_detail"] = f"{self.said_of_detail} {BORROWED}"
        return made

    def _during(self, chosen: list[int]) -> Release:
        made = Release(self.maps.during(chosen), self.statement, self.algorithm, self.transcript)
        made.__dict__["_finer"] = made.map  # nothing is known of a slot inside its own cells
        made.__dict__["heading"] = heading(self.slots, chosen)
        made.__dict__["said_of_detail"] = self.said_of_detail
        if not self.map.places.all():
            made.__dict__["said_of_outside"] = "were counted in all slots together alone"
        return made

    @cached_property
    def said_of_detail(self) -> str:
        """How finely a slot was counted, where that is less finely than all slots together."""
        number = self.maps.cells.size
        if number == self.cells.size:
            return ""
        return f"Each slot was counted in {number:,} cell{'s' * (number != 1)}."

    @cached_property
    def total_release(self) -> Release:
        """The map of all slots together alone: its tables and exports are apart from those of slots."""
        return Release(self.map, self.statement, self.algorithm, self.transcript)

    @classmethod
    def of(cls, maps: SlotMaps, release: Release) -> Self:
        """The maps of slots with the statement, method and transcript of a release."""
        return cls(maps.total, release.statement, release.algorithm, release.transcript, maps)

    def replay(self, prices: Prices) -> Self:
        """The same release, made again from its stored answers: see `BaseRelease.replay`."""
        made = super().replay(prices)
        maps: Any = made.map
        return replace(made, map=maps.total, maps=maps)

    def columns(self, positions: Ints | None = None, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """Every cell of a slot as a row, in each slot; with positions those places of the total, without a slot.

        So the rows of a cell add up to its people once. `total_release` has the table of all slots together.
        """
        if positions is not None:
            return super().columns(positions, confidence)
        return self._of_slots(np.arange(self.maps.cells.size), confidence)

    def outlines(self) -> NDArray[Any]:
        """The polygon of each row, in degrees."""
        ground = self._first.ground
        return np.repeat(ground.outlines(ground.places), len(self.slots))

    def rows(self, most: int) -> Iterator[Rows]:
        """The table of slots in blocks of about so many rows."""
        ground, slots = self._first.ground, len(self.slots)

        def made(block: Ints) -> Rows:
            return Rows(self._of_slots(block, 0.95), ground.outlines(block), slots)

        return in_blocks(np.arange(self.maps.cells.size), slots, most, made)

    def file_rows(self, most: int) -> Iterator[Rows]:
        """Those of the total, as a slot `all`, then those of slots: a saved file holds both."""
        return total_first(super().rows(most), self.rows(most))

    @cached_property
    def by_slot(self) -> tuple[Release, ...]:
        """The map of each slot."""
        return tuple(self._during([number]) for number in range(len(self.slots)))

    def label(self) -> dict[str, Any]:
        """Which question named the cells of the total, and the slots: the numbers follow from the transcript."""
        asked = (exchange.question for exchange in self.transcript)
        day = next(number for number, question in enumerate(asked) if _names(question, self.map.cells))
        return {"format": SLOTTED, "kind": OF_SLOTS, "day": day, "slots": list(self.slots)}

    def bands(self, column: str | None) -> Bands:
        """The best guess of how many are in each cell of a slot, in a band for every slot."""
        if column is not None:
            raise FileError(f"the .tif of a map holds its counts: leave the column {column!r} out")
        return Bands(self.slots, list(self.maps.guess), True, {}, self._first.ground)

    def layer_styles(self) -> "tuple[LayerStyle, ...]":
        """The density in each slot, in one scale."""
        from hazemap.releases.gis.layer_styles import MOST_STYLES, density_style, for_each_slot

        together = density_style([each.map for each in self.by_slot[:MOST_STYLES]], self.counted)
        return for_each_slot(together, self.slots)

    def summary(self) -> list[str]:
        """Statement, total, number of cells, whom the map leaves out; and the slots."""
        counts = ", ".join(
            f"{name} {self._during([at]).total().best_guess:,.0f}" for at, name in enumerate(self.slots[:24])
        )
        more = f", … ({len(self.slots):,} in all)" if len(self.slots) > 24 else ""
        cells = f"{self.maps.cells.size:,} cell{'s' * (self.maps.cells.size != 1)}"
        return [*super().summary(), f"{cells} in each slot; {self.counted}: {counts}{more}"]

    def plot(self, **options: Any) -> "Figure":
        """Small maps of all slots in one scale; beneath them how many they do not show, and the statement.

        Options are those of `hazemap.draw.draw_small_maps`. `during(slot).plot()` draws a slot alone.
        """
        from hazemap.draw import draw_small_maps

        usual = {"caption": self.statement.line(), "counted": self.counted, "note": self.note(**options)}
        return draw_small_maps(
            list(zip(self.slots, (each.map for each in self.by_slot), strict=True)), **{**usual, **options}
        )

    def animate(
        self,
        path: "str | Path",
        seconds: float = 0.7,
        tell: Callable[[str, float | None], None] | None = None,
        **options: Any,
    ) -> None:
        """A moving picture, a frame for every slot, as `.gif` or `.apng`. Options are those of `draw_small_maps`.

        `tell` is called with what is being done and the part of it that is done.
        """
        from hazemap.draw.animations import animate

        if len(self.slots) > MOST_FRAMES:
            raise InputError(f"a moving picture has at most {MOST_FRAMES} slots; found {len(self.slots):,}")
        usual = {"caption": self.statement.line(), "counted": self.counted, "note": self.note(**options)}
        frames = [(name, each.map) for name, each in zip(self.slots, self.by_slot, strict=True)]
        animate(frames, path, seconds, tell, **{**usual, **options})

    def page_data(self, title: str | None = None) -> dict[str, Any]:
        """What a page is told of the map and its slots."""
        from hazemap.releases.page.map_payload import slots_payload

        return slots_payload(self, title)

    @property
    def told(self) -> int:
        """How many places are told: those of the total, and those of every slot."""
        return self.cells.size + self.maps.cells.size * len(self.slots)

    def _of_slots(self, block: Ints, confidence: float) -> dict[str, NDArray[Any]]:
        """The rows of some of the slots' cells: of each cell, all slots. O(cells · slots)."""
        first, slots = self._first, len(self.slots)
        guess, unbiased = (each.T[block].ravel() for each in (self.maps.guess, self.maps.unbiased))
        numbers = (guess, unbiased, np.repeat(first.map.stddev[block], slots))
        table = first._table(block, numbers, first.kurtosis, confidence, slots)
        return with_slots(table, np.tile(self._names, len(block)))

    @cached_property
    def _first(self) -> Release:
        """The map of the first slot; those of others have the same cells, and as much noise."""
        return self._during([0])

    @cached_property
    def _names(self) -> NDArray[Any]:
        return np.array(self.slots, dtype=object)


def _names(question: Any, cells: Any) -> bool:
    """Whether a question asks for exactly these cells, over all slots."""
    asked = getattr(getattr(getattr(question, "encoder", None), "cells", None), "cells", None)
    return isinstance(asked, Leaves) and asked.same_cells(cells)
