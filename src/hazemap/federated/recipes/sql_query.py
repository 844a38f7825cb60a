"""The query of a recipe: one SELECT in SQL with typed parameters, as a text that can be looked at before it runs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, prod
from unicodedata import category, is_normalized

from hazemap.errors import InputError
from hazemap.field_types import check_fields

LONGEST_SQL, LONGEST_VALUE, MOST_PARAMETERS = 16_384, 1_024, 32
"""Bytes of a query and of a text that it is handed; how many parameters it has."""

MOST_COPIED = 1 << 17
"""Tokens of a query at most, times how often SQLite copies the parts of a WITH to where they are used."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])
      | (?P<word>[^\W\d][\w$]*)
      | (?P<parameter>[:@$?][\w$:]*)
      | (?P<number>[0-9][\w.]*|\.[0-9][\w.]*)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)

_RESERVED = (
    "add all alter and as autoincrement between case cast check collate commit constraint create current_date "
    "current_time current_timestamp default deferrable delete distinct drop else escape except exists false foreign "
    "from group having if in index insert intersect into is isnull join limit natural not nothing notnull null on or "
    "order primary raise references returning select set table then to transaction true union unique update using "
    "values when where"
)
RESERVED_WORDS = frozenset(_RESERVED.split())
"""Words of SQL that cannot be names without quotes, or mean something else."""

_TEXT = re.compile(r"'(?:[^']|'')*'")

Value = int | float | str
"""What a parameter may be; a device's events hold the same, or nothing."""


def check_name(name: str, what: str) -> str:
    """A name of ours, lower-case and in ASCII, as SQL and TOML take it unquoted; `InputError` for another text."""
    if type(name) is not str or not _NAME.fullmatch(name):
        raise InputError(f"{what} is lower-case letters, digits and _ (63 at most, a letter first); found {name!r:.80}")
    return name


def check_sql_name(name: str, what: str) -> str:
    """A name as `check_name` takes it that SQL has no other meaning for."""
    if check_name(name, what) in RESERVED_WORDS:
        raise InputError(f"{what} is not {name}: SQL has another meaning for that word")
    return name


def check_text(text: str, what: str, longest: int) -> str:
    """A text that is printable, in Unicode's normal form C and no longer than so many bytes in UTF-8."""
    if type(text) is not str:
        raise InputError(f"{what} is a text; found a {type(text).__name__}")
    if len(text) > longest or len(text.encode(errors="replace")) > longest:
        raise InputError(f"{what} has at most {longest:,} bytes")
    if any(category(letter) in ("Cc", "Cs", "Cf", "Co", "Cn", "Zl", "Zp") for letter in text if letter not in "\n\t"):
        raise InputError(f"{what} holds a character that cannot be printed: write it without")
    if not is_normalized("NFC", text):
        raise InputError(f"{what} is not in Unicode's normal form C: two texts that look alike would differ")
    return text


def check_value(value: Value, what: str) -> Value:
    """A number that SQLite holds exactly, or a short text."""
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value
    if type(value) is float and isfinite(value):
        return value
    if type(value) is str:
        return check_text(value, what, LONGEST_VALUE)
    raise InputError(f"{what} is a whole number of 64 bits, a finite number or a text; found a {type(value).__name__}")


@dataclass(frozen=True)
class Parameter:
    """A value that a query is handed under a name: `:name` in its text. It is bound, never pasted into the text."""

    name: str
    value: Value

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a parameter")
        check_value(self.value, f"the parameter {self.name}")


@dataclass(frozen=True)
class SqlQuery:
    """One SELECT over streams of events, with the values of its parameters.

    Only its shape is checked here: what it reads, `federated.device.recipes.query_sandbox` asks SQLite.

    >>> SqlQuery("SELECT age FROM profile WHERE age >= :least", (Parameter("least", 18),)).named
    ('least',)
    """

    text: str
    parameters: tuple[Parameter, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        check_text(self.text, "a query", LONGEST_SQL)
        if len(self.parameters) > MOST_PARAMETERS:
            raise InputError(f"a query has at most {MOST_PARAMETERS} parameters; this one has {len(self.parameters)}")
        names = [each.name for each in self.parameters]
        check_shape(self.text, names)

    @property
    def named(self) -> tuple[str, ...]:
        """The names of its parameters, in the order in which they are handed."""
        return tuple(each.name for each in self.parameters)


def check_shape(text: str, names: list[str]) -> None:
    """`InputError` unless a text is one SELECT, without comments, that uses exactly these parameters."""
    if len(set(names)) != len(names):
        raise InputError("a query hands each parameter over once; two have the same name")
    words = list(tokens(text))
    if not words or words[0][1].lower() not in ("select", "with"):
        raise InputError("a query begins with SELECT or WITH")
    plain = {word.lower() for kind, word in words if kind == "word"}
    if plain & {"natural", "using"}:
        raise InputError(
            "a query joins by ON one.field = other.field: NATURAL and USING read fields without naming them"
        )
    if any(kind in ("text", "sign") and word[0] in "'\"`[" and not _TEXT.fullmatch(word) for kind, word in words):
        raise InputError("a query writes names without quotes, and texts in single ones")
    if any(kind == "comment" for kind, _ in words):
        raise InputError("a query holds no comments: what is read is what runs")
    if ";" in (word for kind, word in words if kind == "sign"):
        raise InputError("a query is one statement, without a semicolon")
    if copies(words) * len(words) > MOST_COPIED:
        raise InputError("the parts of a WITH are used so often that SQLite would copy them too long: use them less")
    used = {word for kind, word in words if kind == "parameter"}
    if used != {f":{name}" for name in names}:
        raise InputError(
            f"a query uses its parameters as :name; it uses {', '.join(sorted(used)) or 'none'} and is handed "
            f"{', '.join(f':{name}' for name in names) or 'none'}"
        )


def copies(words: list[tuple[str, str]]) -> int:
    """A bound on how often SQLite copies a part of a WITH: the product of the times that each is mentioned.

    A part is a name before `AS (` or `(columns) AS (`; so are windows, which cost nothing.

    >>> copies(list(tokens("WITH a AS (SELECT x FROM s), b(y) AS (SELECT 1 FROM a, a) SELECT * FROM b, b, b")))
    6
    """
    plain = [_as_name(word) for _, word in words]
    parts = {_named_before(plain, place) for place, word in enumerate(plain) if word == "as" and _opens(plain, place)}
    return prod(max(plain.count(each) - 1, 1) for each in parts if each)


def _as_name(word: str) -> str:
    """A token as SQLite compares names: a text may stand for one."""
    name = word[1:-1].replace("''", "'") if word[0] == "'" else word
    return word if word != name and name.lower() in ("", "(", ")", "as", "not", "materialized") else name.lower()


def _opens(plain: list[str], place: int) -> bool:
    """Whether an AS is followed by a bracket, perhaps after MATERIALIZED."""
    return next((word for word in plain[place + 1 :] if word not in ("not", "materialized")), "") == "("


def _named_before(plain: list[str], place: int) -> str:
    """The name before an AS, or before a list of columns in brackets before it."""
    place -= 1
    if plain[place] == ")":
        depth = 1
        while depth and place > 0:
            place -= 1
            depth += {")": 1, "(": -1}.get(plain[place], 0)
        place -= 1
    return plain[place] if place >= 0 else ""


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """The tokens of SQL as (kind, text): comment, text (quoted by anything), word, parameter, number, sign.

    >>> list(tokens("SELECT 'a;' --b"))
    [('word', 'SELECT'), ('text', "'a;'"), ('comment', '--b')]
    """
    for found in _TOKEN.finditer(text):
        kind, word = str(found.lastgroup), found[0]
        if kind != "space":
            yield kind, word
        elif word[0] in "-/":
            yield "comment", word
