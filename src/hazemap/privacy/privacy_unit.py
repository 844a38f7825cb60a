"""The unit of privacy: whose loss a charge counts, and what of them is protected.

Prices of different units cannot be added. With rows as people, one person of a thousand rows may move a count by a
thousand; somebody told apart by `trip` is many trips of one `user`; and under values-only a price says nothing of
whereabouts. So a charge says its unit, and the ledger adds only what has one unit, or what converts safely.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from hazemap.errors import CodecError, InputError

if TYPE_CHECKING:
    from hazemap.engines.person_ids import IdColumnReader

Kind = Literal["person", "row", "device"]
Model = Literal["full", "values-only"]

FULL: Final = "full"
VALUES_ONLY: Final = "values-only"

WHOLE_NUMBERS, TEXT = "whole numbers", "text, letter by letter"
"""How a column of ids may be read: 7 and 07 are one person as whole numbers, and two as text."""

_LONGEST = 300  # characters of a column's name


@dataclass(frozen=True)
class Unit:
    """Whose privacy a price is about.

    * `kind`: a `person`, who is all rows of one id in the column `id_column`, which is `read_as` whole numbers or text
      (and was `guessed` from its name, or named by somebody); a `row`, where each row is a person of its own; or a
      `device`, whose rows are one person's.
    * `model`: `full` (one of them added or removed), or `values-only` (whereabouts are public; see
      `privacy.statement_facts`), which is about people told apart by an id.

    Raises `InputError` for a unit that cannot be.

    >>> print(Unit.person("user", "text"))
    a person: all rows of one id in the column 'user', read as text
    >>> Unit.from_json(ROW.to_json()) == ROW
    True
    """

    kind: Kind
    model: Model = FULL
    id_column: str | None = None
    read_as: str | None = None
    guessed: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("person", "row", "device") or self.model not in (FULL, VALUES_ONLY):
            raise InputError("a unit of privacy is a person, a row or a device, under the model full or values-only")
        if self.kind != "person":
            if self.id_column is not None or self.read_as is not None or self.guessed:
                raise InputError(f"a {self.kind} is not told apart by a column of ids")
            if self.model == VALUES_ONLY:
                raise InputError(f"values-only protects the values of people told apart by an id, not of a {self.kind}")
            return
        if not isinstance(self.id_column, str) or not 0 < len(self.id_column) <= _LONGEST:
            raise InputError(
                f"people are told apart by a column of ids, with a name of 1 to {_LONGEST} characters: "
                "name it with --person (person=… in Python)"
            )
        if not isinstance(self.read_as, str) or not 0 < len(self.read_as) <= _LONGEST:
            raise InputError("how a column of ids is read is said in words, such as 'whole numbers' or 'text'")
        if type(self.guessed) is not bool:
            raise InputError("whether a column of ids was guessed must be true or false")

    @classmethod
    def person(cls, id_column: str, read_as: str, guessed: bool = False, model: Model = FULL) -> "Unit":
        """People told apart by a column of ids."""
        return cls("person", model, id_column, read_as, guessed)

    @classmethod
    def of(cls, ids: "IdColumnReader | None", model: Model = FULL) -> "Unit":
        """The people of a table: told apart by its column of ids, or (`None`) each row a person of its own."""
        return cls("row", model) if ids is None else cls.person(ids.name, ids.read_as, ids.guessed, model)

    def __str__(self) -> str:
        if self.kind == "row":
            return "a row, taken for a person of its own"
        if self.kind == "device":
            return "a person: all rows on one device"
        who = f"all rows of one id in the column {self.id_column!r}, read as {self.read_as}"
        return f"a person's values alone: those of {who}" if self.model == VALUES_ONLY else f"a person: {who}"

    @property
    def column(self) -> str | None:
        """The id column's name, the same however its letters are composed and whatever their case (as in SQL)."""
        return comparable(self.id_column)

    def to_json(self) -> dict[str, object]:
        """A plain dict for `json.dumps`."""
        plain: dict[str, object] = {"kind": self.kind, "model": self.model}
        if self.kind == "person":
            plain |= {"id_column": self.id_column, "read_as": self.read_as, "guessed": self.guessed}
        return plain

    @classmethod
    def from_json(cls, data: object) -> "Unit":
        """What `to_json` wrote; `CodecError` for anything else."""
        if not isinstance(data, Mapping):
            raise CodecError("a unit of privacy is an object with a kind and a model")
        wanted = {"kind", "model"} | ({"id_column", "read_as", "guessed"} if data.get("kind") == "person" else set())
        if data.keys() != wanted:
            raise CodecError(f"a unit of privacy has the fields {', '.join(sorted(wanted))}, and no others")
        try:
            return cls(**data)
        except (InputError, TypeError) as error:
            raise CodecError(f"this is no unit of privacy: {error}") from error


def comparable(column: str | None) -> str | None:
    """The name of a column, the same however its letters are composed and whatever their case (as in SQL)."""
    return None if column is None else unicodedata.normalize("NFC", column).casefold()


ROW: Final = Unit("row")
"""Each row is a person of its own: nobody with more rows than one is protected as a whole."""

DEVICE: Final = Unit("device")
"""The person whose device it is."""
