"""Which trials an audit consists of: all for one setting, or the fixed set of the short audit."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from hazemap.lab.audit.audited_settings import (
    ALL_STATISTICS,
    CSV,
    CURATOR,
    DISTRICTS,
    FORMS,
    LOCAL,
    MAPS,
    ONE_REPORT,
    PARTS,
    RECIPES,
    REPORT,
    REPORTS,
    SECURE_SUM,
    SHUFFLE,
    STATISTICS,
    STUDY,
    SUM,
    TWO_SERVERS,
    AuditedSetting,
    most_rows,
)
from hazemap.lab.audit.canary_trials import KINDS, CanaryCrowd, CanaryTrial, CsvLineTrial
from hazemap.lab.audit.device_trials import RecipeTrial, ShuffleTrial
from hazemap.lab.audit.single_query_trials import QUESTIONS, ExactTrial, RowChoiceTrial, SingleQueryTrial
from hazemap.lab.audit.synthetic_people import BOX, Square, alone, among_absent, outside, reporting, standard, values
from hazemap.lab.audit.trial_types import (
    AuditTrial,
    LedgerCapTrial,
    NeighbouringTablesTrial,
    NoiseIndependenceTrial,
    SensitivityTrial,
)
from hazemap.privacy.amplification.aggregate_price import aggregate_price
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.queries.noisy_queries import Growth

DEPTH = 5
"""The square of places is cut so often: 1,024 places."""

METHODS = (
    *("auto", "adaptive", "fitted-level", "adaptive-grid", "uniform-grid", "kd-tree", "kd-tree-uniform", "kd-hybrid"),
    *(
        "privtree",
        "htf",
        "htf-published",
        "htf+",
        "prefix",
        "total",
        "sketch",
        "pyramid:64",
        "pyramid-published:64",
        "dense-pyramid",
    ),
    *("flat:5", "hierarchical:4", "geometric:4", "hb:4", "hb-least:4", "privlet:4", "singular:5", "laplace-clip:5"),
    "top:10",
)
"""Every method of `hazemap release` that needs no districts, with levels that suit the square.

The short audit gives each the rule at its place: an adaptive grid is made under no rule of distinct cells.
"""

RULES = ("one row", "rows:3", "cells:3", "one vote", "rows are people")
CURATORS = ("kd-tree", "kd-tree-uniform", "kd-hybrid", "privtree", "htf", "htf-published", "htf+")
"""Those of them that ask for more than sums."""

MARKED = tuple(method for method, options in MAPS.items() if "mark" in options)
"""Maps of which people outside are no part."""

SUMS_ONLY = tuple(method for method in METHODS if method.partition(":")[0] not in CURATORS)
ANSWERED: dict[str, tuple[str, ...]] = {
    SECURE_SUM: SUMS_ONLY,
    REPORTS: SUMS_ONLY,
    TWO_SERVERS: tuple(method for method in SUMS_ONLY if method != "privlet:4"),
    ONE_REPORT: ("auto", "adaptive", "fitted-level", "total", "flat:5", "hierarchical:4", "geometric:4", "singular:5"),
}
"""What trust models answer that do not answer everything."""
CANARIES = ("flat:5", "singular:5", "laplace-clip:5")
"""Methods whose published numbers are one for each place, so that canaries can be told by them."""


FINE = 7
"""So often the square is cut where many numbers are wanted: 16,384 places."""

CROWDS = (1, 2, 3, 5)
"""How many people stand in one place where a tree is grown, and one more or not."""

_FEW = 3
"""So many people at least are in a sum of the protocol."""

REPORTS_A_RUN = 25
"""So many reports of one person take about as long as one release."""


def square(setting: AuditedSetting) -> Square:
    """The places of a setting: those of its quadtree."""
    name, _, depth = setting.cells.partition(":")
    box = setting.box or BOX
    return Square(int(depth), box) if name == "quadtree" and depth else Square(DEPTH, box)


def of_setting(setting: AuditedSetting, runs: int) -> list[AuditTrial]:
    """Everything that is tried with one setting: `runs` on either side of each pair of neighbours."""
    places, most = square(setting), most_rows(setting.bounding)
    if setting.method == f"{STATISTICS}:values-only":
        return [NeighbouringTablesTrial(setting, values(places), runs)]
    pairs = standard(places, setting.bounding, most)
    if setting.trust == LOCAL:
        return [NeighbouringTablesTrial(setting, alone(places), REPORTS_A_RUN * runs)]
    if setting.trust == REPORTS:
        return [NeighbouringTablesTrial(setting, pair, runs) for pair in reporting(places)]
    trials: list[AuditTrial] = [NeighbouringTablesTrial(setting, pair, runs) for pair in pairs]
    trials += of_movement(setting, max(2, runs // 2))
    trials += of_rows(setting, runs)
    if setting.method in CANARIES and setting.trust == CURATOR and setting.claim.measure == "ε":
        crowd = CanaryCrowd(
            places, KINDS[0 if setting.people_have_ids else 1], most, setting.bounding.startswith("cells")
        )
        trials.append(CanaryTrial(crowd, setting, max(4, runs // 5)))
    return trials


def of_rows(setting: AuditedSetting, runs: int) -> list[AuditTrial]:
    """Numbers without noise, people outside, and which rows count: of a curator, whatever the method and the rule.

    Which rows count is seen in a map of one level, whatever is asked: rows are bounded before.
    """
    if setting.trust != CURATOR:
        return []
    trials: list[AuditTrial] = [ExactTrial(square(setting), setting)]
    if not setting.of_values and setting.method not in MARKED and setting.outside == "people":
        trials.append(NeighbouringTablesTrial(setting, outside(square(setting)), runs))
    if setting.bounding not in ("one vote", "rows are people"):
        flat = AuditedSetting(f"flat:{DEPTH}", setting.bounding, epsilon=setting.epsilon, rho=setting.rho)
        trials.append(RowChoiceTrial(Square(DEPTH), flat, max(2, min(runs, 8))))
    return trials


def of_movement(setting: AuditedSetting, runs: int) -> list[AuditTrial]:
    """How far people move numbers: where sums are asked for, and the same whoever's cells are drawn."""
    drawn = setting.bounding.startswith("cells") and setting.method not in CANARIES
    return [] if drawn or setting.trust == LOCAL else [SensitivityTrial(square(setting), setting, runs)]


def of_files(releases: int = 6) -> list[AuditTrial]:
    """What lines of a file may do, whatever the method: all kinds of lines, alone and in crowds."""
    plain, votes = AuditedSetting("flat:5"), AuditedSetting("flat:5", "one vote")
    trials: list[AuditTrial] = []
    for kind in KINDS:
        setting = votes if kind.only == "one vote" else plain
        trials.append(CanaryTrial(CanaryCrowd(Square(DEPTH), kind, 1), setting, releases))
        trials.append(CsvLineTrial(Square(DEPTH), setting, kind, "first"))
        if "quote" in kind.name or "bytes" in kind.name or "fields" in kind.name:
            trials.append(CsvLineTrial(Square(DEPTH), setting, kind, "last"))
            trials.append(CsvLineTrial(Square(DEPTH), setting, kind, "in the middle", late=True, runs=2))
    return trials


def of_questions(times: int) -> list[AuditTrial]:
    """Every kind of question that is no sum, asked by itself."""
    return [
        SingleQueryTrial(AuditedSetting(method, cells="quadtree:2"), times, crowd)
        for method, kind in QUESTIONS.items()
        for crowd in (CROWDS if kind is Growth else (0,))
    ]


def of_numbers(runs: int) -> list[AuditTrial]:
    """What finite numbers may do: noise so wide that floats of 16 or of 32 bits would show."""
    trials: list[AuditTrial] = []
    for epsilon in ("1/4096", "1/268435456"):
        setting = AuditedSetting("flat:5", epsilon=epsilon)
        trials.append(NeighbouringTablesTrial(setting, standard(square(setting), setting.bounding, 1)[0], runs))
    return trials


PENTAGON = "10.30,64.60,10.80,64.80"
"""A box around one of the twelve pentagons among H3's hexagons: at resolution 5 a good part of the box is in it."""


def of_width(runs: int = 12) -> list[AuditTrial]:
    """Whether noise is as wide as it has to be, to a few parts of a hundred: hundreds of thousands of numbers."""
    cells = f"quadtree:{FINE}"
    settings = [
        AuditedSetting(f"flat:{FINE}", cells=cells),
        AuditedSetting(f"flat:{FINE}", epsilon=None, rho="0.5", cells=cells),
        AuditedSetting(f"flat:{FINE}", delta="1e-6", cells=cells),
    ]
    return [NeighbouringTablesTrial(each, standard(square(each), each.bounding, 1)[0], runs) for each in settings]


def of_sources(runs: int = 4) -> list[AuditTrial]:
    """How far people move numbers whose rows stand in other files than one of CSV, or on the edges of cells."""
    trials: list[AuditTrial] = [
        SensitivityTrial(Square(DEPTH), AuditedSetting("flat:5", form=form), runs) for form in FORMS if form != CSV
    ]
    trials.append(SensitivityTrial(Square(DEPTH, corners=True), AuditedSetting("flat:5"), runs))
    return trials


def of_places(runs: int = 4) -> list[AuditTrial]:
    """Hexagons, the one of them that is none, and districts: the law of the noise, and how far people move numbers."""
    trials: list[AuditTrial] = []
    for setting in elsewhere():
        trials += of_setting(replace(setting, epsilon="0.1"), 8)[:1]
        trials += of_movement(setting, runs)
    return trials


def of_values(runs: int = 4) -> list[AuditTrial]:
    """Statistics of all kinds: at a small ε, where what is exact shows; and how far people move counters."""
    trials: list[AuditTrial] = []
    for method in ALL_STATISTICS:
        trials += of_setting(AuditedSetting(method, epsilon="1" if "values-only" in method else "0.1"), 10)[:1]
        if "values-only" not in method:
            trials += of_movement(AuditedSetting(method), runs)
    return trials


def of_devices() -> list[AuditTrial]:
    """What only devices do: some drop out of a secure sum; a report is randomised by one person alone."""
    dropping = AuditedSetting("flat:5", trust=SECURE_SUM, dropping="7/20")
    report = AuditedSetting("flat:2", trust=LOCAL, cells="quadtree:2")
    return [NeighbouringTablesTrial(dropping, among_absent(Square(DEPTH)), 12), SingleQueryTrial(report, 8000)]


def of_recipes(local: str, runs: int) -> list[AuditTrial]:
    """Devices with event stores answer a recipe: one report, an answer of a study, and a sum of the real protocol.

    Sums of a few people are stated at their price, by the exact law.
    """
    law, delta = BitFlipLaw.asymmetric(Fraction(local)), Fraction(1, 10**6)
    trials: list[AuditTrial] = [
        RecipeTrial(AuditedSetting(REPORT, trust=RECIPES, epsilon=local, local=local), 1, REPORTS_A_RUN * runs)
    ]
    price = str(aggregate_price(law, _FEW, delta).epsilon)
    for method, times in ((STUDY, 10 * runs), (SUM, 2 * runs)):
        setting = AuditedSetting(method, trust=RECIPES, epsilon=price, delta=str(delta), local=local)
        trials.append(RecipeTrial(setting, _FEW, times))
    return trials


def of_shuffles(epsilon: str, runs: int) -> list[AuditTrial]:
    """The real protocol of a shuffle in parts, as its analyser, its shuffler and people who work with one see it."""
    return [ShuffleTrial(AuditedSetting(PARTS, trust=SHUFFLE, epsilon=epsilon), runs)]


def elsewhere() -> list[AuditedSetting]:
    """Methods over hexagons, one of them no hexagon, and over districts."""
    found = [AuditedSetting(method, cells="h3:5-8") for method in ("auto", "fitted-level", "flat:8", "hierarchical:8")]
    found += [
        AuditedSetting("flat:5", cells="h3:3-5", box=PENTAGON),
        AuditedSetting("adaptive", cells="h3:3-6", box=PENTAGON),
    ]
    return found + [AuditedSetting(method, cells=DISTRICTS, box=None) for method in ("national:20", "adaptive", "flat")]


def short() -> list[AuditTrial]:
    """The fixed set of five minutes: every method, rule and trust model once at least, and every kind of line.

    Methods are tried at a small ε, where anything exact that is published shows in ten runs.
    """
    trials: list[AuditTrial] = []
    for number, method in enumerate(METHODS):
        trials += of_setting(AuditedSetting(method, RULES[number % len(RULES)], epsilon="0.1"), 10)[:1]
    for number, method in enumerate((*METHODS, *MAPS, *ALL_STATISTICS)):
        rule = RULES[(number + 1) % len(RULES)] if method not in ALL_STATISTICS else RULES[0]
        trials += of_rows(AuditedSetting(method, rule), 8)[:1]
    for number, method in enumerate(MAPS):
        for rule in RULES[number : number + 2]:
            trials += of_setting(AuditedSetting(method, rule, epsilon="0.1"), 10)[:1]
        trials += of_movement(AuditedSetting(method), 3)
    for rule in RULES:
        trials += of_setting(AuditedSetting("flat:5", rule), 12)
        trials += of_setting(AuditedSetting("auto", rule), 8)[:1]
    trials += of_setting(AuditedSetting(STATISTICS), 10)[:1]
    trials += of_setting(AuditedSetting("auto", "one row", box=None, cells="quadtree", epsilon="0.1"), 8)[:1]
    trials += [
        NeighbouringTablesTrial(AuditedSetting("auto", rule, epsilon="0.1"), outside(Square(DEPTH)), 10)
        for rule in RULES
    ]
    for method, rule in (("auto", "rows:3"), ("flat:5", "rows:3")):
        trials += of_setting(AuditedSetting(method, rule, epsilon=None, rho="0.5"), 12)[:1]
    for rule in RULES:
        trials += of_movement(AuditedSetting("auto", rule), 3)
    trials += [
        *of_movement(AuditedSetting("flat:5", "rows:3", epsilon=None, rho="0.5"), 6),
    ]
    trials += of_movement(AuditedSetting("flat:5", trust=SECURE_SUM), 6)
    trials += of_setting(AuditedSetting("flat:5", trust=SECURE_SUM), 12)[:1]
    trials += of_setting(AuditedSetting("auto", trust=SECURE_SUM), 8)[:1]
    for trust in (TWO_SERVERS, ONE_REPORT):
        trials += of_setting(AuditedSetting("flat:5", trust=trust), 12)[:1]
        trials += of_setting(AuditedSetting("auto", trust=trust), 8)[:1]
    trials += of_setting(AuditedSetting("flat:3", trust=LOCAL, cells="quadtree:3"), 40)
    trials.append(LedgerCapTrial(AuditedSetting("flat:5"), standard(Square(DEPTH), "one row", 1)[0]))
    trials.append(NoiseIndependenceTrial(AuditedSetting("flat:5"), standard(Square(DEPTH), "one row", 1)[0]))
    trials += [*of_width(), *of_sources(), *of_places(), *of_values(), *of_devices()]
    trials += of_recipes("2", 10)
    trials += of_shuffles("0.1", 20)
    trials += of_setting(AuditedSetting("flat:3", trust=REPORTS, cells="quadtree:3", delta="1e-6"), 12)
    return [*trials, *of_questions(1500), *of_numbers(4), *of_files(4)]


def thorough(
    methods: Sequence[str], rules: Sequence[str], trusts: Sequence[str], epsilon: str | None, rho: str | None, runs: int
) -> list[AuditTrial]:
    """All these together; combinations that the trust model refuses are left out."""
    trials: list[AuditTrial] = []
    for trust in trusts:
        if trust in (RECIPES, REPORTS, SHUFFLE) and epsilon is None:
            continue
        if trust == SHUFFLE:
            trials += of_shuffles(epsilon or "1", runs)
            continue
        if trust == RECIPES:
            trials += of_recipes(epsilon or "1", runs)
            continue
        for method in methods:
            for rule in rules if trust == CURATOR else rules[:1]:
                known = {each.partition(":")[0] for each in ANSWERED.get(trust, METHODS)}
                if trust in ANSWERED and method.partition(":")[0] not in known:
                    continue
                cells = "quadtree:3" if trust in (LOCAL, REPORTS) else f"quadtree:{DEPTH}"
                delta = "1e-6" if trust == REPORTS else None
                trials += of_setting(AuditedSetting(method, rule, trust, epsilon, rho, cells, delta=delta), runs)
    return trials
