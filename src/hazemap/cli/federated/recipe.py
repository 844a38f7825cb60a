"""`hazemap recipe`: write questions to devices about their events, and check them before they are sent."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver, note
from hazemap.cli.federated.device_options import StoreOptions
from hazemap.cli.shared_options import AsJson, Force
from hazemap.errors import InputError

if TYPE_CHECKING:
    from hazemap.federated.device.recipes.recipe_check import RecipeCheck
    from hazemap.federated.recipes.policy import ShippedPolicy
    from hazemap.federated.recipes.recipe import Recipe, RecipePrice

app = typer.Typer(
    name="recipe",
    help="Write a recipe (a question to devices about their events) and check it before it is sent.",
    epilog="Example: [bold]hazemap recipe example > words.toml[/bold]",
    no_args_is_help=True,
)

EXPLAIN = "Example: [bold]hazemap device explain words.toml --policy keyboard.toml[/bold]"

RecipeFile = Annotated[Path, typer.Argument(metavar="RECIPE", help="Recipe: TOML, or JSON with the same names.")]
ShippedPolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="Policy of the devices: TOML, JSON or signed."),
]


@app.command(epilog="Example: [bold]hazemap recipe check words.toml --policy keyboard.toml --people 100000[/bold]")
def check(
    recipe: RecipeFile,
    policy: ShippedPolicyFile = None,
    people: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of people. Default: the minimum cohort.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain what a recipe asks, costs and can find, without any data; with --policy also whether devices would answer
    it.

    Exit code 4 means that they would not.
    """
    from hazemap.federated.device.recipes.recipe_check import check_lines, check_recipe
    from hazemap.federated.recipes.policy_document import read_policy
    from hazemap.federated.recipes.recipe import RecipePrice
    from hazemap.federated.recipes.recipe_file import read_recipe

    found = read_recipe(recipe)
    price = RecipePrice.of(found)
    judged = check_recipe(found, read_policy(policy), found.minimum_cohort) if policy else None
    facts = _facts(found, price, judged, people or found.minimum_cohort)
    deliver(facts, as_json, *check_lines(found, price, judged, people or found.minimum_cohort))
    if not price.kept or (judged and judged.reasons):
        raise typer.Exit(4)


@app.command(epilog="Example: [bold]hazemap recipe example > words.toml[/bold]")
def example() -> None:
    """Print a working recipe with comments, that of the paper's appendix B."""
    from hazemap.federated.recipes.recipe_file import EXAMPLE

    typer.echo(EXAMPLE, nl=False)


@app.command(epilog="Example: [bold]hazemap recipe write words.toml -o words.json[/bold]")
def write(
    recipe: RecipeFile,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="File to write: .toml or .json.")],
    best: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Choose the chances of the reports' bits that count best, at the recipe's price, a bin that this "
            "share of the people report, such as 0.1. Seconds.",
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a recipe with all defaults filled in, as TOML or JSON, and print its digest."""
    from hazemap.federated.recipes.recipe import with_best_encoding
    from hazemap.federated.recipes.recipe_file import read_recipe, recipe_to_json, recipe_to_toml
    from hazemap.files.atomic_write import write_whole

    found = read_recipe(recipe) if best is None else with_best_encoding(read_recipe(recipe), best)
    writers = {".toml": recipe_to_toml, ".json": recipe_to_json}
    if output.suffix not in writers:
        raise InputError(f"a recipe is written as .toml or .json, not as {output.name}")
    if output.exists() and not force:
        raise InputError(f"the file {output} exists: choose another name, or replace it with --force")
    write_whole(output, writers[output.suffix](found).encode())
    facts = {"id": found.id, "version": found.version, "digest": found.digest, "output": str(output)}
    deliver(facts, as_json, found.digest)
    if not as_json:
        note(f"{output}: {found.id}, version {found.version}")


def explain(recipe: RecipeFile, store: StoreOptions, policy: ShippedPolicyFile = None, as_json: AsJson = False) -> None:
    """Say in plain words what a recipe would have this device send, before it is sent. No rows are read.

    Without --policy it goes by the policy that the device has accepted, within its owner's rules, and says every reason
    why the device would refuse. Exit code 4 means that it would.
    """
    from hazemap.federated.device.recipes.recipe_check import admit, check_recipe, recipe_explanation
    from hazemap.federated.recipes.policy_document import read_policy
    from hazemap.federated.recipes.recipe_file import read_recipe

    found, reasons = read_recipe(recipe), tuple[str, ...]()
    touched = admit(found, read_policy(policy)).touched if policy else None
    own = _own_policy(store) if policy is None else None
    if own is not None:
        judged = check_recipe(found, own, found.minimum_cohort)
        touched, reasons = judged.admitted.touched if judged.admitted else None, judged.reasons
    lines = recipe_explanation(found, touched, reasons)
    fields = touched and [str(each) for each in touched]
    facts: dict[str, Any] = {"id": found.id, "digest": found.digest, "fields": fields, "words": lines}
    if own is not None:
        facts |= {"policy": own.name, "version": own.version, "reasons": list(reasons)}
    deliver(facts, as_json, *lines)
    if reasons:
        raise typer.Exit(4)


def _own_policy(store: StoreOptions) -> "ShippedPolicy | None":
    """The accepted policy of a store's device; None without a store or a policy."""
    from hazemap.federated.device.policy.shipped_policies import ShippedPolicies

    if store.store is None and not store.path.exists():
        return None
    with store.open() as file:
        return store.allowed(file) if ShippedPolicies(file).current() else None


def _facts(recipe: "Recipe", price: "RecipePrice", judged: "RecipeCheck | None", people: int) -> dict[str, Any]:
    admitted = judged and judged.admitted
    return {
        "id": recipe.id,
        "version": recipe.version,
        "digest": recipe.digest,
        "analysis": recipe.analysis,
        "bins": recipe.bins,
        "size": recipe.size,
        "features": {each.name: each.rule.size for each in recipe.features},
        "cohort": {each.name: list(each.values) for each in recipe.cohort},
        "minimum_cohort": recipe.minimum_cohort,
        "local_epsilon": str(recipe.local_epsilon),
        "keep": recipe.law.chances[0],
        "turn_on": recipe.law.chances[1],
        "epsilon": str(recipe.epsilon),
        "delta": str(recipe.delta),
        "epsilon_achieved": float(price.sum.epsilon),
        "bound": price.sum.bound,
        "assumptions": list(price.sum.assumptions),
        "price_kept": price.kept,
        "least_cohort": price.least_cohort,
        "people": people,
        "stddev": recipe.standard_deviation(people),
        "stddev_of_a_tenth": recipe.standard_deviation(people, 0.1),
        "admitted": None if judged is None else admitted is not None,
        "fields": [str(each) for each in admitted.touched] if admitted else None,
        "answered": judged and judged.answered,
        "reasons": list(judged.reasons) if judged else [],
    }
