"""What maps and statistics that somebody asks for have in common: made of keywords, kept in files, read back."""

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self, get_origin, get_type_hints

from hazemap.errors import InputError
from hazemap.privacy.budget import Budget
from hazemap.spatial.bounding_box import Box
from hazemap.specs import toml_and_json
from hazemap.specs.parsing import budget as parsed_budget
from hazemap.specs.parsing import budget_texts, refuse_absurd
from hazemap.specs.spec_fields import Field, Value
from hazemap.specs.table_spec import TableSpec, named_after, path_of

ASSUMPTIONS = (
    "the curator sees every row, and keeps the table and the noise to itself",
    "the table gives each person one id",
    "nobody who reads the release also watches the run (its time, its memory)",
)


class Specification:
    """Something that somebody asks for; all of it is public. `NAMES` are those that a file and a call may hold."""

    NAMES: ClassVar[Mapping[str, Field]]

    table: TableSpec
    budget: Budget
    dataset: str
    output: str | None

    @classmethod
    def of(cls, source: Any = None, known: Any = None, **asked: Any) -> Self:
        """From the keywords of `hazemap.release` or `hazemap.stats`; None is as good as left out.

        `source` is a path, or a table in memory, which is not kept. `known` is the algorithm, where a journal holds it.
        """
        if unknown := asked.keys() - cls.NAMES.keys() - {"dialect"}:
            raise TypeError(f"{cls.__name__} got an unexpected keyword argument {sorted(unknown)[0]!r}")
        given = {name: value for name, value in asked.items() if value is not None}
        table = TableSpec.taken(path_of(source), given)
        money = parsed_budget(*(given.pop(name, None) for name in ("epsilon", "delta", "rho")))
        given.setdefault("dataset", named_after(source))
        if "output" in given:
            given["output"] = os.fspath(given["output"])
        if isinstance(given.get("box"), str):
            given["box"] = Box.parse(given["box"])
        return cls(table=table, budget=money, known=known, **cls.read(given))  # type: ignore[call-arg]  # dataclasses

    @classmethod
    def read(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The fields that only this kind has, understood where they are texts."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise `InputError` for a field of another type than its own, or an absurd budget; name the data set."""
        hints = get_type_hints(type(self))
        for each in fields(self):  # type: ignore[arg-type]  # both kinds are dataclasses
            found, kind = getattr(self, each.name), hints[each.name]
            if each.name == "known":
                continue
            kind = int | kind if kind == float | None else get_origin(kind) if get_origin(kind) is tuple else kind
            if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
                raise InputError(f"{each.name} of a specification cannot be a {type(found).__name__}")
        refuse_absurd(self.budget)
        if not self.dataset:
            object.__setattr__(self, "dataset", named_after(self.table.source))

    @classmethod
    def from_json(cls, data: object, known: object = None) -> Self:
        """What `to_json` wrote; `InputError` for anything else."""
        return cls.of(**toml_and_json.checked_fields(toml_and_json.checked(data), cls.NAMES), known=known)

    def to_json(self) -> dict[str, Value]:
        """A flat document with the names of `hazemap.release` or `hazemap.stats`; what is None is left out.

        So is the data set where it is called like its file: a specification may be used for another file.
        """
        document = {**self.table.document, **budget_texts(self.budget), **self.written()}
        found = {name: document.get(name, getattr(self, name, None)) for name in self.NAMES}
        if self.dataset == named_after(self.table.source):
            del found["dataset"]
        return {name: value for name, value in found.items() if value is not None}

    def written(self) -> dict[str, Any]:
        """The fields that are no text, number or flag already, as a file has them."""
        raise NotImplementedError

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """What `to_toml` wrote, or somebody by hand."""
        return cls.from_json(toml_and_json.from_toml(text))

    def to_toml(self) -> str:
        """The specification as a file that people can read, keep and change."""
        return toml_and_json.to_toml(self.to_json())
