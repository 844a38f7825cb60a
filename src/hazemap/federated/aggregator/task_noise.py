"""The noise that a task's budget pays for, as the task configuration can say it: rounded up, never down."""

from fractions import Fraction
from math import ceil

from hazemap.errors import InputError
from hazemap.federated.protocols.dap.privacy_parameters import MICRO, PrivacyParameters
from hazemap.federated.protocols.dap.vdaf_configuration import VdafConfiguration
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace

_DOUBLINGS = 60


def noise_within(measured: VdafConfiguration, epsilon: Fraction, delta: Fraction, levels: int) -> PrivacyParameters:
    """The least noise, in millionths, whose price of all levels is within ε: Laplace at δ = 0, else Gaussian.

    >>> from hazemap.federated.protocols.dap.vdaf_configuration import HistogramConfiguration
    >>> noise_within(HistogramConfiguration(64, 8), Fraction(1, 2), Fraction(0), 1).noise
    DiscreteLaplace(scale=Fraction(2, 1))
    """
    if not 0 < epsilon <= 1000 or not 0 <= delta < 1:
        raise InputError("ε is above 0 and at most 1000, and δ from 0 to below 1")
    if (epsilon * MICRO).denominator != 1 or (delta and (1 / delta).denominator != 1):
        raise InputError("ε is a whole number of millionths, and 1/δ a whole number")
    if not delta:
        scale = Fraction(ceil(levels * measured.norm_1 / epsilon * MICRO), MICRO)
        return _checked(PrivacyParameters.of(DiscreteLaplace(scale), levels, epsilon), measured)
    low, high = 0, 1
    while not _fits(measured, Fraction(high, MICRO), levels, epsilon, delta):
        low, high = high, 2 * high
        if high.bit_length() > _DOUBLINGS:
            raise InputError("no noise that can be drawn is within so small a budget")
    while high - low > 1:
        middle = (low + high) // 2
        enough = _fits(measured, Fraction(middle, MICRO), levels, epsilon, delta)
        low, high = (low, middle) if enough else (middle, high)
    noise = DiscreteGaussian(Fraction(high, MICRO))
    return _checked(PrivacyParameters.of(noise, levels, epsilon, delta), measured)


def _fits(measured: VdafConfiguration, variance: Fraction, levels: int, epsilon: Fraction, delta: Fraction) -> bool:
    return PrivacyParameters.of(DiscreteGaussian(variance), levels, epsilon, delta).price(measured) <= epsilon


def _checked(parameters: PrivacyParameters, measured: VdafConfiguration) -> PrivacyParameters:
    parameters.check(measured)
    return parameters
