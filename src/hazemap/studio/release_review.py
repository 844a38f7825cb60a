"""What a release would cost and leave, the confirmation that is given once, and what published files show.

The key of a confirmation fits one order and one state of the data set's page in the ledger. After another charge, in
another tab or in a terminal, the key is old: the steward looks again before spending. Views of a published file are
post-processing.
"""

import hmac
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hazemap.errors import CapExceeded, InputError
from hazemap.execution.crash_recovery import Recoverable, recoverable
from hazemap.execution.output_lock import check_output_place
from hazemap.federated.service.access_tokens import fresh, same
from hazemap.federated.study.study_answers import StudyAnswers
from hazemap.privacy.budget import Budget, PrivacyAmount, PureDP
from hazemap.privacy.ledger import Ledger, data_set_name
from hazemap.privacy.ledger_extract import balance_facts, change_facts, charge_facts
from hazemap.privacy.ledger_records import LedgerBalance, LedgerChange
from hazemap.privacy.privacy_unit import FULL
from hazemap.privacy.statement_facts import Estimand
from hazemap.releases import MarkedTimedRelease, Release, Statistics, TimedRelease, open_release
from hazemap.releases.estimates import PeopleOutside
from hazemap.releases.page.map_payload import interval
from hazemap.sources.source import LocalFiles
from hazemap.specs.parsing import warning_about
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.studio.command_text import StewardCommands
from hazemap.studio.order_form import Order, release_of
from hazemap.studio.refusals import refused, saying
from hazemap.studio.stewards import Steward, free

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def ledger_view(who: Steward, dataset: str | None, commands: StewardCommands) -> dict[str, Any]:
    """All of it, or what is about one data set; nothing for one that the ledger does not know yet."""
    book, name = who.ledger, None if dataset is None else data_set_name(dataset)
    pages = [page for page in book.datasets() if name in (None, page.name)]
    known = name is None or bool(pages)
    waiting = recoverable(book) if known else []
    running = {each.record.charge.id: each.running for each in waiting}
    charges = [
        {
            **charge_facts(record, running),
            "said": str(record.charge.price),
            "file": None if record.file is None else who.root.name_of(record.file) or record.file,
            "here": record.file is not None and who.root.holds(record.file),
        }
        for record in (book.history(name) if known else [])
    ]
    return {
        "ledger": str(book.place),
        "pages": [{**balance_facts(page), "said": said(page)} for page in pages],
        "charges": charges,
        "changes": [_changed(change) for change in (book.changes(name) if known else [])],
        "recoverable": [
            _waiting(who, each, commands) for each in waiting if name in (None, each.record.charge.dataset)
        ],
        "same_as": commands.history(name if known else None).to_json(),
    }


def to_recover(who: Steward, charge: int) -> Recoverable:
    """What the studio can recover of a charge; `InputError` where it cannot."""
    for each in recoverable(who.ledger):
        if each.record.charge.id == charge:
            if not can_recover(who, each):
                raise refused(InputError, "chargeElsewhere", charge=charge)
            return each
    raise refused(InputError, "nothingToRecover", charge=charge)


def can_recover(who: Steward, each: Recoverable) -> bool:
    """Whether the studio may: files inside the steward's folder, which nobody makes now."""
    if each.running or each.fault or each.output is None:
        return False
    table_there = each.ended or each.source is None
    if isinstance(each.source, LocalFiles):
        table_there |= who.root.holds(each.source.path)
    return table_there and who.root.holds(each.output)


def said(page: LedgerBalance) -> dict[str, str | None]:
    """A page in words: what it may spend, has spent and has left, and whom it protects."""
    amounts = {"cap": page.cap, "spent": page.spent, "left": page.remaining, "protects": page.protects}
    return {name: None if value is None else str(value) for name, value in amounts.items()}


def _changed(change: LedgerChange) -> dict[str, Any]:
    words = {"old": None if change.old is None else str(change.old), "new": str(change.new)}
    return {**change_facts(change), "said": words}


def _waiting(who: Steward, each: Recoverable, commands: StewardCommands) -> dict[str, Any]:
    charge = each.record.charge
    return {
        "charge": charge.id,
        "dataset": charge.dataset,
        "what": charge.what,
        "price": str(charge.price),
        "state": each.state,
        "running": each.running,
        "free": each.ended,
        "possible": can_recover(who, each),
        "rest": each.rest and str(each.rest),
        "same_as": commands.recover(charge.id, go_on=each.rest is not None).to_json(),
    }


@dataclass(frozen=True)
class ReleaseReview:
    """An order that could be carried out now, what it costs whom, and the key to do it."""

    spec: ReleaseSpec | StatisticsSpec
    dataset: str
    page: LedgerBalance | None
    left: PrivacyAmount | None
    key: str

    def only_for(self, key: str) -> None:
        """`InputError` where a yes was given to something else."""
        if not same(key, self.key):
            raise refused(InputError, "ledgerChanged")

    def to_json(self) -> dict[str, Any]:
        """For the browser."""
        return {
            "dataset": self.dataset,
            "price": str(self.spec.budget),
            "page": self.page and balance_facts(self.page),
            "said": None if self.page is None else said(self.page),
            "left_then": self.left and str(self.left),
            "caution": warning_about(self.spec.budget),
            "key": self.key,
        }


@dataclass(frozen=True)
class SpendingKeys:
    """Makes the keys of orders; those of another process fit nothing."""

    _secret: str = field(default_factory=fresh, repr=False)

    def reviewed(self, steward: Steward, order: Order) -> ReleaseReview:
        """Look an order over without opening its table. Raises what the release would raise before it begins.

        That is `InputError` for what can be mended, and `CapExceeded` where the data set may not pay.
        """
        spec = release_of(order, steward.root)
        free(goal := steward.root.inside(str(order["output"])))
        check_output_place(goal, spec)
        name = data_set_name(spec.dataset)
        page = steward.ledger.status(name, FULL)
        try:
            steward.ledger.check(spec.dataset, spec.budget, FULL)
        except CapExceeded as error:
            if page is not None and page.remaining is not None:
                price = {"dataset": name, "left": page.remaining, "cap": page.cap, "price": spec.budget}
                saying(error, "overCap", price, more=True)
            raise
        left = None if page is None or page.remaining is None else _left(page.remaining, spec.budget)
        return ReleaseReview(spec, name, page, left, self._key(steward, order, name))

    def _key(self, steward: Steward, order: Order, dataset: str) -> str:
        state = json.dumps([steward.name, sorted(order.items()), _state(steward.ledger, dataset)])
        return hmac.new(self._secret.encode(), state.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def _state(ledger: Ledger, dataset: str) -> list[Any]:
    """What changes with every charge of a data set and with every change of a cap."""
    return [[status.model, status.charges, str(status.cap)] for status in ledger.datasets() if status.name == dataset]


def _left(remaining: PrivacyAmount, price: Budget) -> PrivacyAmount:
    """What is left after a charge that there is room for."""
    cost = price.epsilon if remaining.measure == "ε" and isinstance(price, PureDP) else price.rho
    return PrivacyAmount(remaining.measure, max(remaining.value - cost, Fraction(0)))


EXPORTS = (".geojson", ".gpkg", ".fgb", ".pmtiles", ".csv", ".tif")
LARGEST = 256 << 20
"""Bytes of the largest file that a browser is given; larger ones are for the command line."""

_drawing = threading.Lock()
"""One picture at a time: matplotlib shares fonts and texts between threads."""


def opened(path: Path) -> "Release | Statistics":
    """The map or the statistics in a file."""
    found = open_release(path)
    if isinstance(found, StudyAnswers):
        raise refused(InputError, "answersAreNoMap", name=path.name)
    return found


def facts(path: Path) -> dict[str, Any]:
    """What is said of a release beside its picture."""
    release = opened(path)
    statement = release.statement
    about: dict[str, Any] = {
        "kind": type(release).__name__,
        "dataset": statement.dataset,
        "price": str(statement.budget),
        "method": statement.method,
        "line": statement.line(),
        "statement": statement.text(),
        "cells": release.ground.places.size,
        "slots": list(release.slots) if isinstance(release, TimedRelease | MarkedTimedRelease) else [],
        "exports": _exports(release, path),
        "total": None,
        "estimand": None,
        "outside": None,
    }
    if isinstance(release, Release):
        total = release.total()
        about |= {
            "total": interval(total),
            "estimand": Estimand.of(statement.bounding)._asdict(),
            "outside": str(PeopleOutside.of(release)),
        }
    return about


def picture(path: Path, width: float = 9.0) -> bytes:
    """A release as a PNG, `width` inches wide."""
    return _drawn(lambda: opened(path).plot(width=width))


def page(path: Path) -> bytes:
    """A release as one page for a browser, which reaches nothing else; of marks in slots, that of all slots."""
    release = opened(path)
    if isinstance(release, MarkedTimedRelease):
        return release.during(range(len(release.slots))).to_html(f"{path.name}, all slots together").encode()
    return release.to_html(path.name).encode()


def difference(before: Path, after: Path) -> tuple[bytes, dict[str, int]]:
    """What changed from one map to another as a page, and in how many of how many cells by more than noise explains."""
    one, other = _map(before), _map(after)
    found = other.since(one)
    summary = {"changed": int(found.changed.sum()), "cells": found.cells.size}
    return found.to_html(f"{before.name} → {after.name}").encode(), summary


def side_by_side(paths: tuple[Path, Path], width: float = 11.0) -> bytes:
    """Two maps as a PNG, in one scale and one view."""
    from hazemap.draw import draw_side_by_side

    maps = [(path.name, _map(path)) for path in paths]
    shown = [(name, release.map) for name, release in maps]
    caption = " · ".join(f"{name}: {release.statement.line()}" for name, release in maps)
    return _drawn(lambda: draw_side_by_side(shown, caption=caption, width=width))


def _map(path: Path) -> Release:
    release = opened(path)
    if not isinstance(release, Release):
        raise refused(InputError, "statisticsAreNoMap", name=path.name)
    return release


def exported(path: Path, ending: str) -> bytes:
    """The numbers of a release as another kind of file; or, with its own ending, the file as it was published."""
    if ending == path.suffix.lower():
        opened(path)
        return _content(path)
    if ending not in EXPORTS:
        raise InputError(f"a release is exported as {', '.join(EXPORTS)}; found {ending!r:.20}")
    with TemporaryDirectory(prefix="hazemap-") as folder:
        goal = Path(folder) / f"{path.stem}{ending}"
        opened(path).export(goal)
        return _content(goal)


def _exports(release: "Release | Statistics", path: Path) -> list[str]:
    """The endings that it can be saved with."""
    of_ground = release.crs is None
    fitting = [ending for ending in EXPORTS if not (of_ground and ending in (".pmtiles", ".tif"))]
    return [path.suffix.lower(), *(ending for ending in fitting if ending != path.suffix.lower())]


def _content(path: Path) -> bytes:
    if path.stat().st_size > LARGEST:
        raise refused(InputError, "tooLargeToSave", name=path.name, most=LARGEST >> 20)
    return path.read_bytes()


def _drawn(draw: "Callable[[], Figure]") -> bytes:
    from hazemap.draw import encode

    with _drawing:
        return encode(draw())
