"""Recipes: questions to devices about their events, searches made of them, and the policies that admit them.

Studies are explained in docs/how-to/studies.md, searches for frequent words in docs/how-to/frequent-words.md.
"""

from hazemap.federated.recipes.features import Feature, NumericEdges, PrefixTree, StringPrefixes
from hazemap.federated.recipes.policy_document import from_toml
from hazemap.federated.recipes.population_table import PopulationTable, TokenSequences
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_file import read_recipe
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.federated.study.searches import EdgeRefinement, FrequentSequences, HeavyHitters
from hazemap.federated.study.study import Study
from hazemap.federated.study.study_answers import StudyAnswers

__all__ = [
    "EdgeRefinement",
    "Feature",
    "FrequentSequences",
    "HeavyHitters",
    "NumericEdges",
    "PopulationTable",
    "PrefixTree",
    "Recipe",
    "SqlQuery",
    "StringPrefixes",
    "Study",
    "StudyAnswers",
    "TokenSequences",
    "from_toml",
    "read_recipe",
]
