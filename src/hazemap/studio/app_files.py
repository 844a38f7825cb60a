"""The studio's own page: files that `make studio` builds from `web/studio`, read once and served as they are."""

from dataclasses import dataclass
from importlib.resources import files

from hazemap.errors import InputError

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
INDEX = "index.html"


@dataclass(frozen=True)
class AppFile:
    """A file of the page, and what kind it is."""

    content: bytes
    kind: str


def app_files() -> dict[str, AppFile]:
    """The files of the page by name; `InputError` where it was not built."""
    found = {}
    folder = files("hazemap.studio") / "app"
    if folder.is_dir():
        for each in folder.iterdir():
            ending = each.name[each.name.rfind(".") :]
            if ending in KINDS:
                found[each.name] = AppFile(each.read_bytes(), KINDS[ending])
    if INDEX not in found:
        raise InputError(
            "the studio's page is not built: packages of hazemap hold it; in a clone `make studio` builds it (with npm)"
        )
    return found
