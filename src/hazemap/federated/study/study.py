"""`hazemap.Study`: recipes asked one after the other, each answer a data frame with intervals and the budget left."""

from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pandas import DataFrame

from hazemap.encoders import Encoder
from hazemap.errors import HazemapError, InputError, TranscriptMismatch, Unanswerable
from hazemap.federated.recipes.policy import ShippedPolicy
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_bins import RecipeBins, RecipeTable
from hazemap.federated.study.http_study import HttpStudy
from hazemap.federated.study.population_study import PopulationStudy
from hazemap.federated.study.study_answers import NUMBERS, StudyAnswers, StudyBudget, counts_in_words, counts_of
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Session, Unrecorded
from hazemap.queries.noisy_queries import Algorithm, Answer, Query, Question
from hazemap.releases.base_release import AnyPath
from hazemap.releases.notebook_table import NotebookTable, plain

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Group


T = TypeVar("T")


class StudyTrust(Protocol):
    """Who answers a study: devices behind a server, or a population in this process."""

    @property
    def analysis(self) -> str:
        """What the recipes are about."""

    def assumptions(self) -> tuple[str, ...]:
        """What the promise to its people assumes."""

    def left(self) -> StudyBudget:
        """What may still be spent."""

    def ask(self, recipe: Recipe) -> Answer:
        """The answer to a recipe; the same one, for nothing, where it was asked before."""

    def release(self, recipe: Recipe | None = None) -> StudyAnswers:
        """The answers of all rounds, or to one recipe, with their statement."""

    def stop(self) -> None:
        """Let no further question through."""


@dataclass(frozen=True)
class RecipePrices:
    """What a recipe's own ε₀ buys among so many people, whatever the share: searches by recipes ask for no more."""

    people: int

    def stddev(self, encoder: Encoder, share: Fraction) -> float:  # noqa: ARG002 - the noise is that of ε₀
        """The standard deviation of the noise in an empty bin."""
        return _recipe_of(encoder).standard_deviation(self.people)

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """Any share, or none at all."""
        return Fraction(1) if self.stddev(encoder, Fraction(1)) <= stddev else Fraction(2)


class Study:
    """A named series of recipes of one analysis, over a server or over a population in this process.

    With a server's address, `name` is a study that was begun there (`hazemap study begin`), and `token` an analyst's
    or operator's. With a population (`PopulationTable`, `StoredDevices`) it is an analysis of the `policy`.

    >>> import numpy as np
    >>> from hazemap.federated.recipes.policy_document import example
    >>> from hazemap.federated.recipes.population_table import PopulationTable
    >>> from hazemap.federated.recipes.population_table import TokenSequences
    >>> people = PopulationTable.of_people(np.array([7]), (TokenSequences.of_texts(["to be"], length=2),))
    >>> Study(people, "next_word", policy=example()).left
    StudyBudget(epsilon=Fraction(1, 2), delta=Fraction(1, 1000000), reports=1)
    """

    def __init__(
        self,
        server: str | RecipeTable,
        name: str,
        *,
        token: str | None = None,
        policy: ShippedPolicy | None = None,
    ) -> None:
        self.name = name
        self.trust: StudyTrust
        if isinstance(server, str):
            if token is None or policy is not None:
                raise InputError("a study on a server needs a token; the policy is the server's own")
            self.trust = HttpStudy.to(server, name, token)
        else:
            if policy is None or token is not None:
                raise InputError("a study of a population needs the policy by which people answer, and no token")
            self.trust = PopulationStudy(server, policy, name)

    @property
    def left(self) -> StudyBudget:
        """What is left of the budget: ε, δ and reports."""
        return self.trust.left()

    def ask(self, recipe: Recipe, confidence: float = 0.95) -> "DataFrame":
        """Ask a recipe: a line for each bin with its labels, count, standard error, and the ends of its interval.

        The people without an answer stand apart: `frame.attrs["none"]`, where the recipe counts them, and how many
        people answered in `frame.attrs["people"]`. `frame.attrs["promise"]` says what people are promised, and on which
        assumptions; `frame.attrs["left"]` what is left of the budget. Notebooks show all of it. A recipe that was asked
        before is read again, for nothing.
        `InputError` where devices would refuse it, `BudgetError` where nothing is left, `NotOpened` where too few
        answered, with the reasons that devices gave.
        """
        check_columns(recipe)
        frame = answer_table(recipe, self.trust.ask(recipe), self.trust.assumptions(), confidence)
        with suppress(HazemapError):  # the answer is here and paid: it does not fail because the rest cannot be had
            frame.attrs["left"] = str(self.left)
        return frame

    def release(self, path: AnyPath, recipe: Recipe | None = None, confidence: float = 0.95) -> StudyAnswers:
        """Write the answers of all rounds, or to one recipe, to a `.parquet` file, whole or not at all.

        It holds recipes, counts, intervals of this confidence and the privacy statement; `hazemap.open` opens it. The
        budget that it states is that of all rounds that were paid, whether or not they are in the file.
        """
        made = replace(self.trust.release(recipe), confidence=confidence)
        made.save(path)
        return made

    def stop(self) -> None:
        """Stop the study for good: no further question is let through, by nobody.

        What was paid stays paid, and answers can be read as before. A round that is running ends without an answer.
        `InputError` where it is somebody else's, or stopped already.
        """
        self.trust.stop()

    def run(self, algorithm: Algorithm[T]) -> T:
        """Let an algorithm ask, round after round: `FrequentSequences`, `HeavyHitters`, `EdgeRefinement`, or your own.

        Each round is paid by its recipe. Run again after a crash, it reads the rounds that were answered.
        """
        recipe = getattr(algorithm, "recipe", None)
        people = recipe.minimum_cohort if isinstance(recipe, Recipe) else 1
        session = Session(algorithm, RecipePrices(people), PureDP(1), Unrecorded(), _is_query)
        while session.question:
            question = session.question
            if not isinstance(question, Query) or question.cohort is not None:
                raise Unanswerable("a study asks recipes of everybody, and nothing else")
            session.receive(self.trust.ask(_recipe_of(question.encoder)))
        if session.result is None:
            raise TranscriptMismatch("the search ended without a result")
        return session.result.value


def answer_table(recipe: Recipe, answer: Answer, assumptions: tuple[str, ...], confidence: float = 0.95) -> "DataFrame":
    """An answer to a recipe as a table, with its promise: O(bins · features)."""
    check_columns(recipe)
    columns = counts_of(answer, confidence)
    found = recipe.decoded(columns["count"])
    frame = AnswerTable({**found.labels, **{name: values[: recipe.bins] for name, values in columns.items()}})
    frame.attrs["people"], frame.attrs["confidence"] = answer.people, confidence
    frame.attrs["promise"] = round_promise(recipe, assumptions)
    if recipe.none_bin is not None:
        frame.attrs["none"] = {name: float(values[recipe.none_bin]) for name, values in columns.items()}
    return frame


def check_columns(recipe: Recipe) -> None:
    """`InputError` where a feature is called as a column of every answer is: said before anything is paid."""
    if taken := set(NUMBERS) & {each.name for each in recipe.features}:
        raise InputError(f"a feature of {recipe.id} is called {min(taken)}, as a column of every answer is: rename it")


def round_promise(recipe: Recipe, assumptions: tuple[str, ...]) -> tuple[str, ...]:
    """What one round of a recipe promises to a person who reports, and what that assumes."""
    return (
        f"to exchange one device's events for others changes the probability of any sum by a factor of e^ε at most, ε ="
        f" {float(recipe.epsilon):.6g}, but for δ = {float(recipe.delta):.3g}; every "
        "further round of the study adds its own",
        f"each report by itself is private by ε₀ = {float(recipe.local_epsilon):.6g} at most, against whoever sees it"
        " alone",
        *assumptions,
    )


def _recipe_of(encoder: Encoder) -> Recipe:
    if not isinstance(encoder, RecipeBins):
        raise Unanswerable(f"a study asks recipes; this algorithm asks for {type(encoder).__name__}")
    return encoder.recipe


def _is_query(question: type[Question]) -> bool:
    return question is Query


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
