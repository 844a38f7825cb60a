"""Metrics on densities, against loops that follow the formulas word for word."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import InputError
from hazemap.lab.compare import density_metrics as densities
from hazemap.lab.compare.density_metrics import density, kl, l1, l2, maape, mape, mse, pearson, similarity, smape

METRICS = (mse, l1, l2, kl, similarity, pearson, mape, smape, maape)

maps = st.integers(2, 24).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 9), min_size=n, max_size=n).filter(any).map(density)] * 2)
)


def relative(p, q):
    least = min(a for a in p if a > 0)
    return [abs(a - b) / (a if a > 0 else least) for a, b in zip(p, q, strict=True)]


def correlation(p, q):
    mp, mq = math.fsum(p) / len(p), math.fsum(q) / len(q)
    across = math.fsum((a - mp) * (b - mq) for a, b in zip(p, q, strict=True))
    return across / math.sqrt(math.fsum((a - mp) ** 2 for a in p) * math.fsum((b - mq) ** 2 for b in q))


SLOWLY = {
    mse: lambda p, q: math.fsum((a - b) ** 2 for a, b in zip(p, q, strict=True)) / len(p),
    l1: lambda p, q: math.fsum(abs(a - b) for a, b in zip(p, q, strict=True)),
    l2: lambda p, q: math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(p, q, strict=True))),
    kl: lambda p, q: math.fsum(a * math.log(a / max(b, 2.0**-52)) for a, b in zip(p, q, strict=True) if a > 0),
    similarity: lambda p, q: math.fsum(map(min, p, q)),
    pearson: correlation,
    mape: lambda p, q: math.fsum(relative(p, q)) / len(p),
    smape: lambda p, q: math.fsum(2 * abs(a - b) / (a + b) for a, b in zip(p, q, strict=True) if a + b) / len(p),
    maape: lambda p, q: math.fsum(map(math.atan, relative(p, q))) / len(p),
}


@pytest.mark.parametrize("metric", METRICS, ids=lambda f: f.__name__)
@given(pair=maps)
def test_a_metric_is_its_formula(metric, pair):
    p, q = pair
    if metric is pearson and min(np.ptp(p), np.ptp(q)) == 0:
        assert math.isnan(metric(p, q))
    else:
        assert metric(p, q) == pytest.approx(SLOWLY[metric](p.tolist(), q.tolist()), rel=1e-9, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS, ids=lambda f: f.__name__)
@given(pair=maps, seed=st.integers(0, 99))
def test_pixels_may_be_shuffled_as_long_as_both_maps_are(metric, pair, seed):
    order = np.random.default_rng(seed).permutation(len(pair[0]))
    shuffled = metric(pair[0][order], pair[1][order])
    assert shuffled == pytest.approx(metric(*pair), rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("metric", [mse, l1, l2, similarity, pearson, smape], ids=lambda f: f.__name__)
@given(pair=maps)
def test_these_do_not_mind_which_map_is_the_true_one(metric, pair):
    assert metric(*pair) == pytest.approx(metric(*pair[::-1]), rel=1e-12, abs=1e-15, nan_ok=True)


@given(pair=maps)
def test_what_textbooks_say_holds(pair):
    p, q = pair
    assert similarity(p, q) == pytest.approx(1 - l1(p, q) / 2)
    assert l1(p, q) ** 2 <= 2 * kl(p, q) + 1e-9, "Pinsker"
    assert l2(p, q) ** 2 == pytest.approx(mse(p, q) * len(p))
    assert maape(p, q) <= min(math.pi / 2, mape(p, q) + 1e-12)
    for metric in (mse, l1, l2, kl, mape, smape, maape):
        assert metric(p, p) == 0
        assert metric(p, q) >= 0


def test_an_estimate_that_is_empty_where_people_are_costs_a_known_price():
    p, q = np.array([0.5, 0.5]), np.array([1.0, 0.0])
    assert kl(p, q) == pytest.approx(0.5 * math.log(0.5) + 0.5 * math.log(0.5 * 2.0**52))
    assert kl(p, q, smallest=0) == math.inf
    assert kl(q, p) == pytest.approx(math.log(2))


def test_l2_is_not_the_norm_of_an_operator():
    p, q = density(np.eye(8)), density(np.ones((8, 8)))
    assert l2(p, q) == pytest.approx(np.linalg.norm(p - q))
    assert l2(p, q) != pytest.approx(np.linalg.norm(p - q, ord=2))


def test_faint_maps_still_correlate():
    p = density([1.0] + [1e-300, 3e-300] * 4)
    assert pearson(p, p) == pytest.approx(1)


def test_a_density_forgets_what_is_negative_or_unknown():
    assert density([3, -2, np.nan, 1]).tolist() == [0.75, 0, 0, 0.25]
    assert density([-1, -5]).tolist() == [0.5, 0.5]
    assert density([1e308, 1e308, 1e308, 1e308]).tolist() == [0.25] * 4
    with pytest.raises(InputError, match="infinite"):
        density([1, np.inf])
    with pytest.raises(InputError, match="at least one"):
        density([])


@pytest.mark.parametrize("metric", METRICS, ids=lambda f: f.__name__)
def test_maps_that_are_not_densities_are_refused(metric):
    with pytest.raises(InputError, match="true map is not a density"):
        metric([1, 2], [0.5, 0.5])
    with pytest.raises(InputError, match="estimated map is not a density"):
        metric([0.5, 0.5], [-0.5, 1.5])
    with pytest.raises(InputError, match="estimated map is not a density"):
        metric([0.5, 0.5], [np.nan, 1])
    with pytest.raises(InputError, match="one grid"):
        metric([0.5, 0.5], [[0.5, 0.5]])


def test_the_workbench_agrees(shared):
    bench = _bench(shared)
    rng = np.random.default_rng(3)
    true, estimate = rng.poisson(2, (32, 32)), rng.normal(2, 3, (32, 32))
    p, q = density(true), density(estimate)
    assert (mse(p, q), l1(p, q)) == pytest.approx(bench.density_errors(true, estimate), rel=1e-12)


def _bench(shared):
    import importlib.util

    place = importlib.util.spec_from_file_location("range_queries", shared / "bench" / "range_queries.py")
    bench = importlib.util.module_from_spec(place)
    place.loader.exec_module(bench)
    return bench


def test_every_metric_is_tried_here():
    public = {name for name in vars(densities) if name.islower() and callable(getattr(densities, name))}
    public = {name for name in public if getattr(densities, name).__module__ == densities.__name__ and name[0] != "_"}
    assert public - {"density", "comparable"} == {metric.__name__ for metric in METRICS}
