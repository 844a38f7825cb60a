"""Whom a picture does not show, and a map does not: told beside both, so that nobody is dropped in silence."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hazemap.releases.estimates import Estimate
from hazemap.releases.region_weights import Region

if TYPE_CHECKING:
    from hazemap.releases.map_release import Release


@dataclass(frozen=True)
class PeopleOutside:
    """How many a release counts outside the map, and outside the part of it that a picture shows.

    `nowhere` is None where nobody outside was counted. `beyond` is None where a picture shows all of the map; else it
    counts who is elsewhere on the map and, where they were counted, who is outside it.
    """

    counted: str
    nowhere: Estimate | None
    beyond: Estimate | None = None

    @classmethod
    def of(cls, release: "Release", shown: Region | None = None, confidence: float = 0.95) -> "PeopleOutside":
        """From the release's own numbers, so at no price; `shown` is a region, or None for all of the map."""
        beyond = None if shown is None else release.beyond(shown, confidence)
        return cls(release.counted, release.outside_map(confidence), beyond)

    def __str__(self) -> str:
        """One or two sentences."""
        unknown = f"{self.counted} outside the map were not counted"
        if self.beyond is None:
            return f"{_capital(unknown)}." if self.nowhere is None else f"{_number(self.nowhere)} lie outside the map."
        if self.nowhere is None:
            return f"{_number(self.beyond)} lie on the map, outside this picture; {unknown}."
        outside = str(self.nowhere).partition(" (")[0]
        return f"{_number(self.beyond)} lie outside this picture; of them {outside} outside the map."

    def to_json(self) -> dict[str, Any]:
        """For machines: estimates, or null."""
        return {
            "nowhere": self.nowhere and self.nowhere.to_json(),
            "beyond": self.beyond and self.beyond.to_json(),
            "said": str(self),
        }


def _number(found: Estimate) -> str:
    """As it is, below 0 too: whoever cut it off there would make every sum of such numbers too large."""
    return f"{found}{', below 0 by noise alone,' if found.value < 0 else ''}"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
