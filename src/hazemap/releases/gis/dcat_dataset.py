"""A release as JSON-LD for open-data portals: at once a `Dataset` of schema.org and one of DCAT (DCAT-AP 3).

Search engines read the words of schema.org, portals those of DCAT. Parameters of the promise are measured variables.
"""

from typing import TYPE_CHECKING, Any

from hazemap.privacy.statement_facts import Estimand
from hazemap.releases.gis.catalogue_facts import (
    PARQUET,
    Publication,
    columns_of,
    extent_of,
    media_type,
    privacy_facts,
)
from hazemap.releases.gis.stac_item import identifier
from hazemap.spatial.plane import refuse_plane

if TYPE_CHECKING:
    from hazemap.releases.base_release import BaseRelease

CONTEXT = {
    "@vocab": "https://schema.org/",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "locn": "http://www.w3.org/ns/locn#",
    "geosparql": "http://www.opengis.net/ont/geosparql#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
IANA = "https://www.iana.org/assignments/media-types/"
METHOD = "differential privacy"


def dcat_dataset(release: "BaseRelease", about: Publication) -> dict[str, Any]:
    """The data set with its one file; `FileError` for a release on a plane, which is nowhere on Earth."""
    refuse_plane(release.cells.tree, "data set of a portal")
    statement, extent = release.statement, extent_of(release)
    title, description = about.title or statement.dataset, statement.line()
    made: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": ["Dataset", "dcat:Dataset"],
        "identifier": identifier(release),
        "name": title,
        "dct:title": {"@value": title},
        "description": description,
        "dct:description": {"@value": description, "@language": "en"},
        "abstract": statement.text(),
        "datePublished": statement.created,
        "dct:issued": {"@value": statement.created, "@type": "xsd:date"},
        "measurementTechnique": METHOD,
        "keywords": [METHOD, "map", Estimand.of(release.statement.bounding).noun],
        "dcat:keyword": [METHOD, "map", Estimand.of(release.statement.bounding).noun],
        "creativeWorkStatus": "Published",
        "spatialCoverage": {
            "@type": "Place",
            # schema.org writes a box as south west north east
            "geo": [{"@type": "GeoShape", "box": f"{s} {w} {n} {e}"} for w, s, e, n in extent.parts],
        },
        "dct:spatial": {
            "@type": "dct:Location",
            "dcat:bbox": {"@value": extent.to_wkt(), "@type": "geosparql:wktLiteral"},
        },
        "variableMeasured": [
            *(
                {"@type": "PropertyValue", "name": each.name, "description": each.meaning}
                for each in columns_of(release)
            ),
            *(
                {
                    "@type": "PropertyValue",
                    "name": each.name,
                    "value": each.value,
                    "description": f"{METHOD}: {each.meaning}",
                }
                for each in privacy_facts(release)
            ),
        ],
        "distribution": [_distribution(about)],
        "dcat:distribution": [_portals_distribution(about)],
    }
    return made | _publisher(about) | _licence(about) | _contact(about) | _period(about)


def _distribution(about: Publication) -> dict[str, Any]:
    return {"@type": "DataDownload", "contentUrl": about.href, "encodingFormat": media_type(about.href)}


def _portals_distribution(about: Publication) -> dict[str, Any]:
    place, kind = {"@id": about.href}, media_type(about.href)
    registered = {} if kind == PARQUET else {"dcat:mediaType": {"@id": IANA + kind.partition(";")[0]}}
    made = {"@type": "dcat:Distribution", "dcat:accessURL": place, "dcat:downloadURL": place, **registered}
    return made | ({} if about.licence_url is None else {"dct:license": {"@id": about.licence_url}})


def _publisher(about: Publication) -> dict[str, Any]:
    if about.publisher is None:
        return {}
    page = {} if about.publisher_url is None else {"url": about.publisher_url}
    home = {} if about.publisher_url is None else {"foaf:homepage": {"@id": about.publisher_url}}
    return {
        "publisher": {"@type": "Organization", "name": about.publisher, **page},
        "creator": {"@type": "Organization", "name": about.publisher, **page},
        "dct:publisher": {"@type": "foaf:Agent", "foaf:name": about.publisher, **home},
    }


def _licence(about: Publication) -> dict[str, Any]:
    if about.licence_url is None:
        return {}
    return {"license": about.licence_url, "dct:license": {"@id": about.licence_url}}


def _contact(about: Publication) -> dict[str, Any]:
    if about.contact is None:
        return {}
    card = {"@type": "vcard:Organization", "vcard:hasEmail": {"@id": f"mailto:{about.contact}"}}
    return {"dcat:contactPoint": card | ({} if about.publisher is None else {"vcard:fn": about.publisher})}


def _period(about: Publication) -> dict[str, Any]:
    if about.days is None:
        return {}
    first, last = about.days
    time = {
        "@type": "dct:PeriodOfTime",
        "dcat:startDate": {"@value": first, "@type": "xsd:date"},
        "dcat:endDate": {"@value": last, "@type": "xsd:date"},
    }
    return {"temporalCoverage": f"{first}/{last}", "dct:temporal": time}
