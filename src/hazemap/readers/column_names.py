"""Guesses the role of each column from common names."""

from collections.abc import Iterable
from dataclasses import dataclass

from hazemap.errors import TableError


@dataclass(frozen=True)
class Role:
    """A role, how to name its column, and the names it usually has: the first line of them that fits wins.

    >>> LON.column(["User ID", "Longitude", "lat"], None)
    'Longitude'
    """

    what: str
    option: str
    usual: tuple[tuple[str, ...], ...]

    def column(self, columns: Iterable[str], wanted: str | None) -> str:
        """The wanted column, else the one with a usual name; `TableError` for none, and for more than one."""
        found = list(columns)
        if wanted is not None:
            return self._named(found, wanted)
        for names in self.usual:
            fitting = [column for column in found if _plain(column) in names]
            if len(fitting) > 1:
                raise TableError(f"{' and '.join(fitting)} could each be the {self.what}; {self._hint}")
            if fitting:
                return fitting[0]
        raise TableError(
            f"no column is known to hold the {self.what}; found {', '.join(found) or 'no columns'}; {self._hint}"
        )

    def is_guessed(self, columns: Iterable[str]) -> bool:
        """Whether a column, or more than one, has a usual name."""
        return any(_plain(column) in names for column in columns for names in self.usual)

    @property
    def _hint(self) -> str:
        return f"name the column with --{self.option} ({self.option.replace('-', '_')}=… in Python)"

    def _named(self, found: list[str], wanted: str) -> str:
        fitting = [column for column in found if column == wanted]
        fitting = fitting or [column for column in found if column.casefold() == wanted.casefold()]
        if len(fitting) != 1:
            raise TableError(
                f"the {self.what} was said to be in column {wanted!r};"
                f" found {' and '.join(fitting) or 'only ' + ', '.join(found)}; {self._hint}"
            )
        return fitting[0]


def refuse_plain(columns: Iterable[str], lon: str | None, lat: str | None, remedy: str) -> None:
    """`TableError` if both coordinates would be taken from columns that are only called x and y: see `told`.

    They may as well be metres or pixels, which no name tells from degrees.
    """
    found = list(columns)
    if lon is not None or lat is not None or told(found):
        return
    x, y = LON.column(found, None), LAT.column(found, None)
    raise TableError(
        f"the columns {x!r} and {y!r} do not say whether they are degrees: for a longitude and a latitude say "
        f"--lon {x} --lat {y} (lon={x!r}, lat={y!r} in Python) or declare a box in degrees; {remedy}"
    )


def told(columns: Iterable[str]) -> bool:
    """Whether the names of coordinates alone say that they are degrees, which x and y do not.

    >>> told(["lon", "lat"]), told(["x", "latitude"]), told(["x", "y"])
    (True, True, False)
    """
    names = {_plain(column) for column in columns}
    return any(names & set(role.usual[0]) for role in (LON, LAT))


def told_apart(names: Iterable[str], name: str) -> None:
    """`TableError` for two columns whose names are one to SQL, which does not see capitals.

    It would rename one of them, and a query for that one would read the other.
    """
    seen = dict[str, str]()
    for each in names:
        if each.lower() in seen:
            twins = (
                f"two columns called {each!r}"
                if seen[each.lower()] == each
                else f"columns called {seen[each.lower()]!r} and {each!r}, which SQL does not tell apart"
            )
            raise TableError(f"{name} has {twins}; rename one")
        seen[each.lower()] = each


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


PERSON = Role(
    "person",
    "person",
    (
        (
            *("user", "userid", "uid", "iduser", "person", "personid", "pid", "idperson", "device", "deviceid"),
            *("iddevice", "subject", "subjectid", "customer", "customerid", "member", "memberid", "rider", "riderid"),
            *("participant", "participantid", "visitor", "visitorid"),
        ),
    ),
)
LON = Role("longitude", "lon", (("lon", "lng", "long", "longitude"), ("x",)))
LAT = Role("latitude", "lat", (("lat", "latitude"), ("y",)))
CELL = Role("H3 cell", "cell-column", ())
TIME = Role("time", "time", (("ts", "time", "timestamp", "datetime", "date"),))
VALUE = Role("weight of a row", "value", ())
MARK = Role("mark of a row", "mark", ())
MEASURED = Role("value of a row", "value", ())
"""The measured value, such as a speed or a delay."""
