"""`hazemap campaign`: order a map from people's devices, watch it being made, fetch it."""

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hazemap.cli.console_output import deliver, note, progress, several
from hazemap.cli.federated.serving_options import LOCAL, CoordinatorOptions
from hazemap.cli.federated.trust_options import LEVELS, PEOPLE, TIME, TRUST, CohortOptions
from hazemap.cli.shared_options import AsJson, SpecFile, options, specified
from hazemap.errors import FileError
from hazemap.specs.spec_fields import RELEASE

if TYPE_CHECKING:
    from hazemap.federated.server.campaign_spec import Campaign
    from hazemap.federated.service.operator_line import Operator


class _CreateIsStart(TyperGroup):
    """`hazemap campaign create` is `hazemap campaign start`."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return super().get_command(ctx, "start" if cmd_name == "create" else cmd_name)


app = typer.Typer(
    name="campaign",
    cls=_CreateIsStart,
    help="Order a map from people's devices, watch its progress and fetch it.",
    epilog="Example: [bold]hazemap campaign watch commuters --token-file operator.token[/bold]",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the campaign.")]
ORDER, MAP = "The order", "The map"
MAP_FIELDS = (
    *("epsilon", "delta", "dataset", "box", "cells", "method", "prior", "prior_is_public", "bounding"),
    *("slots", "time_zone", "since", "until", "mark", "goal"),
)
"""Fields of a map's specification that devices can answer."""


@dataclass(frozen=True, kw_only=True)
class CampaignOptions(CohortOptions):
    """Options of `hazemap campaign start` besides those of its map: fields of `CampaignOrder`."""

    numbers: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=500,
            rich_help_panel=MAP,
            help="Most numbers that the method may ask of a device in all rounds together.",
        ),
    ] = 20_000
    sampling: Annotated[
        str | None,
        typer.Option(
            metavar="one|fresh",
            rich_help_panel=PEOPLE,
            help="Ask the same people in all rounds (one; the default with --slots), or others in each (fresh).",
        ),
    ] = None
    mode: Annotated[
        str,
        typer.Option(
            metavar="semi-honest|malicious",
            rich_help_panel=PEOPLE,
            help="Whether the server follows the protocol (semi-honest) or may deviate from it (malicious).",
        ),
    ] = "malicious"
    local_epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=PEOPLE,
            help="Let people randomise their own reports with at most this ε, instead of adding shares of noise.",
        ),
    ] = None
    trust: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=TRUST,
            help="How reports become a map: secure-sum, local, two-servers, one-report or shuffled.",
        ),
    ] = "secure-sum"
    shuffler: Annotated[str | None, typer.Option(metavar="URL", rich_help_panel=TRUST, help="URL of the shuffler.")] = (
        None
    )
    shuffler_key: Annotated[
        str | None,
        typer.Option(metavar="HEX", rich_help_panel=TRUST, help="For shuffled: key that the shuffler prints."),
    ] = None
    levels: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=TRUST,
            help=f"For one-report: number of levels that a report answers. Default: {LEVELS}.",
        ),
    ] = None
    upload: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", rich_help_panel=TIME, help="Seconds that devices have to send their vectors."),
    ] = None


@app.command(
    epilog="Example: [bold]hazemap campaign start --name commuters --purpose 'where people live' "
    "--box=-74.02,40.70,-73.93,40.80 --epsilon 1 --people 2000 --token-file operator.token[/bold]"
)
@options(RELEASE, *MAP_FIELDS)
def start(
    ctx: typer.Context,
    coordinator: CoordinatorOptions,
    name: Annotated[
        str, typer.Option(metavar="NAME", rich_help_panel=ORDER, help="Name of the campaign; each name is used once.")
    ],
    purpose: Annotated[
        str, typer.Option(metavar="TEXT", rich_help_panel=ORDER, help="Purpose, which every person sees.")
    ],
    order: CampaignOptions,
    spec: SpecFile = None,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Begin a campaign: charge its price at once, for good, and ask its devices."""
    from hazemap.federated.server.campaign_spec import CampaignOrder
    from hazemap.specs.release_spec import ReleaseSpec

    spec_of_map = specified(ctx, ReleaseSpec, spec, asked, table=False, dataset=name, outside="drop")
    campaign = CampaignOrder(name=name, purpose=purpose, **vars(order)).campaign(spec_of_map)
    _warn_of_small_sums(campaign)
    with coordinator.connect() as line:
        begin(line, campaign, as_json, coordinator)


def begin(
    line: "Operator", campaign: "Campaign", as_json: bool, coordinator: CoordinatorOptions, quiet: bool = False
) -> None:
    """Send a campaign to its server, and, unless `quiet`, say what it is about."""
    from hazemap.codec import dumps
    from hazemap.federated.server.privacy_statement import assumed

    line.post("/v1/campaigns", dumps(campaign).encode())
    if quiet:
        return
    name, cohort = campaign.name, campaign.cohort
    facts = {"campaign": name, "server": coordinator.server, "people": cohort.people, "shards": len(cohort.shards)}
    shards = "" if campaign.carrier else f", in {several(len(cohort.shards), 'shard')}"
    deliver(
        facts,
        as_json,
        f"{name}: {campaign.budget} from {cohort.people:,} people a round{shards}",
        *(f"  {line}" for line in assumed(campaign)),
        f"Watch it: {_watching(name, coordinator)}",
    )


def _watching(name: str, coordinator: CoordinatorOptions) -> str:
    """The command that shows how a campaign is getting on."""
    elsewhere = "" if coordinator.server == LOCAL else f" --server {coordinator.server}"
    return f"hazemap campaign watch {name} --token-file {quote(str(coordinator.token_file))}{elsewhere}"


def _warn_of_small_sums(campaign: "Campaign") -> None:
    from hazemap.federated.device.policy.consent_policy import caution_about_small_sums

    smallest = campaign.cohort.people if campaign.carrier else campaign.cohort.smallest
    if caution := caution_about_small_sums(smallest):
        note(caution)


@app.command("list", epilog="Example: [bold]hazemap campaign list --token-file operator.token[/bold]")
def list_(coordinator: CoordinatorOptions, as_json: AsJson = False) -> None:
    """List every campaign of a server."""
    from rich.table import Table

    with coordinator.connect() as line:
        facts = line.get("/v1/campaigns")
    table = Table("campaign", "state", "begun", "ended", "why", box=None)
    for each in facts["campaigns"]:
        table.add_row(each["name"], each["state"], each["created"], each["ended"] or "", each["reason"])
    devices = facts["devices"]
    deliver(
        facts, as_json, table, f"{devices['enrolled']:,} devices are enrolled; {devices['recent']:,} were here lately"
    )


@app.command(epilog="Example: [bold]hazemap campaign watch commuters --token-file operator.token[/bold]")
def watch(
    name: Name,
    coordinator: CoordinatorOptions,
    once: Annotated[bool, typer.Option("--once", help="Show the present state and stop.")] = False,
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="Seconds between two looks.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Watch the rounds, cells, people, dropouts, budget and map of a campaign until it is over."""
    from hazemap.cli.federated.campaign_display import watched

    with coordinator.connect() as line:
        status = watched(line, name, once, every, quiet=as_json)
    if as_json:
        deliver(status, as_json)


@app.command(
    epilog="Example: [bold]hazemap campaign release commuters -o map.parquet --token-file operator.token[/bold]"
)
def release(
    name: Name,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write: .parquet.")],
    coordinator: CoordinatorOptions,
    picture: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the map: .png, .svg or .pdf.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch the release of a campaign that is done, and show its privacy statement."""
    from hazemap.files.atomic_write import write_whole
    from hazemap.releases import Release
    from hazemap.releases.estimates import PeopleOutside

    if output.suffix.lower() != ".parquet":
        raise FileError(f"a campaign's release must be a .parquet file; found {output.name!r}")
    for file in (output, picture):
        if file is not None and file.exists() and not force:
            raise FileError(f"the file {file} exists: choose another name, or replace it with --force")
    with coordinator.connect() as line, progress() as tell:
        tell("fetching the release", None)
        write_whole(output, line.content(f"/v1/campaigns/{name}/release"))
        made = Release.open(output)
        if picture is not None:
            tell("drawing", None)
            from hazemap.draw import save

            save(made.plot(), picture)
    facts = {
        "file": str(output),
        "picture": None if picture is None else str(picture),
        "cells": made.ground.places.size,
        "statement": made.statement.to_json(),
    }
    deliver(
        facts,
        as_json,
        f"{output}: {made.ground.places.size:,} cells, {made.total()} in all",
        str(PeopleOutside.of(made)),
        "",
        made.statement.text(),
    )


@app.command(epilog="Example: [bold]hazemap campaign stop commuters --token-file operator.token[/bold]")
def stop(name: Name, coordinator: CoordinatorOptions, as_json: AsJson = False) -> None:
    """Stop a campaign for good. Its charge stands, and the rounds that were answered can be released."""
    with coordinator.connect() as line:
        line.post(f"/v1/campaigns/{name}/stop")
    deliver({"campaign": name, "state": "stopped"}, as_json, f"{name} is stopped; what it has paid stays paid")


@app.command(epilog="Example: [bold]hazemap campaign resume commuters --token-file operator.token[/bold]")
def resume(name: Name, coordinator: CoordinatorOptions, as_json: AsJson = False) -> None:
    """Resume a campaign that failed. Its answers are kept, and its price is not charged again."""
    with coordinator.connect() as line:
        line.post(f"/v1/campaigns/{name}/resume")
    deliver({"campaign": name, "state": "running"}, as_json, f"{name} goes on: {_watching(name, coordinator)}")


@app.command("release-partial", epilog="Example: [bold]hazemap campaign release-partial commuters[/bold]")
def release_partial(name: Name, coordinator: CoordinatorOptions, as_json: AsJson = False) -> None:
    """Release the answered rounds of a campaign that failed or was stopped. The statement says what is missing."""
    with coordinator.connect() as line:
        line.post(f"/v1/campaigns/{name}/partial")
    said = f"{name} is released as far as it was answered: hazemap campaign release {name} fetches the file"
    deliver({"campaign": name, "state": "partial"}, as_json, said)
