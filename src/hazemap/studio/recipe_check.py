"""A recipe that somebody writes in the studio: what it asks, what a device would be told of it, and what it costs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hazemap.errors import FileError, InputError
from hazemap.federated.device.recipes.recipe_check import check_lines, check_recipe, explanation
from hazemap.federated.recipes.recipe import Recipe, RecipePrice
from hazemap.federated.recipes.recipe_file import recipe_from_json, recipe_from_toml
from hazemap.federated.recipes.signed_policy import read_policy
from hazemap.federated.study.study import check_columns
from hazemap.files.text_files import read_text
from hazemap.studio.command_text import SameAs, line
from hazemap.studio.refusals import refused
from hazemap.studio.root_folder import RootFolder

ENDINGS: Final = (".toml", ".json")
LONGEST: Final = 60_000
"""Letters of a recipe in the form; longer ones, of large maps, are for the command line."""


def recipe_of(text: Any) -> Recipe:
    """The recipe in a text, TOML or JSON by its first sign; `InputError` says what is wrong with it."""
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST:
        raise refused(InputError, "recipeTooLong", most=LONGEST)
    found = recipe_from_json(text) if text.lstrip()[:1] == "{" else recipe_from_toml(text)
    check_columns(found)
    return found


def recipe_file(root: RootFolder, name: Any) -> Path:
    """Where a recipe or a policy is in the folder, by a name that ends as one does."""
    if not isinstance(name, str) or not name.lower().endswith(ENDINGS):
        raise refused(FileError, "recipeEnding")
    return root.inside(name)


def read(root: RootFolder, name: Any) -> str:
    """The text of a recipe in the folder."""
    path = recipe_file(root, name)
    try:
        long = path.stat().st_size > 4 * LONGEST
        content = "" if long else read_text(path, "the recipe", 4 * LONGEST)
    except (OSError, FileError):
        raise refused(FileError, "recipeUnread", name=name) from None
    if long or len(content) > LONGEST:
        raise FileError(f"the recipe {name!r:.200} is longer than {LONGEST:,} letters: it is for the command line")
    return content


def checked(data: Mapping[str, Any], root: RootFolder) -> dict[str, Any]:
    """What a recipe asks, costs and finds, and what a device would be told. No data is read, nobody is asked.

    With the name of a `policy` in the folder, also which fields it reads, and whether devices would answer.
    """
    recipe = recipe_of(data.get("text"))
    policy, people = data.get("policy") or None, data.get("people") or recipe.minimum_cohort
    if type(people) is not int or not 0 < people < 1 << 40:
        raise refused(InputError, "oddPeople")
    judged = None
    if policy is not None:
        path = recipe_file(root, policy)
        if not path.is_file():
            raise refused(FileError, "noSuchPolicy", name=policy)
        judged = check_recipe(recipe, read_policy(path), recipe.minimum_cohort)
    price = RecipePrice.of(recipe)
    touched = judged.admitted.touched if judged and judged.admitted else None
    return {
        "id": recipe.id,
        "version": recipe.version,
        "digest": recipe.digest,
        "analysis": recipe.analysis,
        "price": f"ε = {float(recipe.epsilon):.6g}, δ = {float(recipe.delta):.3g}",
        "kept": price.kept,
        "bins": recipe.bins,
        "lines": check_lines(recipe, price, judged, people),
        "words": explanation(recipe, touched, judged.reasons if judged else ()),
        "answered": None if judged is None else judged.answered,
        "same_as": _same(root, named_file(root, data), policy).to_json(),
    }


def named_file(root: RootFolder, data: Mapping[str, Any]) -> str:
    """The whole path of the file in which a form says that its recipe is, or would be."""
    return str(recipe_file(root, data.get("file") or "recipe.toml"))


def _same(root: RootFolder, where: str, policy: str | None) -> SameAs:
    rest = [] if policy is None else ["--policy", str(root.path / policy)]
    command = f"{line(['recipe', 'check', where, *rest])}\n{line(['device', 'explain', where, *rest])}"
    python = (
        "from pathlib import Path\nfrom hazemap.federated.device.recipes.recipe_check import explained\n"
        "from hazemap.federated.recipes.recipe_file import read_recipe\n"
        "from hazemap.federated.recipes.recipe import RecipePrice\n\n"
        f"recipe = read_recipe(Path({where!r}))\nprint(RecipePrice.of(recipe))\n"
        "print(*explained(recipe, None), sep='\\n')"
    )
    return SameAs(command, python)
