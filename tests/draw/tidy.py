"""What every picture keeps to: words on the page, none over another, none on a map."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def assert_tidy(figure: Figure) -> None:
    """All words lie on the page, none on another or, but for the names of places, on a panel."""
    figure.draw_without_rendering()
    renderer = FigureCanvasAgg(figure).get_renderer()
    texts = list(figure.texts)
    for axes in figure.axes:
        texts += [*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels()]
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in texts if t.get_text()]
    places = {t.get_text() for t in texts if t.get_gid() == "place"}
    for i, (text, box) in enumerate(boxes):
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= figure.bbox.width, text
        assert box.y1 <= figure.bbox.height, text
        for other, beside in boxes[:i]:
            assert not box.overlaps(beside), (text, other)
    for axes in figure.axes:
        if "legend" not in str(axes.get_label()):
            frame = axes.get_window_extent()
            for text, box in boxes:
                assert text in places or not box.overlaps(frame), (text, axes.get_label())


def filled(figure: Figure) -> float:
    """The part of the page, between the first and the last thing on it, that something stands on."""
    import numpy as np

    figure.draw_without_rendering()
    renderer = FigureCanvasAgg(figure).get_renderer()
    page = np.zeros((100, 100), dtype=bool)
    boxes = [axes.get_window_extent() for axes in figure.axes]
    boxes += [text.get_window_extent(renderer) for text in figure.texts]
    for box in boxes:
        left, right = (100 * edge / figure.bbox.width for edge in (box.x0, box.x1))
        low, high = (100 * edge / figure.bbox.height for edge in (box.y0, box.y1))
        page[max(int(low) - 3, 0) : int(high) + 4, max(int(left) - 3, 0) : int(right) + 4] = True
    return float(page.mean())
