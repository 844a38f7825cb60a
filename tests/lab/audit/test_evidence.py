"""Evidence is judged by what it says of noise that is as stated, and of noise that is not.

The noise that is judged is drawn from a fixed seed: what is asserted is about the judge, so each assertion holds
always or never. Bounds are asked for at an error of 1e-7.
"""

import numpy as np
import pytest

from hazemap.lab.audit.audited_settings import FORMS
from hazemap.lab.audit.canary_trials import KINDS, CanaryCrowd, Guesses
from hazemap.lab.audit.evidence import noise_independence as noise
from hazemap.lab.audit.evidence.distinguishing_events import distinguished
from hazemap.lab.audit.evidence.empirical_privacy_loss import Laws
from hazemap.lab.audit.evidence.noise_residuals import Residual
from hazemap.lab.audit.findings import Claim
from hazemap.lab.audit.observed_output import Observation
from hazemap.lab.audit.synthetic_people import HEADER, Square, row, standard

ALPHA = 1e-7
SEED = 20_260


def laplace(scale, size, rng):
    rate = -np.expm1(-1 / scale)
    return rng.geometric(rate, size) - rng.geometric(rate, size)


def residual(noise, lag=1, law="law", shifted=1):
    shift = np.zeros(len(noise), dtype=np.int64)
    shift[:shifted] = lag
    return Residual(law, np.asarray(noise, dtype=np.int64), shift, shift != 0, 1.0, lag, 0)


def law_of(draw, runs=20, size=1024, lag=1, claim=None, shifted=1):
    laws = Laws(claim or Claim("ε", 1.0))
    for _ in range(runs):
        laws.add([residual(draw(size), lag, shifted=shifted)])
    return laws.lower(ALPHA)


def test_noise_as_wide_as_it_should_be_gives_a_bound_just_below_and_narrower_noise_one_above():
    rng = np.random.default_rng(SEED)
    assert 0.85 < law_of(lambda size: laplace(1, size, rng)) < 1.0
    assert law_of(lambda size: laplace(0.5, size, rng)) > 1.6
    assert 0.75 < law_of(lambda size: laplace(3, size, rng), lag=3) < 1.0
    assert law_of(lambda size: laplace(2, size, rng), lag=3) > 1.25


def test_many_small_moves_add_up_to_the_loss_of_all():
    rng = np.random.default_rng(SEED)
    assert 0.6 < law_of(lambda size: laplace(9, size, rng), shifted=9) < 1.0
    assert law_of(lambda size: laplace(4.5, size, rng), shifted=9) > 1.2


def test_normal_noise_is_judged_in_rho():
    rng, claim = np.random.default_rng(SEED), Claim("ρ", 0.5)
    assert 0.15 < law_of(lambda size: np.rint(rng.normal(0, 10, size)), lag=10, claim=claim) < 0.5
    assert law_of(lambda size: np.rint(rng.normal(0, 5, size)), lag=10, claim=claim) > 0.8


def test_noise_that_is_a_little_too_narrow_is_found_by_many_numbers():
    rng, claim = np.random.default_rng(SEED), Claim("ρ", 0.5)
    sound, narrow = (law_of(lambda n, v=v: np.rint(rng.normal(0, 30 * v, n)), 24, 8192, 30, claim) for v in (1, 0.92))
    assert 0.44 < sound < 0.5 < narrow
    assert 0.96 < law_of(lambda size: laplace(3, size, rng), 24, 8192, lag=3) < 1.0
    assert law_of(lambda size: laplace(2.8, size, rng), 24, 8192, lag=3) > 1.0


def test_a_divergence_is_bounded_from_below():
    from hazemap.lab.audit.evidence.empirical_privacy_loss import best_tilt, divergence

    rng = np.random.default_rng(SEED)
    for apart in (0.2, 1.0, 2.0):
        taught, judged = ((rng.normal(apart, 1, 50_000), rng.normal(0, 1, 50_000)) for _ in range(2))
        tilt = best_tilt(*taught, ALPHA)
        assert 0 < divergence(*judged, tilt, ALPHA) < apart**2 / 2
        assert divergence(judged[1], judged[1][::-1], tilt, ALPHA) == 0.0


def test_noise_with_gaps_shows_the_sum_in_its_remainders():
    rng = np.random.default_rng(SEED)

    def rounded(size):
        return laplace(4096, size, rng).astype(np.float16).astype(np.int64)

    assert law_of(lambda size: laplace(4096, size, rng), runs=6) < 1 / 4096 + 0.02
    assert law_of(rounded, runs=6) > 1.0


def test_noise_whose_tails_are_cut_is_found_by_the_last_of_its_numbers():
    rng = np.random.default_rng(SEED)
    assert law_of(lambda size: np.clip(laplace(1, size, rng), -4, 4)) > 2.0
    assert law_of(lambda size: np.clip(laplace(3, size, rng), -10, 10), lag=3) > 2.0
    claim = Claim("ρ", 0.5)
    assert law_of(lambda size: np.clip(np.rint(rng.normal(0, 10, size)), -15, 15), lag=10, claim=claim) > 0.6


def test_values_that_never_occur_are_found_wherever_they_are():
    rng = np.random.default_rng(SEED)

    def without(size):
        drawn = laplace(3, size, rng)
        return np.where(drawn == 2, 1, drawn)

    assert law_of(lambda size: laplace(3, size, rng)) < 1 / 3
    assert law_of(without) > 2.0


def test_how_far_people_move_numbers_is_measured_and_not_believed():
    from hazemap import AtMostRows, Quadtree
    from hazemap.encoders import Counts
    from hazemap.lab.audit.audited_settings import AuditedSetting
    from hazemap.lab.audit.evidence.noise_residuals import ObservedMovement, Sums
    from hazemap.lab.audit.synthetic_people import BOX
    from hazemap.lab.audit.trial_types import SensitivityTrial
    from hazemap.queries.algorithm_session import Exchange
    from hazemap.queries.noisy_queries import Answer, Query
    from hazemap.spatial.bounding_box import Box

    trial = SensitivityTrial(square := Square(5), AuditedSetting("flat:5", "rows:3"), 6)
    tree = Quadtree.around(Box.parse(BOX), 5)
    query = Query(Counts(square.leaves, AtMostRows(3)), share=1)
    assert square.leaves.tree == tree
    sums = Sums(*(file.table for file in trial.files()))
    there, gone = sums.of(query)
    assert there.sum() - gone.sum() == 3 * trial.people

    def measured(kept):
        rng, found = np.random.default_rng(SEED), ObservedMovement(Claim("ε", 1.0), trial.people, sums)
        for run in range(12):
            exact = gone + (there - gone) // 3 * kept if run % 2 else gone
            answer = Answer(exact + laplace(3, len(exact), rng), np.array([3 * 2**0.5]))
            found.add(Observation(transcript=(Exchange(query, answer),)), bool(run % 2))
        return found

    sound, one_more = measured(3), measured(4)
    assert 0.6 < sound.lower(ALPHA) < 1.0 and sound.farther() > ALPHA
    assert one_more.lower(1e-3) > 1.0 and one_more.farther() < ALPHA


def test_rounds_of_a_run_add_up():
    rng = np.random.default_rng(SEED)

    def of_two(scale):
        laws = Laws(Claim("ε", 1.0))
        for _ in range(20):
            laws.add([residual(laplace(scale, 1024, rng), law=law) for law in ("first", "second")])
        return laws.lower(ALPHA)

    assert 0.7 < of_two(2) < 1.0
    assert of_two(1) > 1.5


def worst(runs):
    return min(test.pvalue for test in noise.tests(runs, "runs"))


def test_independent_noise_passes_and_noise_that_is_used_again_does_not():
    rng = np.random.default_rng(SEED)
    sound = [[residual(laplace(2, 600, rng)), residual(laplace(5, 600, rng), law="other")] for _ in range(8)]
    assert worst(sound) > ALPHA
    again = [run[:] for run in sound]
    again[5][0] = residual(np.roll(sound[0][0].noise, 17))
    assert noise.copied(again) < ALPHA < noise.copied(sound)
    same = [[residual(each := laplace(2, 600, rng)), residual(-each, law="other")] for _ in range(8)]
    assert worst(same) < ALPHA


def test_answers_of_other_files_with_the_same_noise_are_found():
    from hazemap import AtMostRows
    from hazemap.encoders import Counts
    from hazemap.lab.audit.evidence.noise_independence import Copies
    from hazemap.queries.algorithm_session import Exchange
    from hazemap.queries.noisy_queries import Answer, Query

    rng, query = np.random.default_rng(SEED), Query(Counts(Square(5).leaves, AtMostRows(1)), share=1)

    def judged(noise, people=50):
        found = Copies()
        for each in noise:
            sums = each + np.bincount(rng.integers(0, 700, people), minlength=1024)
            answer = Answer(sums, np.array([1.357]))
            found.add([Observation(transcript=(Exchange(query, answer),))])
        [test] = found.tests()
        return test.pvalue

    noise = [laplace(1, 1024, rng) for _ in range(30)]
    assert judged(noise) == 1.0
    assert judged([*noise, noise[3]]) < ALPHA
    nothing = [np.zeros(1024, dtype=np.int64)] * 30  # noise that is nearly always 0 is alike by chance
    assert judged(nothing) == 1.0


def test_noise_that_depends_on_where_people_are_is_found():
    rng = np.random.default_rng(SEED)

    def run(scale):
        drawn = laplace(2, 600, rng)
        drawn[:40] = laplace(scale, 40, rng)
        occupied = np.arange(600) < 40
        return [Residual("law", drawn, np.zeros(600, dtype=np.int64), occupied, 1.0, 1, 0)]

    assert worst([run(2) for _ in range(20)]) > ALPHA
    assert worst([run(0.2) for _ in range(20)]) < ALPHA


def test_an_event_is_chosen_on_half_of_the_runs_and_counted_on_the_rest():
    rng = np.random.default_rng(SEED)
    claim = Claim("ε", 1.0)
    one, other = ([{"total": float(x)} for x in rng.normal(mean, 1, 400)] for mean in (0, 4))
    found = distinguished(claim, one, other)
    assert found.here[1] == found.there[1] == 200 and found.lower(ALPHA) > 1.0
    assert distinguished(claim, one, one).lower(ALPHA) < 1.0
    words = distinguished(claim, [{"says": "5 rows"}] * 80, [{"says": "6 rows"}] * 80)
    assert words.lower(1e-4) > 1.0
    absent = distinguished(claim, [{"says": "yes", "more": 1.0}] * 80, [{"says": "yes"}] * 80)
    assert absent.lower(1e-4) > 1.0


def published(square, numbers):
    """As much of a release as guesses look at."""
    from hazemap.cellmap import CellMap
    from hazemap.releases import Release

    counts = CellMap.independent(square.leaves, numbers.astype(np.float64), np.ones(square.size), 0.0)
    return Release(counts, None, None, ())


@pytest.mark.parametrize(
    ("scale", "partner", "least", "most"), [(1, 0, 0.55, 1.0), (0.5, 0, 1.3, 2.0), (1, 1, 1.2, 2.0)]
)
def test_guesses_of_canaries_prove_what_noise_and_partners_give_away(scale, partner, least, most):
    rng, square = np.random.default_rng(SEED), Square(5)
    crowd = CanaryCrowd(square, KINDS[0], 1)
    found = Guesses(crowd)
    for _ in range(40):
        coins = rng.random(crowd.size) < 0.5
        sums = np.zeros(square.size, dtype=np.int64)
        for number in range(crowd.size):
            [place], beside = crowd.places(number)
            sums[place] += coins[number]
            sums[beside] += 1 - partner * coins[number]
        found.add(Observation(release=published(square, sums + laplace(scale, square.size, rng))), coins)
    assert least < found.lower(ALPHA) < most


def test_canaries_have_places_of_their_own():
    for spread in (False, True):
        crowd = CanaryCrowd(Square(4), KINDS[0], 3, spread)
        places = [
            place for number in range(crowd.size) for place in (*crowd.places(number)[0], crowd.places(number)[1])
        ]
        assert len(set(places)) == len(places) and max(places) < Square(4).size - 1


@pytest.mark.parametrize("form", FORMS)
def test_a_table_holds_the_same_rows_in_every_form(form, tmp_path):
    from hazemap import AtMostRows
    from hazemap.lab.audit.audited_settings import WITH_POINTS, written
    from hazemap.readers.open_table import open_table

    square = Square(3)
    lines = [row(square, f"u{number % 7}", number % 20) for number in range(40)]
    place = {} if form in WITH_POINTS else {"lon": "lon", "lat": "lat"}
    source = written(form, HEADER + b"".join(line.text for line in lines), tmp_path)
    votes = open_table(source, person="user", **place).votes(square.leaves.tree, AtMostRows(100))
    places = np.bincount(np.arange(40) % 20, minlength=64)
    assert square.leaves.total(votes.cells, votes.weights).tolist() == places.tolist()


def test_what_a_run_takes_away_again_is_looked_at(tmp_path):
    from hazemap.lab.audit.observed_output import REMOVED, left_behind

    (tmp_path / REMOVED).mkdir()
    (tmp_path / REMOVED / "3-0.7f94ceddfa726813").write_bytes(b"chance")
    (tmp_path / REMOVED / "3-1.journal").write_bytes(b'1a9c906b7d8c1852 {"ended":true,"people":179}\nx\n')
    (tmp_path / REMOVED / "4-2.journal").write_bytes(b"other")
    assert left_behind(tmp_path, 3) == {
        "removed file 1 line 0": "chance",
        "removed .journal 1 line 0.ended": "true",
        "removed .journal 1 line 0.people": "179",
        "removed .journal 1 line 1": "x",
    }


def test_the_neighbours_differ_in_one_person_who_passes_the_rule():
    for rule, most in (("one row", 1), ("rows:3", 3), ("cells:3", 3)):
        for pair in standard(Square(4), rule, most):
            assert pair.there.lines[: len(pair.gone.lines)] == pair.gone.lines
            added = pair.there.lines[len(pair.gone.lines) :]
            assert {line.person for line in added} == {"zz"} and len(added) >= 3 * most
            assert pair.gone.content.startswith(HEADER)
            assert len(pair.gone.lines) == 2 * most * pair.gone.people, (
                "others have more rows than the rule leaves, too"
            )


def test_what_seems_certain_is_confirmed_on_other_runs():
    from hazemap.lab.audit.evidence.distinguishing_events import certain, confirmed

    claim = Claim("ε", 0.1)
    one, other = [{"says": "179 people", "size": 5.0}] * 20, [{"says": "178 people", "size": 5.0}] * 20
    events = certain(one[:3], other[:3])
    assert confirmed(claim, events, one, other) < (1e-10, events[0]) and events[0].fact == "says"
    assert confirmed(claim, events, one, one) == (1.0, None) == confirmed(claim, (), one, other)
    assert certain(one, one) == ()
    later = [{"time": at, **run} for at, run in enumerate([*one[:3], *other[:3]])]
    by_time = certain(later[:3], later[3:])  # what is true of time alone does not hide what is not
    again = [[{"time": 9, **run} for run in side] for side in (one, other)]
    assert [each.fact for each in by_time] == ["time", "says"]
    assert confirmed(claim, by_time, *again)[1] == by_time[1]
    [larger] = certain([{"size": 7.0}] * 3, [{"size": 5.0}, {"size": 6.0}])
    assert str(larger) == "size ≥ 6.5"
    assert confirmed(Claim("ε", 3.0), events, one, other)[0] > 0.01  # at a large ε it says nothing
