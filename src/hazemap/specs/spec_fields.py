"""Every field of a specification: its type in Python and in a file, its default, and its meaning.

`hazemap.release` and `hazemap.stats` take these names as keywords, the command line as options, specification files as
keys; the JSON Schemas in docs/reference describe the files. All of them are made from the two classes here.
"""

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, TypeVar, get_args

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hazemap.privacy.budget import Number
    from hazemap.readers.csv_files import CsvDialect
    from hazemap.spatial.bounding_box import Box
    from hazemap.tables.contribution_bounding import Bounding
    from hazemap.temporal.time_format import TimeFormat

TABLE, PRIVACY, FILE, MAP, VALUES = "The table", "Privacy", "Files", "The map", "What is told, and where"
"""Groups of names, as the help of a command shows them."""

BOX = "west,south,east,north in degrees, written --box=-74.02,40.70,-73.93,40.80"

Value = str | int | float | bool | list[float] | list[str]
"""What a name may stand for in a file."""


@dataclass(frozen=True)
class Field:
    """What one name means: a sentence for users, the group it belongs to, and how it is written.

    `kind` is its type in a file; `flags` are the options of the command line, by default `--name`. A list is of
    numbers, or of `texts`: then the option may be repeated.
    """

    help: str
    group: str
    metavar: str | None = None
    kind: type = str
    default: Value | None = None
    flags: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    texts: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The field as a property of a JSON Schema."""
        known: dict[str, Any] = dict(_SCHEMAS[self.kind], description=self.help)
        if self.texts:
            known["items"] = {"type": "string"}
        if self.choices:
            known["enum"] = list(self.choices)
        return known if self.default is None else known | {"default": self.default}


_SCHEMAS: dict[type, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    list: {"type": "array", "items": {"type": "number"}},
}

SOURCE = Field(
    "Parquet, CSV, GeoPackage, GeoJSON, FlatGeobuf: a file, a folder, a pattern in quotes; s3://…, gs://…, https://…; "
    "postgresql://…?table=…; or spark:NAME",
    TABLE,
)


TIME_FORMAT = "Times: iso (8601), or seconds or milliseconds since 1970."


class CommonOptions(TypedDict, total=False):
    """What `hazemap.release` and `hazemap.stats` both take."""

    person: Annotated[str | None, Field("The column with the person's id. Guessed by default.", TABLE, "COLUMN")]
    lon: Annotated[str | None, Field("Longitude in degrees. Guessed.", TABLE, "COLUMN")]
    lat: Annotated[str | None, Field("Latitude in degrees. Guessed.", TABLE, "COLUMN")]
    since: Annotated[str | None, Field("Only rows from then on (ISO 8601).", TABLE, "TIME")]
    until: Annotated[str | None, Field("Only rows before then.", TABLE, "TIME")]
    time_format: Annotated[
        "TimeFormat",
        Field(TIME_FORMAT, TABLE, "FORMAT", default="iso", choices=("iso", "seconds", "milliseconds")),
    ]
    dialect: "CsvDialect"
    delimiter: Annotated[str | None, Field("Of CSV: , ; tab or |. By default read off the header.", TABLE, "SIGN")]
    encoding: Annotated[str, Field("Of CSV: utf-8, latin-1, cp1252 or utf-16.", TABLE, "NAME", default="utf-8")]
    decimal: Annotated[
        str | None,
        Field("Of numbers in CSV, . or a comma; by default either, or . where commas divide.", TABLE, "SIGN"),
    ]
    multiline: Annotated[bool, Field("Quoted fields of CSV may hold line breaks.", TABLE, kind=bool, default=False)]
    epsilon: Annotated["Number | None", Field("The price in ε.", PRIVACY, "ε", flags=("-e", "--epsilon"))]
    delta: Annotated["Number | None", Field("With --epsilon: the price is (ε, δ).", PRIVACY, "δ")]
    rho: Annotated["Number | None", Field("The price in ρ (zCDP), instead of ε.", PRIVACY, "ρ")]
    dataset: Annotated[
        str | None, Field("The data set that pays. By default the file's or the campaign's name.", PRIVACY, "NAME")
    ]
    overwrite: Annotated[
        bool, Field("Replace a file that is there.", FILE, kind=bool, default=False, flags=("--force",))
    ]


class ReleaseOptions(CommonOptions, total=False):
    """What `hazemap.release` takes."""

    time: Annotated[str | None, Field("When, for --since, --until and --slots.", TABLE, "COLUMN")]
    value: Annotated[str | None, Field("Weight of a row, for 'one vote'.", TABLE, "COLUMN")]
    bounding: Annotated[
        "Bounding | str",
        Field(
            "What one person may contribute: 'one row', rows:K, cells:K, 'one vote', 'rows are people'.",
            group=PRIVACY,
            metavar="RULE",
            default="one row",
        ),
    ]
    box: Annotated[
        "Box | str | None", Field(f"The smallest square around it is mapped: {BOX}. Found where left out.", MAP)
    ]
    plane: Annotated[
        str | None,
        Field(
            "Not degrees but WIDTH,HEIGHT[,UNIT] (1000,800 are pixels; 40,30,m a floor), or EPSG:CODE.",
            group=MAP,
            metavar="PLANE",
            flags=("--plane", "--crs"),
        ),
    ]
    crs: "str | int | None"
    cells: Annotated[
        str,
        Field("quadtree, quadtree:DEPTH, h3:COARSEST-FINEST or districts:FILE,…", MAP, "CELLS", default="quadtree"),
    ]
    slots: Annotated[
        str | None,
        Field(
            "A map for each slot too: hour-of-day, day-of-week, hour, day, clock:7:00,16:00 or times:TIME,TIME,TIME.",
            group=MAP,
            metavar="SLOTS",
        ),
    ]
    time_zone: Annotated[str | None, Field("The time zone of the slots; UTC.", MAP, "ZONE")]
    method: Annotated[
        str,
        Field("auto, flat:LEVEL, htf:threshold=50 or another: see `hazemap methods`.", MAP, "METHOD", default="auto"),
    ]
    prior: Annotated[
        str | None,
        Field("Cells to begin with: a release of a map, or a list of cells that is public.", MAP, "FILE"),
    ]
    prior_is_public: Annotated[
        bool, Field("The prior is no release: all of it is public.", MAP, kind=bool, default=False)
    ]
    outside: Annotated[
        Literal["people", "drop", "count"],
        Field(
            "Outside the map: count people of whom no row is inside, drop all rows, or count rows like others.",
            group=MAP,
            metavar="WHAT",
            default="people",
            choices=("people", "drop", "count"),
        ),
    ]
    mark: Annotated[
        "Sequence[str] | str | None",
        Field(
            "Count who carries a mark, too: a column of yes or no, or COLUMN=VALUE. May be repeated.",
            group=MAP,
            metavar="COLUMN[=VALUE]",
            kind=list,
            texts=True,
        ),
    ]
    goal: Annotated[
        str | None,
        Field(
            "With --mark: cut cells while shares stand out of the noise (density), or stay narrow (width:0.2).",
            group=MAP,
            metavar="GOAL",
        ),
    ]
    output: Annotated[
        "str | os.PathLike[str] | None",
        Field("The file to publish: .parquet, or .tif for a grid.", FILE, "FILE", flags=("-o", "--output")),
    ]


class StatisticsOptions(CommonOptions, total=False):
    """What `hazemap.stats` takes."""

    cell_column: Annotated[
        str | None,
        Field("H3 cells instead of lon and lat: each as fine as --cells, or finer.", TABLE, "COLUMN"),
    ]
    time: Annotated[str | None, Field("When, for slots. Guessed.", TABLE, "COLUMN")]
    value: Annotated[str, Field("The column with the measured numbers.", TABLE, "COLUMN")]
    low: Annotated[float | None, Field("The smallest possible value.", TABLE, "NUMBER", float)]
    high: Annotated[float | None, Field("The largest possible value.", TABLE, "NUMBER", float)]
    bounds: Annotated[
        str | None,
        Field("private: a tenth of the budget finds the bounds not declared.", TABLE, "WORD", choices=("private",)),
    ]
    max_cells_per_person: Annotated[
        int | None,
        Field(
            "In how many cells and slots a person counts at most. By default one for each slot, but 8 to 24.",
            group=PRIVACY,
            metavar="K",
            kind=int,
        ),
    ]
    max_records_per_cell: Annotated[
        int | None,
        Field("For how many records a person counts in a cell and slot at most: 1, of records 10.", PRIVACY, "K", int),
    ]
    select: Annotated[
        bool,
        Field(
            "A tenth of the budget finds the cells with many people; nobody spends their cap elsewhere.",
            group=PRIVACY,
            kind=bool,
            default=False,
        ),
    ]
    model: Annotated[
        str,
        Field(
            "full, or values-only: whereabouts and numbers of people are public, only values are protected.",
            group=PRIVACY,
            metavar="MODEL",
            default="full",
            choices=("full", "values-only"),
        ),
    ]
    box: Annotated["Box | str | None", Field(f"All cells of it are published: {BOX}. Found where left out.", VALUES)]
    cells: Annotated[
        str,
        Field(
            "h3:RESOLUTION, hexagons:FILE (a list), quadtree:DEPTH or districts:FILE.", VALUES, "CELLS", default="h3:7"
        ),
    ]
    slots: Annotated[
        str,
        Field(
            "always, hour-of-day, day-of-week, hour, day, clock:7:00,16:00 or times:TIME,TIME,TIME.",
            group=VALUES,
            metavar="SLOTS",
            default="always",
        ),
    ]
    time_zone: Annotated[str, Field("The time zone of the slots.", VALUES, "ZONE", default="UTC")]
    estimator: Annotated[
        str,
        Field(
            "own-means (each person's own mean), or, with --model values-only, one of Rameshwar et al. 2024: plain, "
            "array-averaging, levy, quantile, balanced.",
            group=VALUES,
            metavar="NAME",
            default="own-means",
            choices=("own-means", "plain", "array-averaging", "levy", "quantile", "balanced"),
        ),
    ]
    length: Annotated[
        str | int | None,
        Field(
            "Of an --estimator: for how many samples a person counts: median, k-root-m, worst-case or a number.",
            group=VALUES,
            metavar="LENGTH",
        ),
    ]
    mean_of: Annotated[
        str | None,
        Field(
            "A mean of people's own means, each once (default), or of records (the default of other estimators).",
            group=VALUES,
            metavar="WHAT",
            choices=("people", "records"),
        ),
    ]
    chop_user: Annotated[
        bool,
        Field(
            "Of an --estimator: leave people out of places where that lowers the price (CHOP-USER).",
            VALUES,
            None,
            bool,
            False,
        ),
    ]
    variance: Annotated[bool, Field("The variance too.", VALUES, None, bool, False)]
    quantiles: Annotated["Sequence[float]", Field("Quantiles too: 0.1,0.5,0.9.", VALUES, "P,P,…", list)]
    bins: Annotated[
        int | None,
        Field(
            "A distribution too, over so many bins between the bounds or a few more; for quantiles up to 256.",
            VALUES,
            "N",
            int,
            flags=("--bins", "--distribution"),
        ),
    ]
    output: Annotated[
        "str | os.PathLike[str] | None",
        Field("The file to publish: .parquet.", FILE, "FILE", flags=("-o", "--output")),
    ]


def _fields(options: type) -> dict[str, Field]:
    annotated = inspect.get_annotations(options)
    own = {name: each.__metadata__[0] for name, each in annotated.items() if hasattr(each, "__metadata__")}
    return {"source": SOURCE} | own


RELEASE, STATISTICS = _fields(ReleaseOptions), _fields(StatisticsOptions)
"""The names of a file, in the order in which it is written."""


def _schema(fields: Mapping[str, Field], title: str, *required: str) -> dict[str, Any]:
    """The JSON Schema of whole specifications with these names."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "properties": {name: field.schema for name, field in fields.items()},
        "additionalProperties": False,
        "required": list(required),
        "oneOf": [
            {"required": ["epsilon"], "not": {"required": ["rho"]}},
            {"required": ["rho"], "not": {"anyOf": [{"required": ["epsilon"]}, {"required": ["delta"]}]}},
        ],
    }


SCHEMAS = {
    "release": _schema(RELEASE, "A map: what hazemap release takes"),
    "statistics": _schema(STATISTICS, "Statistics of a value: what hazemap stats takes", "value"),
}
"""JSON Schemas of specification files; docs/reference has them too."""


Function = TypeVar("Function", bound=Callable[..., Any])


def takes(options: type) -> Callable[[Function], Function]:
    """Have `help()` and editors show the keywords of `options` in place of `**asked`."""

    def shown(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        named = [
            _parameter(name, each)
            for name, each in inspect.get_annotations(options).items()
            if name not in signature.parameters
        ]
        before, after = (
            [each for each in own if (each.kind is each.KEYWORD_ONLY) == keyword] for keyword in (False, True)
        )
        function.__signature__ = signature.replace(parameters=[*before, *named, *after])  # type: ignore[attr-defined]
        return function

    return shown


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    field = annotation.__metadata__[0] if hasattr(annotation, "__metadata__") else None
    kind = get_args(annotation)[0] if field else annotation
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field and field.default,
        annotation=getattr(kind, "__forward_arg__", kind),
    )
