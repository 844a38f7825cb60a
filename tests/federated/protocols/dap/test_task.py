from dataclasses import replace
from fractions import Fraction

import pytest

from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.dap.basic_types import DAP_09, DAP_18, LATEST, TimeInterval
from hazemap.federated.protocols.dap.privacy_parameters import PRIVACY_PARAMETERS, NoiseLaw, PrivacyParameters
from hazemap.federated.protocols.dap.task import MOST_PRECISION, BatchMode, DapTask, TaskConfiguration
from hazemap.federated.protocols.dap.vdaf_configuration import (
    CountConfiguration,
    Extension,
    HistogramConfiguration,
    MultihotConfiguration,
    Poplar1Configuration,
    SumConfiguration,
    SumVecConfiguration,
    UnsupportedExtensions,
)
from hazemap.privacy.budget import ApproxDP
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace

ID = bytes(range(32))
HISTOGRAM = HistogramConfiguration(1024, 32)
LEADER, HELPER = "https://leader.example/dap/", "https://helper.example:8443"
LAPLACE = PrivacyParameters.of(DiscreteLaplace(Fraction(20)), 1, Fraction(1, 20))


def task(measured=HISTOGRAM, **options):
    fields = {
        "task_id": ID,
        "info": b"a map",
        "leader": LEADER,
        "helper": HELPER,
        "time_precision": 3600,
        "min_batch_size": 100,
        "batch_mode": BatchMode.TIME_INTERVAL,
        "measured": measured,
    }
    return DapTask.created(**(fields | options))


def wire(**changes) -> bytes:
    return replace(TaskConfiguration.from_bytes(task().configuration), **changes).to_bytes()


def test_a_task_is_read_from_the_bytes_that_it_was_made_into():
    made = task(interval=TimeInterval(100, 28), privacy=LAPLACE)
    assert DapTask.read(ID, made.configuration) == made
    assert (made.leader, made.helper, made.measured) == (LEADER, HELPER, HISTOGRAM)
    assert (made.interval, made.privacy) == (TimeInterval(100, 28), LAPLACE)
    assert made.context == b"dap-18" + ID
    assert TaskConfiguration.from_bytes(made.configuration).to_bytes() == made.configuration


def test_a_later_draft_is_one_line_of_the_table():
    later = replace(DAP_18, tag=b"dap-19", least_task_info=0)
    made = task(info=b"", version=later)
    assert made.context == b"dap-19" + ID and DapTask.read(ID, made.configuration, later) == made
    with pytest.raises(CodecError, match="at least 1 byte of task info"):
        DapTask.read(ID, made.configuration)


def test_draft_09_counts_seconds_and_binds_its_vdaf_to_nothing():
    old = task(CountConfiguration(), version=DAP_09)
    assert (task().time_at(7300), old.time_at(7300)) == (2, 7200)
    assert (task().context, old.context) == (b"dap-18" + ID, b"")


@pytest.mark.parametrize(
    "options",
    [
        {"task_id": bytes(31)},
        {"info": b""},
        {"info": bytes(256)},
        {"leader": HELPER},
        {"leader": "ftp://leader.example"},
        {"leader": "https:///path"},
        {"leader": "https://user:secret@leader.example"},
        {"leader": "https://leader.example/?task=1"},
        {"leader": "https://leader.example/#"},
        {"leader": "https://leader.example:65536"},
        {"leader": "https://leader.example:0"},
        {"leader": "https://[leader.example"},
        {"leader": "https://leader.example/a b"},
        {"leader": "https://leader.example\\x"},
        {"leader": "https://länder.example"},
        {"leader": "https://leader.example/" + "x" * (2001 - 23)},
        {"helper": ""},
        {"time_precision": 0},
        {"time_precision": MOST_PRECISION + 1},
        {"min_batch_size": 0},
        {"min_batch_size": 1 << 41},
        {"batch_mode": BatchMode.RESERVED},
        {"interval": TimeInterval(1, 0)},
        {"interval": TimeInterval(1, LATEST)},
        {"measured": MultihotConfiguration(8, 2, 2), "version": DAP_09},
        {"measured": Poplar1Configuration(8), "version": DAP_09},
        {"measured": SumConfiguration(4), "version": DAP_09},
        {"measured": SumVecConfiguration(4, 6, 2), "version": DAP_09},
        {"privacy": replace(LAPLACE, micro_epsilon=49_999)},
    ],
)
def test_a_task_that_cannot_be_is_refused(options):
    with pytest.raises(InputError):
        task(**options)


def test_a_task_at_each_limit_is_one():
    for options in (
        {"min_batch_size": 1},
        {"min_batch_size": 1 << 40},
        {"time_precision": 1},
        {"time_precision": MOST_PRECISION},
        {"info": b"i"},
        {"info": bytes(255)},
        {"leader": "http://leader.example:65535"},
        {"leader": "https://[::1]:1/"},
        {"leader": "https://leader.example/" + "x" * (2000 - 23)},
        {"interval": TimeInterval(0, 1)},
        {"interval": TimeInterval(1, LATEST - 1)},
    ):
        assert DapTask.read(ID, task(**options).configuration) == task(**options)


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_config": b"x"},
        {"batch_mode": BatchMode.RESERVED},
        {"vdaf_type": 9},
        {"vdaf_configuration": b""},
        {"extensions": (Extension(1, b""),)},
        {"extensions": (Extension(1, TimeInterval(1, 1).to_bytes() + b"\0"),)},
        {"extensions": (Extension(PRIVACY_PARAMETERS, b""),)},
        {
            "extensions": (
                Extension(PRIVACY_PARAMETERS, LAPLACE.to_bytes()),
                Extension(1, TimeInterval(1, 1).to_bytes()),
            )
        },
    ],
)
def test_a_configuration_that_means_nothing_is_refused(changes):
    with pytest.raises(CodecError):
        DapTask.read(ID, wire(**changes))


def test_a_task_with_an_extension_that_is_not_known_is_not_taken_part_in():
    with pytest.raises(UnsupportedExtensions) as refused:
        DapTask.read(ID, wire(extensions=(Extension(2, b""), Extension(0x1234, b""))))
    assert refused.value.types == (2, 0x1234)


def test_the_noise_and_the_budget_are_bound_into_the_configuration():
    assert task(privacy=LAPLACE).configuration != task().configuration
    wider = PrivacyParameters.of(DiscreteLaplace(Fraction(21)), 1, Fraction(1, 20))
    assert task(privacy=wider).configuration != task(privacy=LAPLACE).configuration


def test_the_budget_covers_what_the_noise_costs_or_the_task_is_refused():
    tree = Poplar1Configuration(46)
    levels = PrivacyParameters.of(DiscreteLaplace(Fraction(20)), 5, Fraction(1, 4))
    assert levels.price(tree) == Fraction(5, 20) and task(tree, privacy=levels).privacy == levels
    with pytest.raises(InputError, match=r"names a budget of ε = 0\.2, and its noise costs 0\.25"):
        replace(levels, micro_epsilon=200_000).check(tree)
    weights = MultihotConfiguration(64, 8, 3)
    assert LAPLACE.price(weights) == Fraction(3, 20)
    with pytest.raises(InputError):
        LAPLACE.check(weights)


def test_gaussian_noise_is_priced_by_zcdp_and_rounded_up():
    delta = Fraction(1, 10**6)
    rho = ApproxDP(1, delta).rho
    variance = Fraction(5, 2) / rho
    exact = Fraction(-(-variance.numerator // variance.denominator))
    terms = PrivacyParameters.of(DiscreteGaussian(exact), 5, Fraction(1), delta)
    tree = Poplar1Configuration(46)
    assert Fraction(99, 100) < terms.price(tree) <= 1
    terms.check(tree)
    with pytest.raises(InputError, match="costs"):
        replace(terms, numerator=terms.numerator * 49 // 50).check(tree)


def test_a_batch_is_collected_once_unless_its_levels_are_prefixes():
    twice = PrivacyParameters.of(DiscreteLaplace(Fraction(200)), 2, Fraction(1))
    with pytest.raises(InputError, match="collects a batch once"):
        twice.check(HISTOGRAM)
    with pytest.raises(InputError, match="no 2 levels"):
        twice.check(Poplar1Configuration(1))
    twice.check(Poplar1Configuration(2))


@pytest.mark.parametrize(
    "change",
    [
        {"numerator": 0},
        {"denominator": 0},
        {"numerator": 40, "denominator": 2},
        {"numerator": 1 << 51},
        {"numerator": 1 << 64},
        {"levels": 0},
        {"levels": 1025},
        {"micro_epsilon": 0},
        {"inverse_delta": 10},
        {"law": NoiseLaw.DISCRETE_GAUSSIAN},
        {"law": NoiseLaw.DISCRETE_GAUSSIAN, "inverse_delta": 1},
        {"numerator": True},
    ],
)
def test_privacy_parameters_that_cannot_be_are_refused(change):
    with pytest.raises(InputError):
        replace(LAPLACE, **change)


def test_the_narrowest_noise_and_the_widest_can_be_said():
    narrow = replace(LAPLACE, numerator=1, micro_epsilon=(1 << 64) - 1)
    assert narrow.price(HISTOGRAM) == 1 and PrivacyParameters.from_bytes(narrow.to_bytes()) == narrow
    wide = replace(LAPLACE, numerator=1 << 50, micro_epsilon=1)
    assert wide.price(HISTOGRAM) == Fraction(1, 1 << 50) and replace(wide, levels=1024).levels == 1024
    assert replace(wide, law=NoiseLaw.DISCRETE_GAUSSIAN, inverse_delta=2).delta == Fraction(1, 2)


def test_privacy_parameters_that_cannot_be_are_not_read_either():
    data = bytearray(LAPLACE.to_bytes())
    assert PrivacyParameters.from_bytes(bytes(data)) == LAPLACE
    for at, value in ((0, 0), (0, 3), (8, 0), (16, 0), (16, 2), (18, 0)):
        wrong = bytearray(data)
        wrong[at] = value
        with pytest.raises(CodecError):
            PrivacyParameters.from_bytes(bytes(wrong))
    with pytest.raises(InputError):
        PrivacyParameters.of(DiscreteLaplace(Fraction(20)), 1, Fraction(1, 3))
    with pytest.raises(InputError):
        PrivacyParameters.of(DiscreteGaussian(Fraction(20)), 1, Fraction(1), Fraction(2, 3))
