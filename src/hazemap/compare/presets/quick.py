"""Every method on the city and on the histograms of DPBench, in ten minutes."""

from hazemap.compare.compared_methods import METHODS
from hazemap.compare.datasets import HISTOGRAMS
from hazemap.compare.figures import against_epsilon, ranking
from hazemap.compare.presets.preset import Preset

QUICK = Preset(
    name="quick",
    what="every method on the city and on five public histograms, ε 0.1, 0.3, 0.5",
    maps=("city", *HISTOGRAMS),
    methods=METHODS,
    epsilons=("0.1", "0.3", "0.5"),
    repetitions=5,
    scores=("mre", "mre_2", "l1", "seconds"),
    figures=(
        ("rectangles", ranking("mre", "How wrong are counts in rectangles?")),
        ("rectangles-epsilon", against_epsilon("mre", "Counts in rectangles, by the price")),
        ("density", ranking("l1", "How wrong is the density?")),
        ("density-epsilon", against_epsilon("l1", "The density, by the price")),
        ("seconds", ranking("seconds", "How long does a release take?")),
    ),
)
