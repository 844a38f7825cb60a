"""What follows from a round in which two servers sum people's randomised reports to a recipe.

A device randomises its bin as for a secure sum, and splits the bits in shares. The servers prove that they are bits,
and no more of them 1 than an honest report has (Prio3MultihotCountVec); honest coins they cannot prove. Each
adds reports of people who hold nothing, as many as the price counts on others: so it holds where one server is honest,
whoever else has reported. The server that orders a round and each device compute the same.
"""

from hazemap.errors import InputError
from hazemap.federated.protocols.dap.blank_reports import BlankReports
from hazemap.federated.protocols.dap.vdaf_configuration import MultihotConfiguration
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.recipe_terms import check_recipe_sum
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import ByTwoServers
from hazemap.federated.trust.two_servers import ones_allowed
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding
from hazemap.vdaf.bit_vector_circuits import shortest_chunk_length


def recipe_batch(task: Task, carrier: ByTwoServers) -> ReportBatch:
    """Who is asked, and how many reports are in the smallest sum that is opened; `InputError` if none hides another.

    >>> from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
    >>> from hazemap.federated.trust.cohort_assumptions import Cohort
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


def recipe_blank(task: Task, carrier: ByTwoServers) -> BlankReports:
    """What each server adds: with the person's own report they are as many as the price is computed for.

    `InputError` for a law that no task can name.
    """
    _, law = asked(task)
    return BlankReports.of(law, recipe_batch(task, carrier).honest - 1)


def asked(task: Task) -> tuple[Recipe, Symmetric | Asymmetric | UnaryEncoding]:
    """The recipe of a round, and how its reports are randomised."""
    if task.recipe is None or task.randomiser is None:
        raise InputError("this round asks no recipe")
    return task.recipe, task.randomiser
