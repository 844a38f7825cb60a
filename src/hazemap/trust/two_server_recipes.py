"""What follows from a round in which two servers sum people's randomised reports to a recipe.

A device randomises its bin as for a secure sum, and splits the bits in shares. The servers prove that they are bits,
and no more of them 1 than an honest report has (Prio3MultihotCountVec); honest coins they cannot prove. They add
nothing: the sum's noise is that of the reports, so its price holds where as many of them are honest people's as the
batch promises. The server that orders a round and each device compute the same.
"""

from hazemap.errors import InputError
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding
from hazemap.protocols.dap.vdaf_configuration import MultihotConfiguration
from hazemap.protocols.vdaf.bit_vector_circuits import shortest_chunk_length
from hazemap.recipes.recipe import Recipe
from hazemap.trust.device_tasks import Task
from hazemap.trust.recipe_terms import check_recipe_sum
from hazemap.trust.report_batch import ReportBatch
from hazemap.trust.report_carriers import ByTwoServers
from hazemap.trust.two_servers import ones_allowed


def recipe_batch(task: Task, carrier: ByTwoServers) -> ReportBatch:
    """Who is asked, and how many reports are in the smallest sum that is opened; `InputError` if none hides another.

    >>> from hazemap.recipes.recipe_file import EXAMPLE, recipe_from_toml
    >>> from hazemap.trust.cohort_assumptions import Cohort
    >>> task = Task.asking(recipe_from_toml(EXAMPLE), "words", 1, Cohort(20_000, 10_000))
    >>> recipe_batch(task, ByTwoServers("https://one.example/", "https://two.example/", 18_000)).honest
    16000
    """
    cohort = task.cohort
    return ReportBatch(cohort.people, carrier.minimum, cohort.corrupt, cohort.sampling)


def recipe_report(task: Task, carrier: ByTwoServers) -> MultihotConfiguration:
    """What the servers prove of each report: its length, and how many bits it sets at most.

    `InputError` unless the smallest sum that they open is over the people that the recipe states, and tells no more
    than it states.
    """
    recipe, law = asked(task)
    batch = recipe_batch(task, carrier)
    check_recipe_sum(recipe, law, batch.minimum, batch.honest)
    most = ones_allowed(law, recipe.size, batch)
    return MultihotConfiguration(recipe.size, shortest_chunk_length(recipe.size + most.bit_length()), most)


def asked(task: Task) -> tuple[Recipe, Symmetric | Asymmetric | UnaryEncoding]:
    """The recipe of a round, and how its reports are randomised."""
    if task.recipe is None or task.randomiser is None:
        raise InputError("this round asks no recipe")
    return task.recipe, task.randomiser
