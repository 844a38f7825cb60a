import json
from itertools import product
from pathlib import Path

import pytest

from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.dap.vdaf_configuration import (
    FIELD64,
    MOST_ELEMENTS,
    CountConfiguration,
    HistogramConfiguration,
    MultihotConfiguration,
    Poplar1Configuration,
    SumConfiguration,
    SumVecConfiguration,
    read_configuration,
)
from hazemap.vdaf.tls_encoding import TlsWriter

FILE = Path(__file__).parents[4] / ".." / "shared" / "vectors" / "dap" / "messages_dap18.json"
PUBLISHED = {
    "000000010000": CountConfiguration(),
    "00000002000800000000000000ff": SumConfiguration(255),
    "0000000300100000000c00000000000000080000000e": SumVecConfiguration(12, 8, 14),
    "0000000400080000010000000012": HistogramConfiguration(256, 18),
    "0000000500100000010000000012000000000000000e": MultihotConfiguration(256, 18, 14),
}
REFUSED = {
    "000000000000": "a reserved number",
    "0000000200080000000000000000": "a sum of zeros",
    "000000020008ffffffffffffffff": "more than the field holds",
    "ffff000000040000000f": "a VDAF of tests",
    "deadbeef000401020304": "a VDAF that nobody knows",
}


def test_published_configurations_are_written_and_read_byte_for_byte():
    for encoded, configuration in PUBLISHED.items():
        data = configuration.to_bytes()
        assert TlsWriter().number(configuration.VDAF, 4).opaque(data, 2).done().hex() == encoded
        assert read_configuration(configuration.VDAF, data) == configuration
    for encoded in REFUSED:
        data = bytes.fromhex(encoded)
        with pytest.raises(CodecError):
            read_configuration(int.from_bytes(data[:4], "big"), data[6:])
    if FILE.exists():
        names = {"roundtrip_vdaf_config", "unknown_vdaf_config_roundtrips"}
        published = {each["hex"] for each in json.loads(FILE.read_text())["vectors"] if each["test"] in names}
        assert published == set(PUBLISHED) | set(REFUSED)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: SumConfiguration(0),
        lambda: SumConfiguration(FIELD64),
        lambda: SumConfiguration(True),
        lambda: SumVecConfiguration(0, 1, 1),
        lambda: SumVecConfiguration(2, 0, 1),
        lambda: SumVecConfiguration(2, 1 << 64, 1),
        lambda: SumVecConfiguration(2, 1, 3),
        lambda: SumVecConfiguration(MOST_ELEMENTS, 2, 1),
        lambda: HistogramConfiguration(0, 1),
        lambda: HistogramConfiguration(4, 0),
        lambda: HistogramConfiguration(4, 5),
        lambda: HistogramConfiguration(MOST_ELEMENTS + 1, 5),
        lambda: MultihotConfiguration(4, 1, 0),
        lambda: MultihotConfiguration(4, 1, 5),
        lambda: MultihotConfiguration(4, 8, 4),
        lambda: Poplar1Configuration(0),
        lambda: Poplar1Configuration(65),
    ],
)
def test_parameters_that_cannot_be_are_refused(wrong):
    with pytest.raises(InputError):
        wrong()


def test_parameters_of_another_length_are_refused():
    for configuration in (*PUBLISHED.values(), Poplar1Configuration(46)):
        data = configuration.to_bytes()
        for wrong in (data + b"\0", data[:-1] or b"\0"):
            with pytest.raises(CodecError):
                read_configuration(configuration.VDAF, wrong)


def measurements(configuration):
    """What one report may add to the sums, all of it."""
    match configuration:
        case CountConfiguration():
            return [(0,), (1,)]
        case SumConfiguration(most):
            return [(value,) for value in range(most + 1)]
        case SumVecConfiguration(length, most, _):
            return list(product(range(most + 1), repeat=length))
        case HistogramConfiguration(length, _):
            return [tuple(int(i == cell) for i in range(length)) for cell in range(length)]
        case MultihotConfiguration(length, _, weight):
            return [bits for bits in product((0, 1), repeat=length) if sum(bits) <= weight]
    prefixes = range(1 << configuration.bits)
    return [tuple(int(i == string) for i in prefixes) for string in prefixes]


@pytest.mark.parametrize(
    "configuration",
    [
        CountConfiguration(),
        SumConfiguration(5),
        SumVecConfiguration(3, 3, 2),
        HistogramConfiguration(5, 2),
        MultihotConfiguration(5, 2, 3),
        Poplar1Configuration(3),
    ],
)
def test_norms_are_the_most_that_one_report_moves_the_sums(configuration):
    every = measurements(configuration)
    assert configuration.norm_1 == max(sum(each) for each in every)
    assert configuration.norm_2_squared == max(sum(entry**2 for entry in each) for each in every)
