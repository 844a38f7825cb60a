"""Poplar1: the published vectors, the loops against plain Python, and reports, servers and requests that cheat."""

import json

import pytest

from hazemap.protocols.vdaf.poplar1 import Poplar1
from hazemap.protocols.vdaf.vdaf import Continuation

OPERATIONS = {"shard", "verify_init", "verifier_shares_to_message", "verify_next", "aggregate", "unshard"}


def index(bits: list[bool]) -> int:
    return int("".join("01"[bit] for bit in bits), 2)


@pytest.mark.parametrize("number", [0, 1, 3, 4])
def test_the_published_reports_are_reproduced(shared, number):
    vector = json.loads((shared / "vectors" / "vdaf" / f"Poplar1_{number}.json").read_text())
    poplar1 = Poplar1(vector["bits"])
    ctx, key, parameter = (bytes.fromhex(vector[name]) for name in ("ctx", "verify_key", "agg_param"))
    states, shares, done = {}, {}, set()
    for operation in vector["operations"]:
        done.add(operation["operation"])
        assert operation["success"]
        report = vector["reports"][operation.get("report_index", 0)]
        server, turn = operation.get("aggregator_id", 0), operation.get("round", 0)
        nonce, public = (bytes.fromhex(report[name]) for name in ("nonce", "public_share"))
        private = [bytes.fromhex(share) for share in report["input_shares"]]
        match operation["operation"]:
            case "shard":
                rand = bytes.fromhex(report["rand"])
                assert poplar1.shard(ctx, index(report["measurement"]), nonce, rand) == (public, private)
            case "verify_init":
                states[server] = poplar1.verify_init(key, ctx, server, parameter, nonce, public, private[server])
                assert states[server].verifier_share.hex() == report["verifier_shares"][0][server]
            case "verifier_shares_to_message":
                said = [bytes.fromhex(share) for share in report["verifier_shares"][turn]]
                assert (
                    poplar1.verifier_shares_to_message(ctx, parameter, said).hex() == report["verifier_messages"][turn]
                )
            case "verify_next":
                message = bytes.fromhex(report["verifier_messages"][turn - 1])
                stored = poplar1.decode_state(parameter, poplar1.encode_state(parameter, states[server].state))
                found = poplar1.verify_next(ctx, stored, message)
                if isinstance(found, Continuation):
                    states[server] = found
                    assert found.verifier_share.hex() == report["verifier_shares"][turn][server]
                else:
                    shares[server] = found
                    assert poplar1.encode_agg_share(parameter, found).hex() == "".join(report["out_shares"][server])
            case "aggregate":
                share = poplar1.merge(parameter, [shares[server]])
                assert poplar1.encode_agg_share(parameter, share).hex() == vector["agg_shares"][server]
            case "unshard":
                both = [poplar1.decode_agg_share(parameter, bytes.fromhex(share)) for share in vector["agg_shares"]]
                assert poplar1.unshard(parameter, both) == [int(count) for count in vector["agg_result"]]
    assert done == OPERATIONS
