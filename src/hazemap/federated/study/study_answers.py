"""Published answers of a study: what devices were asked, counts with intervals, price and statement, as one file."""

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hazemap import codec
from hazemap.errors import BudgetExceeded, FileError, InputError
from hazemap.estimate.confidence_margins import leading, reach
from hazemap.estimate.report_intervals import report_intervals
from hazemap.federated.recipes.recipe import KNOWN as OF_RECIPES
from hazemap.federated.recipes.recipe import Recipe
from hazemap.files.atomic_write import whole
from hazemap.privacy.statement import Statement
from hazemap.queries.noisy_queries import Answer
from hazemap.releases.base_release import AnyPath
from hazemap.releases.column_digests import Digest
from hazemap.releases.estimates import decimals
from hazemap.releases.file_metadata import OF_RECIPES as KIND
from hazemap.releases.file_metadata import STUDIES, inflated, parse_label, reading, understood
from hazemap.releases.geoparquet import LABEL, joined, parquet_writer, pieces, tables
from hazemap.releases.notebook_table import NotebookTable, ShownAsTable, plain
from hazemap.releases.text_tables import write_csv

if TYPE_CHECKING:
    import pyarrow as pa
    from pandas import DataFrame


Numbers = Iterable[float]

NUMBERS = ("count", "standard_error", "low", "high")
"""The columns of every answer, after those of its features."""
OWN = ("round", "none", *NUMBERS)
"""Columns of a file that are no features; one of such a name has an underscore after it."""


@dataclass(frozen=True)
class RoundAnswer:
    """What devices answered to one recipe, in one round of a study."""

    round: int
    recipe: Recipe
    answer: Answer

    def __post_init__(self) -> None:
        if self.round < 1 or self.answer.sums.shape != (self.recipe.size,):
            raise InputError(f"an answer to {self.recipe.id} has {self.recipe.size:,} numbers, of a round from 1 on")

    def columns(self, confidence: float) -> dict[str, NDArray[np.float64]]:
        """Count, standard error and interval of each bin, the bin of people without an answer last: see `NUMBERS`."""
        return counts_of(self.answer, confidence)


def counts_of(answer: Answer, confidence: float) -> dict[str, NDArray[np.float64]]:
    """Count, standard error and the ends of the interval of each bin, float64[bins].

    Where the law of the reports is known exactly, the interval is that of `report_intervals`.
    """
    counts = answer.sums.astype(np.float64)
    stddev = np.broadcast_to(answer.stddev, counts.shape).astype(np.float64)
    if answer.chances is not None and answer.people:
        low, high = report_intervals(answer.chances, answer.people + (answer.blank or 0), counts, confidence)
    else:
        margin = reach(confidence, answer.kurtosis) * stddev
        low, high = counts - margin, counts + margin
    return dict(zip(NUMBERS, (counts, stddev, *leading(counts, low, high)), strict=True))


def counts_in_words(count: Numbers, error: Numbers, low: Numbers, high: Numbers) -> list[tuple[str, str]]:
    """Counts and their intervals, each to the digits that its standard error deserves.

    >>> counts_in_words([40.0], [5.0], [30.2], [49.8])
    [('40.0', '30.2 … 49.8')]
    """
    found = []
    for number, stddev, start, end in zip(count, error, low, high, strict=True):
        digits = decimals(float(stddev))
        found.append((f"{number:z,.{digits}f}", f"{start:,.{digits}f} … {end:,.{digits}f}"))
    return found


def column_of(feature: str) -> str:
    """The column with the labels of a feature.

    >>> column_of("word"), column_of("count")
    ('word', 'count_')
    """
    return f"{feature}_" if feature in OWN else feature


@dataclass(frozen=True, eq=False, repr=False)
class StudyAnswers(ShownAsTable):
    """Answers of a study, and what its people were promised: asking and looking are over, so all of it is free.

    `confidence` is that of the intervals in the file; `to_dataframe` computes any other.

    >>> from fractions import Fraction
    >>> from hazemap.privacy.budget import PureDP
    >>> from hazemap.federated.recipes.features import Feature, NumericEdges
    >>> from hazemap.federated.recipes.sql_query import SqlQuery
    >>> from hazemap.tables.contribution_bounding import OneReport
    >>> recipe = Recipe(
    ...     "ages", 1, "keyboard", "who types", SqlQuery("SELECT age FROM profile"), (),
    ...     (Feature("age", NumericEdges((20, 40))),), Fraction(2), Fraction(1), Fraction(0), 100,
    ... )
    >>> statement = Statement(
    ...     "keyboard", "a person", "one exchanged", PureDP(1), OneReport(), "secure aggregation", (),
    ...     "bits flipped by each person", (), (), "recipes", "2026-01-02", "0.1.0",
    ... )
    >>> answer = Answer(np.array([40, 55, 5]), np.array([5.0]), 0.0, 100)
    >>> made = StudyAnswers("spring", (RoundAnswer(1, recipe, answer),), statement)
    >>> made.to_dataframe().columns.tolist()
    ['round', 'age', 'none', 'count', 'standard_error', 'low', 'high']
    """

    study: str
    rounds: tuple[RoundAnswer, ...]
    statement: Statement
    confidence: float = 0.95

    HOLDS: ClassVar[str] = "answers of a study"

    def __post_init__(self) -> None:
        numbers = [each.round for each in self.rounds]
        if not numbers or sorted(set(numbers)) != numbers:
            raise InputError("a file of a study holds the answers of one round or more, in their order")

    @classmethod
    def open(cls, path: AnyPath) -> "StudyAnswers":
        """What `save` wrote; `FileError` for a foreign, damaged or newer file, and for another kind of release."""
        return _read(Path(path))

    def save(self, path: AnyPath) -> None:
        """Write everything to one Parquet file, whole or not at all."""
        goal = Path(path)
        if goal.suffix.lower() != ".parquet":
            raise FileError(
                f"{self.HOLDS} can be saved as .parquet; found {str(path)!r}. For a .csv use export: it holds the"
                " numbers, but cannot be opened again"
            )
        _write(self, goal)

    def export(self, path: AnyPath) -> None:
        """Write the numbers as `.csv`; the statement stands in a file beside it."""
        goal = Path(path)
        if goal.suffix.lower() != ".csv":
            raise FileError(f"{self.HOLDS} can be exported as .csv; found {str(path)!r}")
        write_csv(self.to_dataframe(), self.statement, goal)

    def of_round(self, number: int) -> RoundAnswer:
        """The answer of one round; `InputError` where it is not here."""
        for each in self.rounds:
            if each.round == number:
                return each
        held = ", ".join(str(each.round) for each in self.rounds)
        raise InputError(f"this file of the study {self.study} holds round {held}; found {number}")

    def to_dataframe(self, confidence: float | None = None) -> "DataFrame":
        """A line for each bin of each round: labels (empty where a recipe has no such feature), `none`, and `NUMBERS`.

        The line of the people without an answer has `none`. O(bins · features).
        """
        from pandas import DataFrame

        return DataFrame(self._columns(self.confidence if confidence is None else confidence))

    def notebook_table(self) -> NotebookTable:
        """A line for each bin of each round; beneath them the promise, and what was asked at which price."""
        rows = []
        for each in self.rounds:
            columns = each.columns(self.confidence)
            labels = each.recipe.decoded(columns["count"]).labels
            words = [", ".join(map(plain, row)) for row in zip(*labels.values(), strict=True)]
            if each.recipe.none_bin is not None:
                words.append("without an answer")
            counts = counts_in_words(*(columns[name] for name in NUMBERS))
            rows += [
                (str(each.round), each.recipe.id, *row) for row in ((a, *b) for a, b in zip(words, counts, strict=True))
            ]
        names = ("round", "recipe", "answer", "people", f"{100 * self.confidence:.6g} % interval")
        return NotebookTable(f"Study {plain(self.study)}", names, tuple(rows), tuple(self.summary()), words=3)

    def __repr__(self) -> str:
        return "\n".join(plain(line, 300) for line in [f"{type(self).__name__}: {self.HOLDS}", *self.summary()][:10])

    def summary(self) -> list[str]:
        """A few sentences: the promise, and what was asked at which price."""
        return [self.statement.line(), *(self._said(each) for each in self.rounds)]

    def prices(self) -> list[dict[str, Any]]:
        """What was asked in each round, of how many, at which price: plain, for machines."""
        return [
            {
                "round": each.round,
                "recipe": each.recipe.id,
                "version": each.recipe.version,
                "digest": each.recipe.digest,
                "query": each.recipe.query.text,
                "people": each.answer.people,
                "epsilon": str(each.recipe.epsilon),
                "delta": str(each.recipe.delta),
                "local_epsilon": str(each.recipe.local_epsilon),
            }
            for each in self.rounds
        ]

    def _said(self, each: RoundAnswer) -> str:
        asked = each.recipe
        return (
            f"Round {each.round}: {asked.id}, version {asked.version}, {asked.bins:,} bins from {each.answer.people:,} "
            f"people; ε = {float(asked.epsilon):.6g}, δ = {float(asked.delta):.3g}, ε₀ = "
            f"{float(asked.local_epsilon):.6g}"
        )

    def _columns(self, confidence: float) -> dict[str, NDArray[Any]]:
        names = dict.fromkeys(feature.name for each in self.rounds for feature in each.recipe.features)
        parts = [self._of(each, names, confidence) for each in self.rounds]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    @staticmethod
    def _of(each: RoundAnswer, names: Mapping[str, None], confidence: float) -> dict[str, NDArray[Any]]:
        recipe, numbers = each.recipe, each.columns(confidence)
        labels = recipe.decoded(numbers["count"]).labels
        empty, apart = np.full(recipe.bins, ""), [""] * (recipe.size - recipe.bins)
        text = {name: np.array([*labels.get(name, empty).tolist(), *apart], dtype=object) for name in names}
        return {
            "round": np.full(recipe.size, each.round, dtype=np.int64),
            **{column_of(name): column for name, column in text.items()},
            "none": np.arange(recipe.size) == (-1 if recipe.none_bin is None else recipe.none_bin),
            **numbers,
        }


def _table(made: StudyAnswers) -> "pa.Table":
    import pyarrow as pa

    kinds = {"O": pa.string(), "f": pa.float64(), "b": pa.bool_(), "i": pa.int64()}
    columns = made._columns(made.confidence)
    schema = pa.schema([pa.field(name, kinds[each.dtype.kind], nullable=False) for name, each in columns.items()])
    return pa.Table.from_arrays([pa.array(each, kinds[each.dtype.kind]) for each in columns.values()], schema=schema)


def _label(made: StudyAnswers) -> dict[str, Any]:
    return {
        "format": STUDIES,
        "kind": KIND,
        "study": made.study,
        "confidence": made.confidence,
        "statement": made.statement.to_json(),
        "line": made.statement.line(),
        "rounds": made.prices(),
    }


def _packed(rounds: Sequence[RoundAnswer]) -> str:
    """Recipes and answers as text of few bytes."""
    text = codec.dumps(tuple((each.round, each.recipe, each.answer) for each in rounds)).encode()
    return f"{len(text)}:" + base64.b64encode(zlib.compress(text)).decode()


def _unpacked(packed: str) -> tuple[RoundAnswer, ...]:
    text = inflated(packed)
    return tuple(RoundAnswer(*each) for each in codec.loads(text, OF_RECIPES, tuple[tuple[int, Recipe, Answer], ...]))


def _write(made: StudyAnswers, path: Path) -> None:
    """One file, whole or not at all; the same answers give the same bytes."""
    from hazemap.releases.column_digests import parts
    from hazemap.releases.page_sizes import ROWS

    table, packed, digest = _table(made), _packed(made.rounds).encode(), Digest()
    digest.add(*parts(table), packed)
    label = digest.seal(_label(made)).encode()
    with whole(path) as part, parquet_writer(part, table.schema) as writer:
        writer.write_table(table, row_group_size=ROWS)
        writer.add_key_value_metadata({LABEL: label, **pieces(packed)})


def _read(path: Path) -> StudyAnswers:
    """What `_write` wrote; `FileError` for any other file, and for a damaged one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hazemap.releases.column_digests import MOST_IN_MEMORY, parts

    with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        metadata = file.metadata.metadata or {}
        if LABEL not in metadata:
            raise FileError(f"{path} is Parquet, but no release of hazemap: its metadata has no key 'hazemap'")
        label = parse_label(path, metadata[LABEL])
        if label.get("kind") != KIND:
            raise FileError(
                f"{path} holds no {StudyAnswers.HOLDS}: open it with hazemap.open, which opens all releases"
            )
        packed, digest = joined(metadata), Digest()
        groups = tables(path, file, 1, MOST_IN_MEMORY)
        table = pa.concat_tables(_plain(each) for each in groups) if file.num_row_groups else file.read()
        digest.add(*parts(table), packed)
        digest.check(label)
        with understood(path, label):
            statement, rounds = Statement.from_json(label["statement"]), _unpacked(packed.decode())
            made = StudyAnswers(str(label["study"]), rounds, statement, float(label["confidence"]))
        if not _table(made).equals(table) or made.prices() != label["rounds"]:
            raise ValueError("its columns are not those of its answers")
        return made


def _plain(table: "pa.Table") -> "pa.Table":
    """A part of a table without dictionaries."""
    from hazemap.releases.column_digests import plain

    for at, column in enumerate(table.columns):
        whole_column = plain(column)
        table = table.set_column(at, table.schema.field(at).with_type(whole_column.type), whole_column)
    return table


@dataclass(frozen=True)
class StudyBudget(ShownAsTable):
    """ε and δ, which add up over recipes, and reports: one of each person for every recipe.

    >>> print(StudyBudget(Fraction(1, 2), Fraction(1, 10**6), 3))
    ε = 0.5, δ = 1e-06, 3 reports
    """

    epsilon: Fraction
    delta: Fraction
    reports: int

    def __str__(self) -> str:
        return f"ε = {float(self.epsilon):.6g}, δ = {float(self.delta):.3g}, {self.reports:,} reports"

    def notebook_table(self) -> NotebookTable:
        """What is left, a line each."""
        rows = (
            ("ε", f"{float(self.epsilon):.6g}"),
            ("δ", f"{float(self.delta):.3g}"),
            ("reports", f"{self.reports:,}"),
        )
        return NotebookTable("Left of a study's budget", ("", ""), rows)

    def after(self, recipe: Recipe) -> "StudyBudget":
        """What is left once a recipe is paid; `BudgetExceeded` where it cannot be."""
        epsilon, delta = self.epsilon - recipe.epsilon, self.delta - recipe.delta
        if epsilon < 0 or delta < 0 or self.reports < 1:
            raise BudgetExceeded(
                f"the recipe {recipe.id} costs ε = {float(recipe.epsilon):.6g}, δ = {float(recipe.delta):.3g} and a "
                f"report, but this study has {self} left: state a lower price, or end here"
            )
        return StudyBudget(epsilon, delta, self.reports - 1)


NOTHING = StudyBudget(Fraction(0), Fraction(0), 0)
"""What a study has left that was stopped."""
