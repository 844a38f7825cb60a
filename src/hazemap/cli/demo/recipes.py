"""`hazemap demo recipes`: words and pairs of words that people type, asked of devices on this machine in two rounds."""

import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver, note, progress
from hazemap.cli.demo.processes import (
    ANALYSIS,
    PURPOSE,
    STREAM,
    WORDS,
    chat_of,
    free_port,
    made_up,
    pairs,
    policy,
    running,
    wait_for_devices,
)
from hazemap.cli.shared_options import AsJson
from hazemap.errors import InputError

if TYPE_CHECKING:
    from hazemap.federated.recipes.policy_document import SignedPolicy
    from hazemap.federated.recipes.recipe import Recipe
    from hazemap.federated.server.study_spec import StudySpec

CHAT = Path("../shared/data/irc_ubuntu_text_to_2013.parquet")
NAME = "demo"
LOCAL, DELTA = Fraction(6), Fraction(1, 10**6)
RULES = "[budget]\ncampaign = 4\nperiod = 4\n[cohort]\ncorrupt = 0.05\n"
"""The demo's people allow more than people do who say nothing, and assume that 1 in 20 works with the server."""


def recipes(
    folder: Annotated[Path, typer.Option(help="Folder of the demo, new or empty.")] = Path("demo-recipes"),
    people: Annotated[
        int, typer.Option(metavar="N", min=200, max=10_000, help="Number of people with a device.")
    ] = 1500,
    chat: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help=f"Parquet file with columns user, ts and text. Default: {CHAT} if it exists, else made-up chat.",
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option(metavar="N", min=1, max=16, help="Number of processes that the devices share.")
    ] = 2,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the made-up chat.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Start a server and many devices with chat, ask which words and pairs are frequent, and show a device's account.

    The answers are sums of reports that each device has randomised, over HTTP on this machine alone. The demo has a
    ledger of its own: yours is not touched.
    """
    from hazemap.cli.demo.map import files_in
    from hazemap.codec import dumps
    from hazemap.federated.recipes.policy_document import SignedPolicy
    from hazemap.federated.service.operator_line import operator
    from hazemap.federated.study.searches import FrequentSequences
    from hazemap.federated.study.study import Study
    from hazemap.privacy.signing_identities import Identity

    if files_in(folder):
        raise InputError(f"the folder {folder} has files of an earlier run: remove it, or name another with --folder")
    begun = time.monotonic()
    source = chat or (CHAT if CHAT.exists() else None)
    server, data = f"http://127.0.0.1:{free_port()}", folder / "server"
    folder.mkdir(parents=True, exist_ok=True)
    with progress() as tell:
        tell("devices keep what their people typed", None)
        lines = made_up(people, seed) if source is None else chat_of(source, people)
        signed = SignedPolicy.sign(policy(str(LOCAL)), Identity.create())
        stores = _stores(folder, [pairs(own) for own in lines], signed, processes)
    rules = folder / "rules.toml"
    rules.write_text(RULES)
    spec, words = _order(people)
    devices = [("--many", str(count), "--store", str(store), "--policy", str(rules)) for store, count in stores.items()]
    token = data / "operator.token"
    with running(folder, server, data, devices) as alive, operator(server, token, None) as line:
        wait_for_devices(line, people, alive)
        line.post("/v1/policies", signed.to_json().encode())
        line.post("/v1/studies", dumps(spec).encode())
        study = Study(server, NAME, token=token.read_text())
        with progress() as tell:
            tell("two rounds: words, and then pairs that begin with a frequent one", None)
            found = study.run(FrequentSequences(words, WORDS, (Fraction(1, 2), Fraction(1, 2)), Fraction(1, 10)))
        left, rounds = study.left, line.get(f"/v1/studies/{NAME}")["rounds"]
        log = line.content("/v1/recipes").decode()
    (folder / "recipes.jsonl").write_text(log)
    tables, own_log, budgets = _device(next(iter(stores)), rules)
    seconds = time.monotonic() - begun
    items = found.top(30)
    low, high = items.interval(0.95)
    spent = [f"{float(Fraction(each['epsilon'])):.3g}" for each in rounds]
    facts = {
        "people": people,
        "chat": "made up" if source is None else str(source),
        "rounds": [{key: each[key] for key in ("round", "epsilon", "delta", "survivors", "bytes")} for each in rounds],
        "found": [
            {"words": word, "count": float(count), "low": float(one), "high": float(two)}
            for word, count, one, two in zip(items.items, items.count, low, high, strict=True)
        ],
        "left": {"epsilon": str(left.epsilon), "delta": str(left.delta), "reports": left.reports},
        "budgets": budgets,
        "seconds": seconds,
    }
    deliver(
        facts,
        as_json,
        _words(items.items, items.count, items.stddev, low, high),
        f"These are frequent sequences in what {people:,} people typed "
        f"({'made up by a grammar' if source is None else source.name}), each with an interval that holds in 95 %. A "
        "person reported one of their pairs in each round.",
        f"So few people hide little: only a large ε lets anything be seen, here ε₀ = {float(words.local_epsilon):g} a "
        f"report and ε = {' and '.join(spent)} for the sums of the rounds. Among 100,000 people ε = 0.06 a round shows "
        "more.",
        f"Left of the study: {left}",
        "",
        "The budgets of one device (tables 1a and 1b of McMillan et al. 2022):",
        tables,
        "",
        "And its log:",
        *own_log,
        "",
        f"{len(rounds)} rounds over HTTP, {seconds:.0f} s. What was sent to everybody: {folder / 'recipes.jsonl'}",
    )
    if not as_json:
        note(f"Logs of server and devices: {folder}/*.log")


def _order(people: int) -> "tuple[StudySpec, Recipe]":
    """The study, and the recipe of its first round, at the price of the sum that can be opened, rounded up."""
    from hazemap.federated.recipes.features import Feature, PrefixTree
    from hazemap.federated.recipes.recipe import Recipe
    from hazemap.federated.recipes.sql_query import SqlQuery
    from hazemap.federated.server.campaign_spec import Deadlines
    from hazemap.federated.server.study_spec import StudySpec
    from hazemap.federated.trust.cohort_assumptions import Cohort
    from hazemap.federated.trust.recipe_terms import price_of_sum
    from hazemap.privacy.local_randomisers import Asymmetric

    cohort = Cohort(people, people, Fraction(1, 20), Fraction(1, 20))
    honest = cohort.honest(people)
    local, price = LOCAL, Fraction(5)
    while price > 2:  # fewer people hide less: their reports have to hide more by themselves
        price = Fraction(-(-price_of_sum(Asymmetric(local), honest, DELTA).epsilon // Fraction(1, 100)), 100)
        local -= Fraction(price > 2, 4)
    spec = StudySpec(NAME, ANALYSIS, 2 * price, 2 * DELTA, 2, cohort, Deadlines.all(240.0, quiet=20.0))
    recipe = Recipe(
        "words",
        1,
        ANALYSIS,
        PURPOSE,
        SqlQuery(f"SELECT ngram FROM {STREAM}"),  # noqa: S608 - a name of ours
        (),
        (Feature("words", PrefixTree(("",), WORDS)),),
        local,
        min(2 * price, local),
        2 * DELTA,
        cohort.survivors(people),
    )
    return spec, recipe


def _stores(folder: Path, events: list[list[str]], signed: "SignedPolicy", processes: int) -> dict[Path, int]:
    """The devices dealt out to the processes, with the policy that they ship with and their people's events."""
    from datetime import UTC, datetime

    from hazemap.cli.federated.device_options import StoreOptions
    from hazemap.federated.device import enrolment
    from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
    from hazemap.federated.device.store.event_store import Event, store_events

    stores: dict[Path, int] = {}
    for number in range(processes):
        path, own = folder / f"devices-{number}.sqlite", events[number::processes]
        with StoreOptions(store=path).open(create=True) as file:
            accepted = ShippedPolicies(file).accept(signed, signed.key, datetime.now(UTC)).policy
            stream = accepted.stream(STREAM)
            devices = enrolment.add(file, len(own))
            if stream is None:
                raise InputError(f"the demo's policy lists no stream {STREAM}")
            rows: dict[int, list[Event]] = {
                device: [(ngram,) for ngram in typed] for device, typed in zip(devices, own, strict=True)
            }
            store_events(file, stream, rows, time.time())
        stores[path] = len(own)
    return stores


def _device(store: Path, rules: Path) -> tuple[Any, list[str], list[dict[str, Any]]]:
    """The budgets and the log of the first device of a store: for people, and the budgets for machines."""
    from datetime import UTC, datetime

    from hazemap.cli.federated.device import budget_table
    from hazemap.cli.federated.device_options import StoreOptions
    from hazemap.federated.device import enrolment
    from hazemap.federated.device.account.account_clock import AccountClock
    from hazemap.federated.device.account.activity_log import ActivityLog
    from hazemap.federated.device.account.recipe_account import budget_lines

    options = StoreOptions(store=store)
    with options.open() as file:
        device = enrolment.devices(file)[0]
        now = AccountClock(file).reading(datetime.now(UTC)).now
        lines = list(budget_lines(file, device, options.allowed(file, rules), now))
        entries = [str(each) for each in ActivityLog(file, device).entries()]
    return budget_table(lines), entries, [each.to_json() for each in lines]


def _words(items: Any, counts: Any, stddev: Any, low: Any, high: Any) -> Any:
    """The result as a table for people."""
    from rich.table import Table

    table = Table("words", "people", "standard error", "low", "high", box=None)
    for item, *numbers in zip(items, counts, stddev, low, high, strict=True):
        table.add_row(item, *(f"{number:,.0f}" for number in numbers))
    return table
