"""All that Prio3 draws from the XOF, for many reports at a time in machine code. This module imports numba.

Arrays of elements are uint64[reports, …, words of an element].
"""

from collections.abc import Sequence

import numpy as np

from hazemap.machine_code.arrays import Words
from hazemap.vdaf.prio3_parameters import Prio3Parameters, Usage
from hazemap.vdaf.turboshake128_kernels import padded
from hazemap.vdaf.xof_turboshake128 import DOMAIN, message
from hazemap.vdaf.xof_turboshake128_kernels import hash_messages


class Prio3Streams:
    """The streams of one variant of Prio3 in one context."""

    def __init__(self, kind: Prio3Parameters, ctx: bytes) -> None:
        self._kind, self._ctx, self._words = kind, ctx, kind.circuit.field.words

    def measurement_shares(self, seeds: list[bytes], ids: Sequence[int]) -> Words:
        """Measurement shares of helpers, by the number of each: uint64[reports, length, words]."""
        messages = self._messages(Usage.MEASUREMENT_SHARE, seeds, [bytes([agg_id]) for agg_id in ids])
        return self._elements(messages, 1, self._kind.circuit.measurement_length)[:, 0]

    def proofs_shares(self, seeds: list[bytes], ids: Sequence[int]) -> Words:
        """Proof shares of helpers: uint64[reports, proofs, length, words]."""
        binders = [bytes([self._kind.proofs, agg_id]) for agg_id in ids]
        messages = self._messages(Usage.PROOF_SHARE, seeds, binders)
        return self._elements(messages, self._kind.proofs, self._kind.circuit.proof_length)

    def joint_rand_parts(
        self, blinds: list[bytes], ids: Sequence[int], nonces: list[bytes], shares: Words
    ) -> list[bytes]:
        """An aggregator's part of joint randomness, of each measurement share."""
        binders = [bytes([agg_id]) + nonce for agg_id, nonce in zip(ids, nonces, strict=True)]
        return self._seeds(self._messages(Usage.JOINT_RAND_PART, blinds, binders, shares))

    def joint_rand_seeds(self, parts: list[bytes]) -> list[bytes]:
        """The seeds of joint randomness, from all aggregators' parts for each report."""
        zero = bytes(self._kind.version.seed_size)
        return self._seeds(self._messages(Usage.JOINT_RAND_SEED, [zero] * len(parts), parts))

    def joint_rands(self, seeds: list[bytes]) -> Words:
        """Joint randomness: uint64[reports, proofs, length, words]."""
        return self._for_proofs(Usage.JOINT_RANDOMNESS, seeds, b"", self._kind.circuit.joint_rand_length)

    def prove_rands(self, seed: bytes) -> Words:
        """A prover's randomness: uint64[1, proofs, length, words]."""
        return self._for_proofs(Usage.PROVE_RANDOMNESS, [seed], b"", self._kind.circuit.gadget.arity)

    def query_rands(self, verify_key: bytes, nonces: list[bytes]) -> Words:
        """The aggregators' randomness: uint64[reports, proofs, length, words]."""
        seeds, length = [verify_key] * len(nonces), self._kind.circuit.query_rand_length
        return self._for_proofs(Usage.QUERY_RANDOMNESS, seeds, nonces, length)

    def _for_proofs(self, usage: Usage, seeds: list[bytes], nonces: list[bytes] | bytes, length: int) -> Words:
        proofs = self._kind.proofs
        binders = [bytes([proofs]) + (nonces[i] if isinstance(nonces, list) else nonces) for i in range(len(seeds))]
        return self._elements(self._messages(usage, seeds, binders), proofs, length)

    def _messages(self, usage: Usage, seeds: list[bytes], binders: list[bytes], shares: Words | None = None) -> Words:
        """Messages of the XOF, padded to blocks; shares of measurements end the binders."""
        tag = self._kind.tag(usage, self._ctx)
        heads = [message(self._kind.version, seed, tag, binder) for seed, binder in zip(seeds, binders, strict=True)]
        columns = [np.frombuffer(b"".join(heads), dtype=np.uint8).reshape(len(heads), -1)]
        if shares is not None:
            columns.append(shares.view(np.uint8).reshape(len(heads), -1))
        return padded([*columns], DOMAIN)

    def _seeds(self, messages: Words) -> list[bytes]:
        found = np.empty((len(messages), self._kind.version.seed_size // 8), dtype=np.uint64)
        hash_messages(messages, found, np.empty((len(messages), 0, self._words), dtype=np.uint64))
        return [each.tobytes() for each in found]

    def _elements(self, messages: Words, proofs: int, length: int) -> Words:
        found = np.empty((len(messages), proofs * length, self._words), dtype=np.uint64)
        hash_messages(messages, np.empty((len(messages), 0), dtype=np.uint64), found)
        return found.reshape(len(messages), proofs, length, self._words)
