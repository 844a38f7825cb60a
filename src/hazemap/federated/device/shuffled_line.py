"""A round's report through a shuffler: a noisy vector in sealed parts, all in one request, sealed once more."""

from collections.abc import Callable
from hashlib import sha256
from typing import Final

import numpy as np

from hazemap.codec import Limits, parsed
from hazemap.engines.memory import MemoryTable
from hazemap.errors import CodecError, HazemapError, Refused, Unreachable
from hazemap.federated.device.carried_policy import pins
from hazemap.federated.device.consent_policy import Policy
from hazemap.federated.device.report_lines import ReportLines
from hazemap.federated.protocols.secure_aggregation.coins import Drawn
from hazemap.federated.protocols.shuffle.batch_terms import BatchTerms
from hazemap.federated.protocols.shuffle.client import messages
from hazemap.federated.protocols.shuffle.credential import CREDENTIAL, is_genuine
from hazemap.federated.protocols.shuffle.shuffled_reports import ReportParameters, report_message
from hazemap.federated.protocols.shuffle.submission import submitted
from hazemap.federated.trust.carried_tasks import CarriedTask
from hazemap.federated.trust.checked_contribution import contribution
from hazemap.federated.trust.randomised_reports import randomised
from hazemap.federated.trust.report_carriers import ByShuffler
from hazemap.federated.trust.shuffled_tasks import (
    batch_terms,
    check_law,
    shuffled_batch,
    shuffled_contents,
    shuffled_noise,
    shuffled_parts,
)
from hazemap.machine_code.arrays import Ints

DIGEST: Final = 32
"""Bytes before a kept request: the batch that it is for."""
KEY: Final = 32
WORD: Final = Limits(length=1 << 12, items=16, work=0, depth=1)


class ShuffledLine:
    """The `CarrierLine` of one round. `told` is what this device alone was told: the analyser's key, its credential.

    The coordinator's identity, which the device pinned when it enrolled, signs both: the credential is for a batch that
    is named by all of its terms, the analyser's key among them.
    """

    def __init__(self, carried: CarriedTask, policy: Policy, lines: ReportLines, told: bytes, pinned: bytes) -> None:
        carrier = carried.carrier
        if not isinstance(carrier, ByShuffler):
            raise Refused("this report is for other servers")
        self._carried, self._carrier, self._policy, self._lines = carried, carrier, policy, lines
        self._told, self._pinned = told, pinned

    def refusal(self) -> str | None:
        """Why the announcement does not follow from its own terms, or is not the coordinator's."""
        key = bytes.fromhex(self._carrier.key)
        pin = pins(self._policy, self._carried).get(self._carrier.shuffler, "")
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
        if pins(self._policy, self._carried).get(self._carrier.shuffler):
            return
        line = await self._lines.line(self._carrier.shuffler)
        reply = await line.send("GET", "/v1/shuffler")
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
        line = await self._lines.line(self._carrier.shuffler)
        path = f"/v1/batches/{batch.hex()}/messages"
        reply = await line.send("POST", path, "", request, "application/octet-stream")
        if 200 <= reply.status < 300:
            return
        if reply.status == 410:
            raise Refused("the shuffler takes no more messages for this round")
        raise Refused(f"the shuffler does not take this report (HTTP {reply.status})")

    def _terms(self) -> BatchTerms:
        return batch_terms(self._carried, self._pinned, self._told[:KEY])
