"""A comparison's page as one HTML file that holds its pictures, for people who read no Markdown."""

import re
from base64 import b64encode
from html import escape
from itertools import groupby
from pathlib import Path

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
    """The Markdown of `report_page.page` as HTML without a script; pictures are read from the folder into it.

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
