"""How reports reach the servers that carry them: a maker and sender for each type of carrier.

Two servers get a report in halves, sealed for both and uploaded to the leader until it has it; a shuffler gets a noisy
vector in sealed parts, all in one request, sealed once more.

Each of two servers counts a device's report once, and knows nobody by it: the coordinator that the device enrolled with
gives each of a round's people one credential for each task. The device's key of a task follows from its own secret, so
it asks for the same again, however often, and keeps nothing of it. It signs what it asks for, as whoever took its
ticket cannot.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from typing import Final, Protocol

import numpy as np

from hazemap.cells import NOWHERE, Tree
from hazemap.codec import Limits, parsed
from hazemap.engines.memory import MemoryTable
from hazemap.errors import CodecError, HazemapError, Refused, Unreachable
from hazemap.federated.device.policy.consent_policy import Policy, pinned_keys
from hazemap.federated.device.reports.dap_report_upload import OutdatedKeys, ReportConnections, ReportUpload
from hazemap.federated.protocols.dap.client import DapClient
from hazemap.federated.protocols.dap.report_credentials import ISSUED, HeldCredential, keys_statement, report_key
from hazemap.federated.protocols.dap.task import DapTask
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.upload_messages import DapReport
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfig
from hazemap.federated.protocols.secure_aggregation.key_agreement import Drawn
from hazemap.federated.protocols.shuffle.sealed_parts import messages
from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms
from hazemap.federated.protocols.shuffle.shuffled_reports import ReportParameters, report_message
from hazemap.federated.protocols.shuffle.submission import CREDENTIAL, is_genuine, submitted
from hazemap.federated.trust.checked_contribution import contribution
from hazemap.federated.trust.prefix_walk import CellStrings
from hazemap.federated.trust.randomised_reports import randomised
from hazemap.federated.trust.report_carriers import ByOneReport, ByShuffler, ByTwoServers, CarriedTask
from hazemap.federated.trust.shuffled import (
    batch_terms,
    check_law,
    shuffled_batch,
    shuffled_contents,
    shuffled_noise,
    shuffled_parts,
)
from hazemap.federated.trust.two_server_tasks import round_noise, round_tasks, walk_task, walked
from hazemap.federated.trust.two_servers import vectors
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.signing_identities import Identity
from hazemap.tables.contribution_bounding import Bounding
from hazemap.vdaf.vdaf import Vdaf

AskCredentials = Callable[[bytes, bytes], Awaitable[bytes]]
"""What a coordinator answers to a device that asks for credentials of a session, with these keys and its signature."""


async def refuse_credentials(_: bytes, keys: bytes) -> bytes:  # noqa: ARG001 - see `AskCredentials`
    """Of a device without a line to its coordinator."""
    raise Refused("this device has no line to the server that gives out credentials")


class ReportCredentials:
    """Those of one round. `secret` is the device's identity, `issuer` the one that it pinned when it enrolled."""

    def __init__(self, session: bytes, secret: bytes, issuer: bytes, ask: AskCredentials) -> None:
        self.issuer = issuer
        self._session, self._secret, self._ask = session, secret, ask
        self._held = dict[bytes, HeldCredential]()

    async def fetch(self, tasks: Sequence[DapTask]) -> None:
        """Ask for those of these tasks. `Unreachable`: later. `Refused`: never."""
        keys = [report_key(self._secret, task.id) for task in tasks]
        asked = b"".join(key.public for key in keys)
        signature = Identity.from_bytes(self._secret).sign(keys_statement(self.issuer, self._session, asked))
        given = await self._ask(self._session, asked + signature)
        if len(given) != ISSUED * len(tasks):
            raise Refused("the server did not give this device a credential for each task of the round")
        try:
            for at, (task, key) in enumerate(zip(tasks, keys, strict=True)):
                each = given[ISSUED * at : ISSUED * (at + 1)]
                self._held[task.id] = HeldCredential.received(each, key, self.issuer, task.id)
        except CodecError as error:
            raise Refused(str(error)) from None

    def held(self, task: DapTask) -> HeldCredential:
        """The one for a task, which was fetched."""
        if task.id not in self._held:
            raise Refused("this device has no credential for this round")
        return self._held[task.id]


_LENGTH: Final = 4


class TwoServerRoute(ABC):
    """A `ReportRoute` to two servers whose tasks are computed here, from the announcement alone."""

    def __init__(
        self, carried: CarriedTask, policy: Policy, connections: ReportConnections, credentials: ReportCredentials
    ) -> None:
        self._carried, self._connections, self._credentials = carried, connections, credentials
        self._pins = pinned_keys(policy, carried)
        self._keys: tuple[HpkeConfig, HpkeConfig] | None = None

    @abstractmethod
    def tasks(self) -> Sequence[DapTask]:
        """The tasks that a report is made for; `HazemapError` where no report can be made."""

    def refusal(self) -> str | None:
        """Why no report answers this question."""
        try:
            _ = self._each
        except HazemapError as error:
            return str(error)
        return None

    async def ready(self) -> None:
        """Fetch both servers' keys, or take those that are known, and credentials: before anything is charged."""
        (leader, helper), tasks = self._servers, [task for task, _ in self._each]
        self._keys = (
            await self._connections.key(leader, self._pins.get(leader, "")),
            await self._connections.key(helper, self._pins.get(helper, "")),
        )
        await self._credentials.fetch(tasks)

    def sealed(self, measured: Sequence[object], seconds: int, coins: Drawn) -> bytes:
        """The reports' bytes, of what is measured for each task: made once, kept, and sent as they are however often.

        What is measured is bound by `coins` already; here it is all that a report is sealed for.
        """
        if self._keys is None:
            raise Refused("the servers' keys are not known")
        found = []
        for (task, vdaf), measurement in zip(self._each, measured, strict=True):
            client = DapClient(task, vdaf, *self._keys)
            held = self._credentials.held(task)
            keys = (key.to_bytes() for key in self._keys)
            sealed_for = (task.id, task.configuration, *keys, held.serial, held.issued)
            stream = coins(*sealed_for, b"%d" % task.time_at(seconds))
            report = client.report(measurement, seconds, stream.bytes(client.randomness_bytes), credential=held)
            if not isinstance(report, DapReport):
                raise Refused("reports of campaigns are of DAP-18")
            found.append(report.to_bytes())
        return b"".join(len(each).to_bytes(_LENGTH, "big") + each for each in found)

    async def sent(self, parcel: bytes) -> None:
        """Upload each report; the leader counts each once. `Unreachable`: later. `Refused`: never."""
        each = self._each
        leader, helper = [await self._connections.cache(url) for url in self._servers]
        for (task, vdaf), report in zip(each, _reports(parcel), strict=True):
            try:
                await ReportUpload(task, vdaf, leader, helper, _paid, attempts=1).sent(report)
            except OutdatedKeys as error:
                raise Refused(f"{error}; a new report would be charged again, so none is made") from None

    @property
    def _servers(self) -> tuple[str, str]:
        carrier = self._carried.carrier
        if not isinstance(carrier, ByTwoServers | ByOneReport):
            raise Refused("this report is for other servers")
        return carrier.leader, carrier.helper

    @cached_property
    def _each(self) -> list[tuple[DapTask, Vdaf]]:
        """The tasks, each with its VDAF."""
        tasks, _ = self.tasks(), self._servers
        return [(task, _vdaf(task.id, task.configuration)) for task in tasks]


def one_hot(sums: Ints, sizes: Sequence[int]) -> list[list[bool]]:
    """What is reported to each task of a round: a single 1, or none; none anywhere where sums are anything else.

    >>> one_hot(np.array([0, 1, 0, 0]), (3, 1))
    [[False, True, False], [False]]
    """
    parts = np.split(sums, np.cumsum(sizes)[:-1])
    fits = all(part.min(initial=0) >= 0 and part.sum() <= 1 for part in parts)
    return [((part == 1) & fits).tolist() for part in parts]


async def _paid() -> None:
    """The charge is on the disk, in the transaction that keeps the report."""


@lru_cache(maxsize=32, typed=True)
def _vdaf(task_id: bytes, configuration: bytes) -> Vdaf:
    return vdaf_of(DapTask.read(task_id, configuration))


def _reports(parcel: bytes) -> list[DapReport]:
    found, at = [], 0
    while at < len(parcel):
        size = int.from_bytes(parcel[at : at + _LENGTH], "big")
        at += _LENGTH + size
        if at > len(parcel):
            raise CodecError("a report that was kept is cut off")
        found.append(DapReport.from_bytes(parcel[at - size : at]))
    return found


class RoundReportRoute(TwoServerRoute):
    """The `ReportRoute` of one round."""

    def tasks(self) -> Sequence[DapTask]:
        """One for each vector."""
        return round_tasks(self._carried, self._credentials.issuer)

    def parcel(self, rows: Callable[[], MemoryTable], seconds: int, coins: Drawn) -> tuple[bytes, str, str | None]:
        """A report for each vector."""
        encoder, carrier = self._carried.task.question.encoder, self._carried.carrier
        sums, trouble = contribution(encoder, rows)
        measured = one_hot(sums, vectors(encoder))
        noise = round_noise(self._carried).each
        said = (
            f"your rows touch {int(np.count_nonzero(sums)):,} of the {encoder.size:,} numbers; in two halves, each "
            f"unreadable alone; each server adds noise of standard deviation {noise.stddev:.4g}, and opens sums of "
            f"{carrier.minimum:,} reports or more"
        )
        return self.sealed(measured, seconds, partial(coins, b"parcel", sums.tobytes())), said, trouble


class WholeTreeRoute(TwoServerRoute):
    """The `ReportRoute` of a campaign to which people report once."""

    def tasks(self) -> Sequence[DapTask]:
        """One for all questions."""
        return (walk_task(self._carried, self._credentials.issuer),)

    def parcel(self, rows: Callable[[], MemoryTable], seconds: int, coins: Drawn) -> tuple[bytes, str, str | None]:
        """The report of one path."""
        tree, bounding = walked(self._carried)
        path, trouble = person_path(tree, bounding, rows)
        said = (
            "a path to one cell of the tree, in two halves, each unreadable alone; the servers ask about it level by "
            "level, add noise to every answer, and spend no more than this campaign's price"
        )
        return self.sealed([path], seconds, partial(coins, b"parcel", b"%d" % path)), said, trouble


def person_path(tree: Tree, bounding: Bounding, rows: Callable[[], MemoryTable]) -> tuple[int, str | None]:
    """A person's string of bits, and what kept it from being made of their rows: then it is that of nobody's.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.tables.contribution_bounding import AtMostRows
    >>> person_path(Quadtree.world(depth=3), AtMostRows(1), lambda: 1 / 0)
    (128, 'ZeroDivisionError')
    """
    cell, trouble = NOWHERE, None
    try:
        votes = rows().votes(tree, bounding)
        if len(votes.cells) > 1 or (len(votes.cells) and votes.weights[0] != 1):
            trouble = "more than one cell"
        elif len(votes.cells):
            cell = votes.cells[0]
    except Exception as error:  # of whatever kind, it must look the same from outside (`checked_contribution`)
        trouble = type(error).__name__
    return int(CellStrings(tree).of_people(np.array([cell], dtype=np.uint64))[0]), trouble


class ReportRoute(Protocol):
    """One round's route to those who carry its reports. Made for each announcement: it does nothing yet."""

    def refusal(self) -> str | None:
        """Why the announcement does not follow from its own terms, in words; None where it does."""

    async def ready(self) -> None:
        """Fetch what is needed: before the charge. `Unreachable`: later. `Refused`: never."""

    def parcel(self, rows: Callable[[], MemoryTable], seconds: int, coins: Drawn) -> tuple[bytes, str, str | None]:
        """The bytes to send, of a person's rows, at `seconds`; what the log says; what kept rows from being counted.

        `coins` of the announcement are drawn by what is drawn for, and by all that is said and sealed.

        It must not fail, whatever the rows are: silence would tell. Its length says nothing about them.
        """

    async def sent(self, parcel: bytes) -> None:
        """Send it until it is there, once or as often as needed: it counts once. Errors as for `ready`."""


ROUTES: Mapping[type, Callable[[CarriedTask, Policy, ReportConnections, ReportCredentials], ReportRoute]] = {
    ByTwoServers: RoundReportRoute,
    ByOneReport: WholeTreeRoute,
}
"""The route's maker, by the carrier's type."""


def report_route(
    carried: CarriedTask, policy: Policy, connections: ReportConnections, credentials: ReportCredentials
) -> ReportRoute:
    """The route of a round; `Refused` where this device has none to such a carrier."""
    made = ROUTES.get(type(carried.carrier))
    if made is None:
        raise Refused(f"this device cannot report by {carried.carrier.trust!r} yet")
    return made(carried, policy, connections, credentials)


DIGEST: Final = 32
"""Bytes before a kept request: the batch that it is for."""
KEY: Final = 32
WORD: Final = Limits(length=1 << 12, items=16, work=0, depth=1)


class ShufflerRoute:
    """The `ReportRoute` of one round. `told` is what this device alone was told: the analyser's key, its credential.

    The coordinator's identity, which the device pinned when it enrolled, signs both: the credential is for a batch that
    is named by all of its terms, the analyser's key among them.
    """

    def __init__(
        self, carried: CarriedTask, policy: Policy, connections: ReportConnections, told: bytes, pinned: bytes
    ) -> None:
        carrier = carried.carrier
        if not isinstance(carrier, ByShuffler):
            raise Refused("this report is for other servers")
        self._carried, self._carrier, self._policy, self._connections = carried, carrier, policy, connections
        self._told, self._pinned = told, pinned

    def refusal(self) -> str | None:
        """Why the announcement does not follow from its own terms, or is not the coordinator's."""
        key = bytes.fromhex(self._carrier.key)
        pin = pinned_keys(self._policy, self._carried).get(self._carrier.shuffler, "")
        if pin and sha256(key).hexdigest() != pin:
            return f"the shuffler {self._carrier.shuffler} has another key here than this device's policy pins"
        if len(self._told) != KEY + CREDENTIAL:
            return "a round through a shuffler comes with the analyser's key and this device's credential"
        try:
            check_law(self._carried)
            terms = self._terms()
            size = terms.bytes_a_person
        except HazemapError as error:
            return str(error)
        if size > self._policy.upload:
            return f"a report would have {size:,} bytes, but on this device it may have {self._policy.upload:,}"
        if not is_genuine(self._pinned, terms.digest, self._told[KEY:]):
            return "the credential for the shuffler is not of the server that this device enrolled with, for this round"
        return None

    async def ready(self) -> None:
        """See that the shuffler has the key that the campaign says, unless the policy pins it."""
        if pinned_keys(self._policy, self._carried).get(self._carrier.shuffler):
            return
        client = await self._connections.client(self._carrier.shuffler)
        reply = await client.send("GET", "/v1/shuffler")
        try:
            key = parsed(reply.content, WORD)["key"]
        except (CodecError, KeyError, TypeError) as error:
            raise Unreachable("what answers at the shuffler's address is no shuffler") from error
        if key != self._carrier.key:
            raise Refused(f"the shuffler {self._carrier.shuffler} has another key than the campaign says")

    def parcel(
        self,
        rows: Callable[[], MemoryTable],
        seconds: int,  # noqa: ARG002 - a batch is one round's, whatever the time
        coins: Drawn,
    ) -> tuple[bytes, str, str | None]:
        """The request to the shuffler: a person's part of the noise is in it, and all of its parts."""
        terms, encoder = self._terms(), self._carried.task.question.encoder
        sums, trouble = contribution(encoder, rows)
        sealed, hidden = self._sealed(sums, coins)
        request = submitted(
            terms,
            bytes.fromhex(self._carrier.key),
            self._told[KEY:],
            sealed,
            coins(b"submission", sums.tobytes(), self._told).bytes(32),
        )
        batch = shuffled_batch(self._carried)
        said = (
            f"your rows touch {int(np.count_nonzero(sums)):,} of the {encoder.size:,} numbers; in {terms.messages:,} "
            f"sealed messages, shuffled among those of {batch.minimum:,} people or more; {hidden}"
        )
        return terms.digest + request, said, trouble

    def _sealed(self, sums: Ints, coins: Drawn) -> tuple[list[bytes], str]:
        """The messages, and in words what hides the person in them."""
        law, contents, analyser = self._carried.task.randomiser, shuffled_contents(self._carried), self._told[:KEY]
        said = sums.tobytes()
        stream = coins(b"parcel", said, self._told)
        if law is not None and isinstance(contents, ReportParameters):
            report = randomised(law, sums, coins(b"report", said))
            return [report_message(contents, analyser, report, stream)], f"randomised by {law}"
        parts, noise = shuffled_parts(self._carried), shuffled_noise(self._carried)
        made = messages(parts, analyser, sums + noise.share(coins(b"noise", said), parts.size), stream)
        return made, f"noise of scale {float(noise.scale):.4g}, made by {noise.parties:,} people or more"

    async def sent(self, parcel: bytes) -> None:
        """Send it until the shuffler has it. `Unreachable`: later. `Refused`: never."""
        batch, request = parcel[:DIGEST], parcel[DIGEST:]
        client = await self._connections.client(self._carrier.shuffler)
        path = f"/v1/batches/{batch.hex()}/messages"
        reply = await client.send("POST", path, "", request, "application/octet-stream")
        if 200 <= reply.status < 300:
            return
        if reply.status == 410:
            raise Refused("the shuffler takes no more messages for this round")
        raise Refused(f"the shuffler does not take this report (HTTP {reply.status})")

    def _terms(self) -> BatchTerms:
        return batch_terms(self._carried, self._pinned, self._told[:KEY])
