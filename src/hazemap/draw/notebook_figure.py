"""A figure that a notebook shows as it is, without anybody having named a backend of matplotlib."""

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """Jupyter, VS Code and Colab look for `_repr_png_`; matplotlib's own figures have none before `%matplotlib`.

    `encoded` makes a PNG of it.
    """

    def __init__(self, encoded: "Callable[[Figure], bytes]", **options: Any) -> None:
        super().__init__(**options)
        self.encoded = encoded

    def _repr_png_(self) -> bytes:
        return self.encoded(self)
