"""The dialect of a CSV file: declared, or read from its header line, never guessed from rows."""

from dataclasses import dataclass

from hazemap.errors import InputError

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
ENCODINGS = ("utf-8", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be")
_SPELLINGS = {
    "utf8": "utf-8",
    "utf8sig": "utf-8",
    "latin1": "latin-1",
    "iso88591": "latin-1",
    "cp1252": "cp1252",
    "windows1252": "cp1252",
    "utf16": "utf-16",
    "utf16le": "utf-16-le",
    "utf16be": "utf-16-be",
}
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


@dataclass(frozen=True)
class CsvDialect:
    r"""The delimiter, the encoding, the decimal sign, and whether a quoted field may hold a newline.

    Without a `delimiter` it is the one of comma, semicolon, tab and vertical bar that divides the header line into most
    columns. Without a `decimal` a number has a decimal point or, where semicolons divide (Excel where commas are
    decimal), a decimal comma: each for itself, so that 13.5 and 13,5 are the same, and 1.013,5 is none. Everything else
    is as declared, so that how a line is read depends on that line, the header and this alone.
    With `multiline` a record may go on over several lines inside quotes; then this holds for well-formed records
    of up to 2²⁰ bytes only.
    `InputError` for anything else than is said here.

    >>> CsvDialect("tab", "Latin1")
    CsvDialect(delimiter='\t', encoding='latin-1', decimal=None, multiline=False)
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str | None = None
    multiline: bool = False

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            sign = _NAMED.get(self.delimiter.casefold(), self.delimiter)
            if sign not in DELIMITERS:
                raise InputError(
                    "--delimiter is a comma, a semicolon, a tab or a vertical bar (, ; tab |);"
                    f" found {self.delimiter!r}"
                )
            object.__setattr__(self, "delimiter", sign)
        plain = "".join(letter for letter in self.encoding.casefold() if letter.isalnum())
        if plain not in _SPELLINGS:
            raise InputError(f"--encoding must be one of {', '.join(ENCODINGS)}; found {self.encoding!r}")
        object.__setattr__(self, "encoding", _SPELLINGS[plain])
        if self.decimal not in {None, ".", ","}:
            raise InputError(f"--decimal must be a point or a comma; found {self.decimal!r}")
        if not isinstance(self.multiline, bool):
            raise InputError(f"multiline must be yes or no; found {self.multiline!r}")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about a file in the statement; none if each line is a record.

        >>> CsvDialect().assumptions
        ()
        """
        if not self.multiline:
            return ()
        return (
            "every record of the file is well formed and no longer than 1,048,576 bytes, for with records over several"
            " lines any other hides or makes records of others",
        )
