"""The statement as one HTML file: no script, nothing from elsewhere, made to be printed.

The statement's own words stand as they are in the file, in English. Beside each part an explanation in the reader's
language says what it means and what to ask; it is no part of the promise.
"""

import html
import math
import shlex
import unicodedata
from collections.abc import Iterable
from fractions import Fraction

from hazemap.errors import InputError
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.privacy.statement import Statement
from hazemap.privacy.statement_facts import Randomness
from hazemap.releases.statement_page.explanations import LANGUAGES, Explanations

MOST_TOLD = 1000
"""Times: a promise that allows more is not told as a number."""

STYLE = """
body { font: 11pt/1.45 Georgia, serif; color: #22252b; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.15rem; margin-top: 1.8rem; }
p.line { border-left: 4px solid #8d1d4e; padding-left: .8rem; font-size: 1.05rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem .45rem 0; border-top: 1px solid #c9ccd1; }
th { width: 7.5rem; font-weight: 600; } td p { margin: 0; } td p.why { color: #555a63; font-size: .92em; }
code { font-family: ui-monospace, monospace; font-size: .85em; overflow-wrap: anywhere; }
@media print { body { margin: 0; max-width: none; } tr, p { break-inside: avoid; } @page { margin: 2cm; } }
"""


def statement_page(statement: Statement, file: str, sha256: str, language: str = "en") -> str:
    """A page about the release in a file of this name and digest; `InputError` for a language that is not there.

    >>> from hazemap.privacy.statement import A_PERSON
    >>> from hazemap.tables.contribution_bounding import AtMostRows
    >>> made = Statement(
    ...     "nyc", A_PERSON, "one person added or removed", PureDP(1), AtMostRows(1), "curator",
    ...     (), "discrete Laplace", (), (), "flat", "2026-01-02", "0.1.0",
    ... )
    >>> "2.72 times" in statement_page(made, "map.parquet", "0" * 64)
    True
    """
    if language not in LANGUAGES:
        raise InputError(f"the page of a statement is in {', '.join(LANGUAGES)}; found {language!r}")
    words = LANGUAGES[language]
    rows = "\n".join(
        f'<tr><th scope="row">{words.names[name]}</th>'
        f'<td>{_english(items)}<p class="why">{words.why[name]}</p></td></tr>'
        for name, items in statement.parts()
    )
    title = f"{words.title}: {_plain(statement.dataset)}"
    return f"""<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{title}</h1>
<p class="line" lang="en">{_plain(statement.line())}</p>
<p>{words.about}</p>
<h2>{words.meaning}</h2>
<p>{_promise(statement, words)}</p>
<p>{words.not_told}</p>
<h2>{words.whole}</h2>
<table>
{rows}
</table>
<h2>{words.check}</h2>
<p>{words.how}</p>
<p><code>hazemap inspect {_plain(shlex.quote(file))} --replay</code></p>
<p>{words.file} <bdi>{_plain(file)}</bdi><br>SHA-256 <code>{sha256}</code></p>
</body>
</html>
"""


def _promise(statement: Statement, words: Explanations) -> str:
    """What the budget allows in odds: rounded up, so that it never promises more."""
    budget = statement.budget
    if statement.circumstances.randomness is Randomness.TEST_STREAM:
        return words.void
    if isinstance(budget, PureDP):
        return words.pure.format(times=_times(budget.epsilon, words))
    if isinstance(budget, ApproxDP):
        return words.approximate.format(times=_times(budget.epsilon, words), delta=_small(budget.delta))
    epsilon, delta = statement.implied[0]
    return words.approximate.format(times=_times(epsilon, words), delta=_small(delta))


def _times(epsilon: Fraction, words: Explanations) -> str:
    """e^ε, rounded up to three digits: 1.106 for ε = 0.1; in words where it says next to nothing."""
    if epsilon > math.log(MOST_TOLD):
        return words.nothing
    odds = math.exp(float(epsilon)) * (1 + 1e-12)
    digits = 3 if odds < 1.2 else 2 if odds < 10 else 0
    return f"{math.ceil(odds * 10**digits) / 10**digits:.{digits}f}".replace(".", words.point)


def _small(delta: Fraction) -> str:
    return f"{float(delta):.3g}"


def _english(items: Iterable[str]) -> str:
    return "".join(f'<p lang="en">{_plain(item)}</p>' for item in items)


def _plain(text: str) -> str:
    """A text of the file as HTML: no markup comes out of it, and nothing that turns the order of letters about."""
    hidden = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    return html.escape("".join("\ufffd" if unicodedata.category(each) in hidden else each for each in text))
