"""Points of PostGIS: which columns hold them, in which reference system, and the SQL that selects them."""

from collections.abc import Sequence
from dataclasses import dataclass

from hazemap.engines.duckdb_connection import quoted
from hazemap.readers.postgresql_session import Session
from hazemap.readers.postgresql_types import Decoder, raw_bytes
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import PlaneBox

WGS84, CRS84 = 4326, "OGC:CRS84"
_MAY_BE_POINTS = {shape + more for shape in ("GEOMETRY", "POINT", "MULTIPOINT") for more in ("", "Z", "M", "ZM")}


@dataclass(frozen=True)
class PointType:
    """A column of geometry or geography, the schema of PostGIS's functions, and the reference system that the column
    declares.

    What is no point, or of another system than its column says, is nowhere: no function is called that refuses it.
    """

    schema: str
    srid: int
    crs: str | None
    geography: bool = False
    kind: str = "BLOB"
    decoder: Decoder = raw_bytes

    def select(self, column: str) -> str:
        """The point of a row in well-known binary.

        >>> print(PointType("gis", 4326, "OGC:CRS84").select("at"))  # doctest: +NORMALIZE_WHITESPACE
        CASE WHEN ("gis".ST_GeometryType("at") = 'ST_Point' OR "gis".ST_GeometryType("at") = 'ST_MultiPoint'
        AND "gis".ST_NumGeometries("at") = 1) AND "gis".ST_SRID("at") = 4326
        THEN "gis".ST_AsBinary("gis".ST_Force2D("at")) END
        """
        at, of = quoted(column), quoted(self.schema)
        if self.geography:
            at = f"{at}::{of}.geometry"
        return (
            f"CASE WHEN ({of}.ST_GeometryType({at}) = 'ST_Point' OR {of}.ST_GeometryType({at}) = 'ST_MultiPoint'"
            f" AND {of}.ST_NumGeometries({at}) = 1) AND {of}.ST_SRID({at}) = {self.srid}"
            f" THEN {of}.ST_AsBinary({of}.ST_Force2D({at})) END"
        )

    def near(self, column: str, box: Box) -> list[str]:
        """The condition that lets an index leave out points outside of a box of degrees; none for other systems.

        PostGIS compares boxes of single precision, which hold the point: it may find more, and never fewer.
        """
        if self.geography or self.crs != CRS84 or isinstance(box, PlaneBox):
            return []
        of = quoted(self.schema)
        edges = ", ".join(f"{float(edge)!r}" for edge in (box.west, box.south, box.east, box.north))
        return [f"{quoted(column)} OPERATOR({of}.&&) {of}.ST_MakeEnvelope({edges}, {WGS84})"]


def point_types(session: Session, declared: Sequence[tuple[str, int, int]]) -> dict[str, PointType | str]:
    """The columns of PostGIS among those that are declared: name, number of the type, and its modifier.

    One that declares other shapes than points is called by its type. One that declares no reference system has none.
    """
    installed = session.ask(
        "SELECT n.nspname, t.oid::pg_catalog.int8, t.typname FROM pg_catalog.pg_extension e"
        " JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace"
        " JOIN pg_catalog.pg_type t ON t.typnamespace = n.oid"
        " WHERE e.extname = 'postgis' AND t.typname IN ('geometry', 'geography')"
    )
    names = {number: (schema, str(name)) for schema, number, name in installed}
    found: dict[str, PointType | str] = {}
    for column, number, modifier in declared:
        if number not in names:
            continue
        schema, name = names[number]
        of = quoted(schema)
        ((shape, srid),) = session.ask(
            f"SELECT {of}.postgis_typmod_type(%s), {of}.postgis_typmod_srid(%s)",
            [modifier, modifier],
        )
        geography = name == "geography"
        if geography and modifier < 0:
            shape, srid = "Geometry", WGS84
        if str(shape).upper() not in _MAY_BE_POINTS:
            found[column] = f"{name}({shape})"
        else:
            found[column] = PointType(schema, int(srid), _system(session, schema, int(srid)), geography)
    return found


def _system(session: Session, schema: str, srid: int) -> str | None:
    """A reference system as PROJ knows it; None where a column declares none."""
    if srid == WGS84:
        return CRS84
    rows = session.ask(
        f"SELECT auth_name, auth_srid, srtext FROM {quoted(schema)}.spatial_ref_sys WHERE srid = %s",  # noqa: S608
        [srid],
    )
    if not rows:
        return None
    authority, number, text = rows[0]
    return f"{authority}:{number}" if authority and number else str(text)
