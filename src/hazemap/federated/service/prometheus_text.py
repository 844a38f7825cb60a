"""Prometheus' text format 0.0.4: lines of counters, gauges and histograms whose names begin with `hazemap_`."""

import re
from collections.abc import Iterable, Mapping

from hazemap.federated.service.duration_histogram import DurationHistogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def series(name: str, kind: str, about: str, rows: Iterable[tuple[str, float]]) -> list[str]:
    """One counter or gauge; each row has its `labels`.

    >>> series("polls_total", "counter", "Polls.", [(labels(device="new"), 2)])[-1]
    'hazemap_polls_total{device="new"} 2'
    """
    head = [f"# HELP hazemap_{name} {about}", f"# TYPE hazemap_{name} {kind}"]
    return [*head, *(f"hazemap_{name}{own} {value:{'g' if value < 1e6 else '.0f'}}" for own, value in rows)]


_SAMPLE = re.compile(r"hazemap_([a-z0-9_]{1,80})(?:\{([^{}\n]{0,500})\})? ([0-9.e+-]{1,40})")
_LABEL = re.compile(r'([a-z_]{1,40})="([^"\\]{0,200})"')


def samples(text: str) -> list[tuple[str, dict[str, str], float]]:
    """The samples of such a text: their names, labels and numbers; other lines, and what is no number, are left out.

    >>> samples('hazemap_batches_total{task="abc"} 2')
    [('batches_total', {'task': 'abc'}, 2.0)]
    """
    found = []
    for line in text.splitlines():
        if sample := _SAMPLE.fullmatch(line):
            try:
                found.append((sample[1], dict(_LABEL.findall(sample[2] or "")), float(sample[3])))
            except ValueError:
                continue
    return found


def histograms(name: str, about: str, rows: Iterable[tuple[Mapping[str, str], DurationHistogram]]) -> list[str]:
    """Histograms of one name, each with its labels."""
    lines = series(name, "histogram", about, [])
    for own, times in rows:
        below = 0
        for bound, number in zip((*times.bounds, float("inf")), list(times.buckets), strict=True):
            below += number
            end = f"{bound:g}".replace("inf", "+Inf")
            lines.append(f"hazemap_{name}_bucket{labels(**own, le=end)} {below}")
        lines += [f"hazemap_{name}_sum{labels(**own)} {times.total:g}", f"hazemap_{name}_count{labels(**own)} {below}"]
    return lines


def labels(**named: str) -> str:
    """Labels in braces, or nothing for none; their values are ours, and plain words."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in named.items()) + "}" if named else ""
