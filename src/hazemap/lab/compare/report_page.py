"""The page of a comparison: figures, tables and explanations, as Markdown or as one HTML file with its pictures."""

import re
import textwrap
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from hazemap import __version__
from hazemap.draw.figure_layout import save
from hazemap.files.atomic_write import write_whole
from hazemap.lab.compare.presets import Preset
from hazemap.lab.compare.result_tables import SAID, by_map, in_words
from hazemap.lab.compare.results import Results

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #21242b }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px }
td, th { border-bottom: 1px solid #ccc; padding: .25rem .8rem .25rem 0; text-align: right }
td:first-child, th:first-child { text-align: left }
img { max-width: 100% }
@media print { body { max-width: none; margin: 0 } img, table { break-inside: avoid } }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

_PICTURE = re.compile(r"!\[([^]]*)\]\(((?:figures/)?[\w.+-]+\.png)\)")
"""One of the page's own: no name of a map may bring another file of this machine into the page."""

_RULE = re.compile(r"\|[-|]+")


def html_page(text: str, folder: Path) -> str:
    """The Markdown of `page` as HTML without a script; pictures are read from the folder into it.

    Of Markdown it knows what these pages hold: headings, paragraphs, lists with stars, tables, pictures and bold type.
    Whatever else stands there, such as a name of a map with a `<`, is shown as it is.
    """
    lines = text.split("\n")  # and at none of the other signs that names may hold
    title = next((line.lstrip("# ") for line in lines if line.startswith("#")), "")
    body = [part for kind, block in groupby(lines, _kind) for part in _block(kind, list(block), folder)]
    head = (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
    )
    return head + "\n".join(body) + "\n</html>\n"


def _kind(line: str) -> str:
    if _PICTURE.fullmatch(line):
        return "picture"
    return {"#": "heading", "|": "table", "": "nothing"}.get(line[:1], "list" if line.startswith("* ") else "text")


def _block(kind: str, lines: list[str], folder: Path) -> list[str]:
    """A run of lines of one kind, as HTML."""
    if kind == "heading":
        return [f"<h{_depth(line)}>{_words(line.lstrip('# '))}</h{_depth(line)}>" for line in lines]
    if kind == "table":
        rows = [line.strip("|").split("|") for line in lines if not _RULE.fullmatch(line)]
        return ["<table>", _row(rows[0], "th"), *(_row(row, "td") for row in rows[1:]), "</table>"]
    if kind == "list":
        return ["<ul>", *(f"<li>{_words(line[2:])}</li>" for line in lines), "</ul>"]
    if kind == "picture":
        return [_picture(found, folder) for line in lines if (found := _PICTURE.fullmatch(line))]
    return [f"<p>{_words(' '.join(lines))}</p>"] if kind == "text" else []


def _depth(line: str) -> int:
    return min(len(line) - len(line.lstrip("#")), 6)


def _row(cells: list[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{_words(cell.strip())}</{tag}>" for cell in cells) + "</tr>"


def _picture(found: re.Match[str], folder: Path) -> str:
    data = b64encode((folder / found[2]).read_bytes()).decode()
    return f'<p><img src="data:image/png;base64,{data}" alt="{escape(found[1])}"></p>'


def _words(text: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))


PAGE, HTML, FIGURES = "page.md", "page.html", "figures"


def written(preset: Preset, results: Results, folder: Path) -> list[Path]:
    """Figures and a page with them into a folder, as Markdown and as one HTML file; the files, the pages first."""
    (folder / FIGURES).mkdir(exist_ok=True)
    pictures = []
    for name, draw in preset.figures:
        path = folder / FIGURES / f"{name}.png"
        save(draw(results), path)
        pictures.append(path)
    text = page(preset, results, [f"{FIGURES}/{path.name}" for path in pictures])
    write_whole(folder / PAGE, text.encode())
    write_whole(folder / HTML, html_page(text, folder).encode())
    return [folder / PAGE, folder / HTML, *pictures]


def page(preset: Preset, results: Results, pictures: Sequence[str] = (), level: int = 1, tables: bool = True) -> str:
    """Markdown: what was measured, pictures, verdicts, and with `tables` one for each map; a heading of this level."""
    parts = [f"{'#' * level} {preset.title or preset.name}", _paragraph(_head(preset, results))]
    parts += [_paragraph(preset.note)] if preset.note else []
    origins = [
        f"* {name}: {place.people:,} people, {place.extent}; {place.origin}" for name, place in results.maps.items()
    ]
    parts += ["\n".join(origins)] if origins else []
    if words := in_words(results):
        parts += [f"{'#' * (level + 1)} In words", _paragraph(SAID), "\n".join(f"* {line}" for line in words)]
    parts += [f"![{Path(picture).stem}]({picture})" for picture in pictures]
    shown = [*preset.told(results), *(by_map(results, preset.scores, preset.across) if tables else ())]
    parts += [table.markdown(level + 1) for table in shown]
    return "\n\n".join(parts) + "\n"


def _head(preset: Preset, results: Results) -> str:
    """What was measured, how often, and what the columns mean."""
    head = f"{preset.what[0].upper()}{preset.what[1:]}. {_drawn(preset, results)}; hazemap {__version__}."
    if any(score.startswith("mre") for score in preset.scores):
        head += """ Errors of counts are of 2,000 random rectangles (or squares of a part of the area), relative to the
        true count or to 20 people if that is more."""
    if {"l1", "mse", "kl"} & set(preset.scores):
        head += " Errors of the density are of the map that is shown, nothing below 0, of sum 1."
    if _nothing_drawn(results):
        return head
    return f"{head} The best of a column is bold; ± is half a 95 % interval of the mean."


def _drawn(preset: Preset, results: Results) -> str:
    """How often; a trial may be of several releases, or of none."""
    if _nothing_drawn(results):
        return "Nothing is drawn: all follows from numbers that are public"
    trials = results.frame.groupby(_labels(results), dropna=False)
    number = trials["draws"].sum() if "draws" in results.frame else trials.size()
    times = sorted({int(each) for each in number})
    return f"{_range(times)} for each {preset.noun}, method and ε, with fresh noise of the operating system's"


def _nothing_drawn(results: Results) -> bool:
    return "draws" in results.frame and not results.frame["draws"].any()


def _labels(results: Results) -> list[str]:
    names = [name for name in results.frame if name in ("map", "method", "spelled", "at", "epsilon")]
    return [*map(str, names), *(str(name) for name in results.frame if name.startswith("set_"))]


def _range(times: Sequence[int]) -> str:
    number = str(times[0]) if times[0] == times[-1] else f"{times[0]} to {times[-1]}"
    return f"{number} release{'s' if times[-1] > 1 else ''}"


def _paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120, break_on_hyphens=False)
