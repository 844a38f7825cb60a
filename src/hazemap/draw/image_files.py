"""A picture as a file that appears whole or not at all."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from hazemap.atomic_write import write_whole
from hazemap.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")


def encode(figure: "Figure", suffix: str = ".png") -> bytes:
    """The picture as PNG, SVG or PDF, with its title and caption as the file's title and description."""
    words = {text.get_gid(): str(text.get_label()) for text in figure.texts}
    title, caption = words.get("title", ""), words.get("caption", "")
    metadata: dict[str, str | None]
    if suffix == ".png":
        metadata = {"Title": title, "Description": caption, "Software": "hazemap"}
    elif suffix == ".svg":
        metadata = {"Title": title, "Description": caption, "Creator": "hazemap", "Date": None}
    elif suffix == ".pdf":
        metadata = {"Title": title, "Subject": caption, "Creator": "hazemap", "CreationDate": None}
    else:
        raise InputError(f"a picture is a file that ends in {', '.join(SUFFIXES)}; found {suffix!r}")
    content = io.BytesIO()
    figure.savefig(
        content,
        format=suffix[1:],
        dpi=figure.dpi,
        facecolor="white",
        bbox_inches=None,
        metadata={key: value for key, value in metadata.items() if value != ""},
    )
    return content.getvalue()


def save(figure: "Figure", path: str | Path) -> None:
    """Write the picture; the format is the path's suffix. A file that was there is replaced at once.

    `InputError` for another suffix, `FileError` where nothing can be written.
    """
    path = Path(path)
    write_whole(path, encode(figure, path.suffix.lower()))
