"""Completion in shells: methods, and the parameters that follow their names."""


def method_names(incomplete: str) -> list[tuple[str, str]]:
    """Methods whose name begins so, each with what it does.

    >>> method_names("htf-")
    [('htf-published', "htf with the paper's amounts of ε: 0.0001 for the height and 0.001 for the lines of a level")]
    """
    from hazemap.algorithms.comparators import every_method
    from hazemap.algorithms.plug_ins import plug_in_names

    found = {name: each.what for name, each in every_method().items()} | dict.fromkeys(plug_in_names(), "of a plug-in")
    return [(name, what) for name, what in found.items() if name.startswith(incomplete)]


def method_texts(incomplete: str) -> list[tuple[str, str]]:
    """Methods, or after `NAME:` the parameters that are not there yet.

    >>> [text for text, _ in method_texts("htf:T=3,h")]
    ['htf:T=3,height=']
    """
    from hazemap.algorithms.built_in_methods import canonical
    from hazemap.algorithms.comparators import every_method

    name, colon, _ = incomplete.partition(":")
    named = every_method().get(canonical(name))
    if not colon or named is None:
        return method_names(incomplete)
    before, comma, begun = incomplete.rpartition(",")
    if not comma:
        before, begun = incomplete.split(":", 1)
    sign = "," if comma else ":"
    there = {each.partition("=")[0] for each in before.partition(":")[2].split(",")}
    return [
        (f"{before}{sign}{each.name}=", each.what)
        for each in named.settings
        if each.name.startswith(begun) and each.name not in there
    ]
