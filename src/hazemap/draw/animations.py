"""Moving pictures: a frame for every slot of time, in one scale and one view, as GIF or APNG."""

import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hazemap.cellmap import CellMap
from hazemap.draw.figure_layout import SAME_BYTES
from hazemap.draw.small_maps import draw_small_maps, draw_small_shares
from hazemap.errors import InputError
from hazemap.files.atomic_write import write_whole
from hazemap.machine_code.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tell = Callable[[str, float | None], None]
"""Hears what is being done and the part of it that is done."""

SUFFIXES = (".gif", ".apng")
DPI = 100
"""Pixels an inch: a moving picture of 6 inches is 600 pixels wide."""

FRAME = 6.0
"""Inches that a frame is wide, unless somebody says otherwise."""


def animate(
    frames: Sequence[tuple[str, CellMap]],
    path: str | Path,
    seconds: float = 0.7,
    tell: Tell | None = None,
    **options: Any,
) -> None:
    """Write one picture after another, each for so many seconds, again and again.

    Options are those of `draw_small_maps`, whose scale and view are of all frames together. O(frames · cells) time, and
    memory for all frames: 1 MB each. The statement is written in every frame. `tell` hears of the part that is drawn.
    """
    _write(partial(draw_small_maps, frames, **{"width": FRAME, **options}), len(frames), path, seconds, tell)


def animate_shares(
    cellmap: CellMap,
    frames: Sequence[tuple[str, Floats]],
    path: str | Path,
    seconds: float = 0.7,
    tell: Tell | None = None,
    **options: Any,
) -> None:
    """The same of shares; options are those of `draw_small_shares`."""
    drawn = partial(draw_small_shares, cellmap, frames, **{"width": FRAME, **options})
    _write(drawn, len(frames), path, seconds, tell)


def _write(draw: "Callable[..., Figure]", frames: int, path: str | Path, seconds: float, tell: Tell | None) -> None:
    """Write so many frames, of which `draw` makes one by its number (`only`)."""
    from matplotlib import rc_context
    from PIL import Image

    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"a moving picture's file name must end in {' or '.join(SUFFIXES)}; found {suffix!r}")
    if not 0.05 <= seconds <= 60:
        raise InputError(f"a frame is shown for 0.05 to 60 seconds; found {seconds:g}")
    pictures = []
    for number in range(frames):
        made = io.BytesIO()
        figure = draw(only=number, dpi=DPI)
        with rc_context(SAME_BYTES):
            figure.savefig(made, format="png", dpi=DPI, facecolor=figure.get_facecolor())
        pictures.append(Image.open(made).convert("RGB"))
        if tell is not None:
            tell("drawing", (number + 1) / frames)
    found = io.BytesIO()
    kind = {".gif": "GIF", ".apng": "PNG"}[suffix]
    if kind == "GIF":  # one palette for all frames, so that colours do not flicker
        palette = _palette(pictures)
        pictures = [each.quantize(palette=palette, dither=Image.Dither.NONE) for each in pictures]
    first, *rest = pictures
    first.save(found, kind, save_all=True, append_images=rest, duration=round(1000 * seconds), loop=0)
    write_whole(path, found.getvalue())


def _palette(pictures: Sequence[Any]) -> Any:
    """256 colours that suit all pictures: found on a strip of all of them, made small."""
    from PIL import Image

    side = 200
    strip = Image.new("RGB", (side, side * len(pictures)))
    for number, each in enumerate(pictures):
        strip.paste(each.resize((side, side), Image.Resampling.NEAREST), (0, side * number))
    return strip.quantize(256, Image.Quantize.MEDIANCUT)
