"""A campaign that ended early, published as far as it was answered: what was paid for is not lost."""

from dataclasses import replace
from pathlib import Path

from hazemap.errors import InputError
from hazemap.estimate.marked_counts import MarkedCounts, is_about_sides
from hazemap.execution.release_assembly import released
from hazemap.federated.server.campaign_spec import Campaign, prices_of
from hazemap.federated.server.campaign_status import so_far
from hazemap.federated.server.campaign_worker import CampaignCharge
from hazemap.federated.server.privacy_statement import statement
from hazemap.federated.server.round_failure import PAID
from hazemap.queries.algorithm_session import Exchange, Session, Unrecorded


def release_in_part(
    campaign: Campaign, account: CampaignCharge, transcript: list[Exchange], reason: str, file: Path
) -> int:
    """Write the map that the answered rounds make, and note it in the ledger; how many rounds they are.

    It is post-processing of answers that were paid for, so it costs nothing. The statement says what was left out. The
    charge stays that of the whole campaign. The map reads the finest cells that were asked for last; the method's own
    estimate needs all its rounds. `InputError` where nothing was answered, or where the campaign has not paid.
    """
    paid = account.record
    if not transcript or paid is None:
        raise InputError(
            f"the campaign {campaign.name!r} has no answered round, so nothing can be released: resume it, or begin "
            "another"
        )
    Session(
        campaign.algorithm,
        prices_of(campaign),
        campaign.budget,
        Unrecorded(),
        lambda _: True,
        transcript,
    )  # TranscriptMismatch where the answers are not those of this campaign
    if paid.released and file.exists():
        return len(transcript)
    try:
        marks = campaign.marks if is_about_sides(transcript[-1].question) else None
        found = MarkedCounts.of(*transcript[-1], marks) if marks else so_far(transcript)
    except InputError:
        raise InputError(
            f"the {len(transcript)} answered rounds of {campaign.name!r} hold no counts of listed cells, so they make "
            "no map: resume the campaign"
        ) from None
    whole = statement(campaign)
    left_out = (
        f"released in part: the campaign ended after {len(transcript)} answered rounds, and its method asks more; the "
        f"map reads those rounds alone, and the price is that of all ({reason.partition(PAID)[0]})"
    )
    said = replace(whole, public=(*whole.public, left_out), method=f"{whole.method}, in part")
    released(found, said, campaign.algorithm, tuple(transcript)).save(file)
    account.released(said, str(file.absolute()))
    return len(transcript)
