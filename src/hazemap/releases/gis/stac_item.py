"""A STAC item (SpatioTemporal Asset Catalogs 1.1) that describes a release, for catalogues of geodata.

Of the extensions, `projection` names the reference system and `table` the columns. The promise stands under `hazemap:`.
"""

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from hazemap.releases.gis.catalogue_facts import WEB, Publication, columns_of, extent_of, media_type, privacy_facts
from hazemap.spatial.plane import refuse_plane

if TYPE_CHECKING:
    from hazemap.releases.base_release import BaseRelease

VERSION = "1.1.0"
PROJECTION = "https://stac-extensions.github.io/projection/v2.0.0/schema.json"
TABLE = "https://stac-extensions.github.io/table/v1.2.0/schema.json"


def stac_item(release: "BaseRelease", about: Publication) -> dict[str, Any]:
    """The item; `FileError` for a release on a plane, which is nowhere on Earth.

    Its date is the day on which the release was made, unless the period of the data is given.
    """
    refuse_plane(release.cells.tree, "STAC item")
    statement, extent = release.statement, extent_of(release)
    days = about.days
    made = f"{statement.created}T00:00:00Z"  # STAC wants seconds, and no release says more than its day
    when: dict[str, Any] = {"datetime": made}
    if days is not None:
        start, end = f"{days[0]}T00:00:00Z", f"{days[1]}T23:59:59Z"
        when = {"datetime": None, "start_datetime": start, "end_datetime": end}
    properties: dict[str, Any] = {
        **when,
        "created": made,
        "title": about.title or statement.dataset,
        "description": statement.line(),
        "proj:code": "EPSG:4326",
        "table:columns": [{"name": c.name, "type": c.kind, "description": c.meaning} for c in columns_of(release)],
        "table:primary_geometry": "geometry",
        "hazemap:version": statement.version,
        "hazemap:privacy": [each._asdict() for each in privacy_facts(release)],
        "hazemap:statement": statement.to_json(),
    }
    if about.licence is not None:
        properties["license"] = "other" if about.licence.startswith(WEB) else about.licence
    if about.publisher is not None:
        url = {} if about.publisher_url is None else {"url": about.publisher_url}
        properties["providers"] = [{"name": about.publisher, "roles": ["producer", "licensor"], **url}]
    links = [] if about.licence_url is None else [{"rel": "license", "href": about.licence_url}]
    return {
        "type": "Feature",
        "stac_version": VERSION,
        "stac_extensions": [PROJECTION, TABLE],
        "id": identifier(release),
        "geometry": extent.to_geojson(),
        "bbox": list(extent),
        "properties": properties,
        "links": links,
        "assets": {
            "data": {
                "href": about.href,
                "type": media_type(about.href),
                "title": f"{release.HOLDS}, with its privacy statement",
                "roles": ["data"],
            }
        },
    }


def identifier(release: "BaseRelease") -> str:
    """A name for an address: of the data set, of the day of the release, and of its numbers."""
    statement, numbers = release.statement, sha256()
    for name, column in release.columns().items():
        if column.dtype != object:
            numbers.update(name.encode() + column.tobytes())
    name = re.sub(r"[^a-z0-9]+", "-", statement.dataset.lower()).strip("-")[:60] or "release"
    return f"{name}-{statement.created.replace('-', '')}-{numbers.hexdigest()[:8]}"
