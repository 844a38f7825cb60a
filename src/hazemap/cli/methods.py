"""`hazemap methods`: the methods of maps, and each with its parameters, defaults and paper."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.cli.console_output import deliver
from hazemap.cli.main import method_names
from hazemap.cli.shared_options import AsJson

if TYPE_CHECKING:
    from hazemap.algorithms.method_descriptions import DescribedMethod


def methods(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Describe this method.", autocompletion=method_names),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List methods of maps; describe one with its parameters, defaults and paper.

    The first table has the methods to choose from, the second those of papers to compare with.

    Parameters follow the name: --method htf:threshold=50,T=3. A method's text is part of the specification and of the
    privacy statement.
    """
    from hazemap.algorithms.comparators import every_method
    from hazemap.algorithms.method_descriptions import described
    from hazemap.algorithms.plug_ins import method_named, plug_in_names
    from hazemap.specs.method_from_name import unknown_method

    if name is None:
        _listed([described(each) for each in every_method().values()], plug_in_names(), as_json)
        return
    named = method_named(name.partition(":")[0])
    if named is None:
        unknown_method(name, (*every_method(), *plug_in_names()))
    _shown(described(named), as_json)


def _listed(known: "list[DescribedMethod]", plug_ins: tuple[str, ...], as_json: bool) -> None:
    from rich.table import Table

    tables = [Table(name, "what it does", "parameters", box=None) for name in ("method", "comparator")]
    for each in known:
        parameters = ", ".join(one.name for one in each.parameters)
        tables[each.comparator].add_row(each.spellings[-1], each.what, parameters)
    facts = {"methods": [asdict(each) for each in known], "plug-ins": list(plug_ins)}
    brought = [f"Plug-ins bring {', '.join(plug_ins)}."] if plug_ins else []
    advice = "Leave the method out unless you have a reason: the default, auto, suits nearly every map."
    papers = "Comparators are methods of papers, there to compare with:"
    last = "`hazemap methods NAME` describes one."
    deliver(facts, as_json, advice, "", tables[False], "", papers, "", tables[True], "", *brought, last)


def _shown(method: "DescribedMethod", as_json: bool) -> None:
    from rich.table import Table

    table = Table("parameter", "what", "allowed", "default", box=None)
    for each in method.parameters:
        table.add_row(each.name, each.what, each.allowed, each.default or "chosen")
    who = "a table's curator, or people's devices" if method.sums_only else "a table's curator alone"
    also = [f"Also called {', '.join(method.aliases)}."] if method.aliases else []
    deliver(
        asdict(method),
        as_json,
        f"{method.name}: {method.what}",
        *also,
        f"Paper: {method.paper or 'none given'}. In Python: {method.class_}.",
        f"It cuts {'; '.join(method.cells)}. It is answered by {who}.",
        "",
        table if method.parameters else "It has no parameters but those in its name.",
        "",
        f"For example: --method {method.example}",
    )
