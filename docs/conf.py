"""How Sphinx builds these pages; nothing is fetched, and no notebook is run, while it does."""

import re
from typing import Any

from hazemap import __version__

project, author, copyright = "hazemap", "the hazemap authors", "the hazemap authors"  # noqa: A001 - Sphinx's name
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc"]
included = [  # in other pages
    "results/accuracy.md",
    "results/auto.md",
    "results/coverage.md",
    "results/federated.md",
    "results/total.md",
]
exclude_patterns = ["_build", *included]
nb_execution_mode = "off"
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]  # the glossary
suppress_warnings = ["config.cache"]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = f"hazemap {__version__}"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}


def plain(app: Any, what: str, name: str, object_: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    """Docstrings are plain text with `code`: what reStructuredText would read as markup is a letter."""
    result, example = [], False
    for line in lines:
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if example:
            result.append(line)
            continue
        pieces = re.split(r"(`[^`]*`)", line)
        text = (
            f"`{piece}`" if piece.startswith("`") else re.sub(r"(?<!^)([*|\\]|_\b)", r"\\\1", piece) for piece in pieces
        )
        result.append("".join(text))
    lines[:] = result


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", plain)
