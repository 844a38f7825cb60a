"""`hazemap inspect` and `hazemap statement`: what a release promises, what was asked for it, and whether they fit."""

from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver, progress
from hazemap.cli.shared_options import AsJson, Force, ReleaseFile
from hazemap.errors import FileError, InputError, TranscriptMismatch

if TYPE_CHECKING:
    from hazemap.federated.study.study_answers import StudyAnswers
    from hazemap.queries.algorithm_session import Transcript
    from hazemap.queries.noisy_queries import Prices, Question
    from hazemap.releases import Release, Statistics
    from hazemap.tables.contribution_bounding import Bounding, OneReport


def inspect(
    file: ReleaseFile,
    replay: Annotated[
        bool, typer.Option("--replay", help="Make the map again from the stored answers, and compare.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check every byte of a release, and show its privacy statement and a summary of its transcript."""
    from rich.table import Table

    from hazemap.federated.study.study_answers import StudyAnswers
    from hazemap.releases import MarkedTimedRelease, Release, TimedRelease, check_columns, check_whole, open_release
    from hazemap.releases.estimates import PeopleOutside

    with progress() as tell:
        release = open_release(file)
        tell("checking the file", None)
        check_whole(file)
        if isinstance(release, StudyAnswers):
            _answers(release, file, replay, as_json)
            return
        if replay:
            tell("replaying", None)
            _replayed(release)
            check_columns(release, file)
    queries = _queries(release)
    table = Table("query", "asks for", "numbers", "share", "price", "standard error", box=None)
    for number, query in enumerate(queries, 1):
        share, error = f"{100 * query['share']:.4g} %", f"{query['stddev']:.4g}"
        table.add_row(str(number), query["asks"], f"{query['numbers']:,}", share, query["price"], error)
    left_out = PeopleOutside.of(release).to_json() if isinstance(release, Release) else {}
    facts = {
        "file": str(file),
        **({"nowhere": left_out["nowhere"]} if left_out else {}),
        "cells": release.ground.places.size,
        **({"slots": list(release.slots)} if isinstance(release, TimedRelease | MarkedTimedRelease) else {}),
        "statement": release.statement.to_json(),
        "queries": queries,
        "replayed": replay,
    }
    again = ["Replayed: the stored answers give exactly these numbers."] if replay else []
    outside = [left_out["said"], ""] if left_out else []
    deliver(facts, as_json, release.statement.text(), "", *outside, table, *again)


def _answers(made: "StudyAnswers", file: ReleaseFile, replay: bool, as_json: bool) -> None:
    """The statement of a study's answers, and what was asked at which price."""
    if replay:
        raise InputError(f"{file} holds {made.HOLDS}: they are the answers themselves, and nothing is replayed")
    facts = {"file": str(file), "statement": made.statement.to_json(), "rounds": made.prices()}
    deliver(facts, as_json, made.statement.text(), "", *made.summary()[1:])


def _queries(release: "Release | Statistics") -> list[dict[str, Any]]:
    rule = release.statement.bounding
    return [
        {
            "asks": type(_asked(question)).__name__,
            "numbers": len(answer.sums),
            "share": float(question.share),
            "price": str(release.statement.budget.part(question.share)),
            "stddev": float(answer.stddev.max()) / _unit(_asked(question), rule),
        }
        for question, answer in release.transcript
    ]


def _unit(asked: object, rule: "Bounding | OneReport") -> int:
    """The unit of one count in the numbers of a question."""
    own: int | None = getattr(asked, "unit", None)
    return own or int(getattr(asked, "bounding", rule).unit)


def _asked(question: "Question") -> object:
    """A description of a question; a tree that grows describes itself."""
    from hazemap.queries.noisy_queries import Growth, Query

    if isinstance(question, Growth):
        return question
    return question.encoder if isinstance(question, Query) else question.scores


def _as_noisy_as_paid(transcript: "Transcript", paid: "Prices") -> None:
    """Raise `TranscriptMismatch` for an answer whose standard error is not what its price buys."""
    from hazemap.federated.server.privacy_statement import claimable
    from hazemap.queries.noisy_queries import Query

    for number, (question, answer) in enumerate(transcript, 1):
        if isinstance(question, Query):
            errors = claimable(paid, question, answer)
            if not errors.fits(answer.stddev):
                bought = float(errors.least.min())
                raise TranscriptMismatch(
                    f"answer {number} claims a standard error of {float(answer.stddev.min()):.4g} in what it counts, "
                    f"where its price buys one of {bought:.4g}: the file was changed after it was made"
                )


def _replayed(release: "Release | Statistics") -> None:
    """Raise `TranscriptMismatch` unless the stored answers give the stored numbers."""
    import numpy as np

    from hazemap.federated.server.privacy_statement import prices
    from hazemap.releases import Release
    from hazemap.trust.curator import CentralPrices

    paid = prices(release.statement) or CentralPrices(release.statement.budget)
    _as_noisy_as_paid(release.transcript, paid)
    if not isinstance(release, Release):
        release.replay(paid)  # its numbers are made from the answers whenever it is opened
        return
    again, stored = release.replay(paid).map, release.map
    order, wanted = np.argsort(again.cells.cells), np.argsort(stored.cells.cells)
    same = np.array_equal(again.cells.cells[order], stored.cells.cells[wanted]) and all(
        np.allclose(getattr(again, name)[order], getattr(stored, name)[wanted], rtol=1e-9, atol=1e-9)
        for name in ("values", "unbiased", "stddev")
    )
    if not same:
        raise TranscriptMismatch(
            "the stored answers give other numbers than the file holds: it was changed after it was made, "
            "or made by another version of hazemap"
        )


def statement(
    file: ReleaseFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write a page (.html), or the statement's words alone (.txt).")
    ] = None,
    language: Annotated[str, typer.Option(help="Language of the explanations: en, de, fr or es.")] = "en",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Check every byte of a release, and show its privacy statement or write it as a page to print.

    The page is one HTML file without a script. It explains each part, in one of four languages.
    """
    from hazemap.files.atomic_write import write_whole
    from hazemap.releases import check_whole, open_release
    from hazemap.releases.statement_page.statement_page import statement_page

    if output is not None and output.suffix.lower() not in (".html", ".txt"):
        raise FileError(f"the page of a statement ends in .html, its words alone in .txt; found {str(output)!r}")
    if output is not None and output.exists() and not force:
        raise FileError(f"the file {output} exists: choose another name, or replace it with --force")
    with progress() as tell:
        made = open_release(file)
        tell("checking the file", None)
        check_whole(file)
        with file.open("rb") as content:
            digest = file_digest(content, "sha256").hexdigest()
    facts = {"release": str(file), "sha256": digest, "statement": made.statement.to_json()}
    page = statement_page(made.statement, file.name, digest, language)
    if output is None:
        deliver(facts, as_json, made.statement.text())
        return
    write_whole(output, (page if output.suffix.lower() == ".html" else made.statement.text() + "\n").encode())
    deliver({"file": str(output), **facts}, as_json, str(output))
