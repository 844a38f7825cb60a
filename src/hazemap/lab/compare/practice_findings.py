"""What attackers learn from published maps, in sentences for people who read no statistics."""

from math import inf

from hazemap.lab.compare.results import Results

SAID = """How well somebody who knows where everybody else is tells from a map whether a person is there, and how many
newcomers are given away by the maps of the day before and the day after they came:"""


def in_words(results: Results) -> list[str]:
    """Lines for below `SAID`, one for each map and whatever published it; none where nobody was looked for."""
    if "advantage" not in results.frame:
        return []
    found = []
    for place in results.named("map"):
        here = results.where(map=place)
        for epsilon in sorted(here.named("epsilon"), reverse=True):
            at = here.where(epsilon=epsilon)
            found += [_of_one(at.where(method=name), place, name, epsilon) for name in at.named("method")]
    return found


def _of_one(results: Results, place: str, name: str, epsilon: float) -> str:
    told, bound, located, chance = (
        round(100 * results.mean(score).mean) for score in ("advantage", "bound", "located", "chance")
    )
    if epsilon == inf:
        said, limit = name, "nothing limits who knows more or computes more"
    else:
        said = f"{name}, ε = {epsilon:g}"
        limit = f"it is proved that nobody comes further than {bound} %, whatever they know and compute"
    return (
        f"**{said}** on {place}: {max(told, 0)} % of the way from a coin's toss to certainty; {limit}. Of 100 "
        f"newcomers {located} are given away, where {chance} are found by chance."
    )
