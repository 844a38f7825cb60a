"""What a study may spend, and what is left of it."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.errors import BudgetExceeded
from hazemap.federated.recipes.recipe import Recipe
from hazemap.releases.notebook_table import NotebookTable, ShownAsTable


@dataclass(frozen=True)
class StudyBudget(ShownAsTable):
    """ε and δ, which add up over recipes, and reports: one of each person for every recipe.

    >>> print(StudyBudget(Fraction(1, 2), Fraction(1, 10**6), 3))
    ε = 0.5, δ = 1e-06, 3 reports
    """

    epsilon: Fraction
    delta: Fraction
    reports: int

    def __str__(self) -> str:
        return f"ε = {float(self.epsilon):.6g}, δ = {float(self.delta):.3g}, {self.reports:,} reports"

    def notebook_table(self) -> NotebookTable:
        """What is left, a line each."""
        rows = (
            ("ε", f"{float(self.epsilon):.6g}"),
            ("δ", f"{float(self.delta):.3g}"),
            ("reports", f"{self.reports:,}"),
        )
        return NotebookTable("Left of a study's budget", ("", ""), rows)

    def after(self, recipe: Recipe) -> "StudyBudget":
        """What is left once a recipe is paid; `BudgetExceeded` where it cannot be."""
        epsilon, delta = self.epsilon - recipe.epsilon, self.delta - recipe.delta
        if epsilon < 0 or delta < 0 or self.reports < 1:
            raise BudgetExceeded(
                f"the recipe {recipe.id} costs ε = {float(recipe.epsilon):.6g}, δ = {float(recipe.delta):.3g} and a "
                f"report, but this study has {self} left: state a lower price, or end here"
            )
        return StudyBudget(epsilon, delta, self.reports - 1)


NOTHING = StudyBudget(Fraction(0), Fraction(0), 0)
"""What a study has left that was stopped."""
