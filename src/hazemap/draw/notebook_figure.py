"""A figure that a notebook shows as it is, without anybody having named a backend of matplotlib."""

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """Jupyter, VS Code and Colab look for `_repr_png_`; matplotlib's own figures have none before `%matplotlib`."""

    def _repr_png_(self) -> bytes:
        from hazemap.draw.figure_layout import encode

        return encode(self)
