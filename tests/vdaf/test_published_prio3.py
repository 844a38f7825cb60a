"""Every published vector of Prio3, byte for byte; the bad ones are refused at the step that they name."""

import json

import pytest
from tests.vdaf.prio3_variants import variant

from hazemap.vdaf.ntt_field import FIELD64, FIELD128
from hazemap.vdaf.vdaf import VDAF_08, VDAF_18, InvalidReport
from hazemap.vdaf.xofs import XofTurboShake128

GOOD_18 = (
    *("Count_0", "Count_1", "Count_2", "HigherDegree_0", "Histogram_0", "Histogram_1", "MultihotCountVec_0"),
    *("MultihotCountVec_1", "SumVecWithMultiproof_0", "SumVec_0", "SumVec_1", "Sum_0", "Sum_1"),
)
GOOD_08 = (
    *("Count_0", "Count_1", "Histogram_0", "Histogram_1", "MultiHotHistogram_0", "MultiHotHistogram_1"),
    *("SumVecWithMultiproof_0", "SumVec_0", "SumVec_1", "Sum_0", "Sum_1"),
)
BAD = (
    *("Count_bad_gadget_poly", "Count_bad_helper_seed", "Count_bad_meas_share", "Histogram_bad_leader_jr_blind"),
    *("Histogram_bad_public_share", "Histogram_bad_verifier_message"),
)
NAMES = [
    *(f"vdaf/Prio3{name}" for name in GOOD_18 + BAD),
    *(f"vdaf-08/Prio3{name}" for name in GOOD_08),
    "libprio/Prio3L1BoundSum_0",
]


def read(shared, name):
    return json.loads((shared / "vectors" / f"{name}.json").read_text())


def test_no_published_vector_is_left_out(shared):
    found = {
        f"{folder}/{path.stem}"
        for folder in ("vdaf", "vdaf-08", "libprio")
        for path in (shared / "vectors" / folder).glob("Prio3*")
    }
    assert found == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_published_vector_is_reproduced(shared, name):
    vector = read(shared, name)
    vdaf = variant(name, vector)
    key, ctx = bytes.fromhex(vector["verify_key"]), bytes.fromhex(vector.get("ctx", ""))
    reports = vector.get("reports") or vector["prep"]
    out_shares = [[] for _ in range(vdaf.SHARES)]
    refused = refusal(vector)
    for report in reports:
        nonce, rand = bytes.fromhex(report["nonce"]), bytes.fromhex(report["rand"])
        public, inputs = bytes.fromhex(report["public_share"]), [bytes.fromhex(each) for each in report["input_shares"]]
        said = [bytes.fromhex(each) for each in (report.get("verifier_shares") or report["prep_shares"])[0]]
        if not refused:
            made = vdaf.shard(ctx, report["measurement"], nonce, rand)
            assert (made[0].hex(), [each.hex() for each in made[1]]) == (public.hex(), [each.hex() for each in inputs])
        begun = [vdaf.verify_init(key, ctx, i, b"", nonce, public, inputs[i]) for i in range(len(said))]
        assert [each.verifier_share.hex() for each in begun] == [each.hex() for each in said]
        if refused == "verifier_shares_to_message":
            with pytest.raises(InvalidReport, match="the proof does not hold"):
                vdaf.verifier_shares_to_message(ctx, b"", said)
            return
        (message,) = (bytes.fromhex(each) for each in report.get("verifier_messages") or report["prep_messages"])
        if refused == "verify_next":
            with pytest.raises(InvalidReport, match="joint randomness"):
                vdaf.verify_next(ctx, begun[0].state, message)
            return
        assert vdaf.verifier_shares_to_message(ctx, b"", said) == message
        for agg_id, each in enumerate(begun):
            state = vdaf.decode_state(b"", vdaf.encode_state(b"", each.state))
            out_share = vdaf.verify_next(ctx, state, message)
            assert vdaf.encode_agg_share(b"", out_share).hex() == "".join(report["out_shares"][agg_id])
            out_shares[agg_id].append(out_share)
    agg_shares = [vdaf.merge(b"", each) for each in out_shares]
    assert [vdaf.encode_agg_share(b"", each).hex() for each in agg_shares] == vector["agg_shares"]
    assert all(
        (vdaf.decode_agg_share(b"", bytes.fromhex(data)) == each).all()
        for data, each in zip(vector["agg_shares"], agg_shares, strict=True)
    )
    result = vector["agg_result"]
    assert vdaf.unshard(b"", agg_shares) == (result if isinstance(result, list) else [result])


def refusal(vector) -> str:
    """The operation that a vector says must fail, if any; every other one succeeds."""
    return "".join(each["operation"] for each in vector.get("operations", ()) if not each["success"])


@pytest.mark.parametrize(("folder", "version"), [("vdaf", VDAF_18), ("vdaf-08", VDAF_08)])
def test_the_published_outputs_of_the_xof_are_reproduced(shared, folder, version):
    vector = read(shared, f"{folder}/XofTurboShake128")
    seed, tag, binder = (bytes.fromhex(vector[name]) for name in ("seed", "dst", "binder"))
    xof = XofTurboShake128(version, seed, tag, binder)
    assert FIELD128.encode(xof.next_vector(FIELD128, vector["length"])).hex() == vector["expanded_vec_field128"]
    assert XofTurboShake128(version, seed, tag, binder).next(version.seed_size).hex() == vector["derived_seed"]


def test_a_number_that_is_no_element_is_passed_over():
    """The seed was found by others, by brute force: one of the first 140 numbers is not below the modulus."""
    seed = bytes.fromhex("d195ec90c1bcf1f2cb2c7e74c5c5f6da")
    assert XofTurboShake128(VDAF_08, seed, b"", b"").next_vector(FIELD64, 140)[-1] == 9734340616212735019
    stream = XofTurboShake128(VDAF_08, seed, b"", b"").next(8 * 140)
    assert sum(int.from_bytes(stream[i : i + 8], "little") >= FIELD64.modulus for i in range(0, 8 * 140, 8)) == 1
