"""The answer to a recipe as a data frame that notebooks show with its intervals and what is left of the budget."""

from typing import TYPE_CHECKING, Any

from pandas import DataFrame

from hazemap.federated.study.study_answers import NUMBERS, counts_in_words
from hazemap.releases.notebook_table import NotebookTable, plain

if TYPE_CHECKING:
    from rich.console import Group


class AnswerTable(DataFrame):  # type: ignore[misc]  # pandas has no types here
    """A pandas data frame in every respect; sorted and filtered, it is still shown as an answer.

    What lacks the columns of an answer is shown as any other frame.
    """

    @property
    def _constructor(self) -> Any:
        return AnswerTable

    def notebook_table(self) -> NotebookTable:
        """Labels, counts and intervals; beneath them who is not in them, what it cost, and what is left."""
        labels = [name for name in self.columns if name not in NUMBERS]
        said, confidence = self.attrs, float(self.attrs.get("confidence", 0.95))
        counts = counts_in_words(*(self[name].to_numpy(dtype=float) for name in NUMBERS))
        words = zip(*(map(plain, self[name]) for name in labels), strict=True) if labels else ((),) * len(self)
        rows = tuple((*row, *numbers) for row, numbers in zip(words, counts, strict=True))
        people = said.get("people")
        heading = "Answer" if people is None else f"{people:,} people answered"
        notes = []
        if "none" in said:
            ((count, interval),) = counts_in_words(*([said["none"][name]] for name in NUMBERS))
            notes.append(f"Without an answer: {count} ({100 * confidence:.6g} % interval {interval})")
        notes += [f"Left of the study's budget: {said['left']}"] if "left" in said else []
        notes += [f"Promise: {each}" for each in said.get("promise", ())[:2]]
        columns = (*map(plain, labels), "people", f"{100 * confidence:.6g} % interval")
        return NotebookTable(heading, columns, rows, tuple(notes), words=len(labels))

    def _repr_html_(self) -> str | None:
        if set(NUMBERS) <= set(self.columns):
            return self.notebook_table().html()
        shown: str | None = super()._repr_html_()
        return shown

    def __rich__(self) -> "Group | str":
        return self.notebook_table().rich() if set(NUMBERS) <= set(self.columns) else repr(self)
