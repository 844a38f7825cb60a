"""Writes the software bill of materials (CycloneDX 1.6, JSON) of what a wheel of hazemap brings along.

usage: python distribution/software_bill.py FILE

Python packages are those of constraints/python.txt that hazemap needs (`required`) or its extra `server` (`optional`),
each with who needs it, as pip-compile noted it there. What the pages bundle is in package.json of each. No clock and no
network: the same sources give the same bytes.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

ROOT = Path(__file__).parents[1]
OURSELVES = "hazemap"
PINNED = re.compile(r"([A-Za-z0-9._-]+)==(\S+)")
BUNDLES = ("page", "studio", "device")
VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


def bill() -> dict[str, Any]:
    """The whole of it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions, needs = pinned((ROOT / "constraints" / "python.txt").read_text())
    required = reached(map(plain, project["dependencies"]), needs)
    optional = reached(map(plain, project["optional-dependencies"]["server"]), needs) - required
    chosen = sorted(required | optional)
    absent = [name for name in chosen if name not in versions]
    if absent:
        raise SystemExit(f"constraints/python.txt does not pin {', '.join(absent)}: run make constraints")
    scopes = {name: "required" if name in required else "optional" for name in chosen}
    python = [component("pypi", name, versions[name], scopes[name]) for name in chosen]
    browser = [component("npm", name, version, "required") for name, version in sorted(bundled().items())]
    [version] = VERSION.findall((ROOT / "src" / OURSELVES / "__init__.py").read_text())
    us = component("pypi", OURSELVES, version, "required")
    refs = {name: reference("pypi", name, versions[name]) for name in chosen}
    direct = {plain(each) for each in project["dependencies"]} & refs.keys()
    edges = [{"ref": us["bom-ref"], "dependsOn": sorted(refs[name] for name in direct)}]
    edges += [
        {"ref": refs[name], "dependsOn": sorted(refs[each] for each in needs.get(name, set()) & refs.keys())}
        for name in chosen
    ]
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**us, "type": "application", "licenses": [{"license": {"id": project["license"]}}]}},
        "components": python + browser,
        "dependencies": edges,
    }
    return {"serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, json.dumps(made, sort_keys=True))}", **made}


def pinned(text: str) -> tuple[dict[str, str], dict[str, set[str]]]:
    """The version of every package that is pinned, and what each package needs of them."""
    versions: dict[str, str] = {}
    needs: dict[str, set[str]] = {}
    name = ""
    for line in text.splitlines():
        found = PINNED.match(line)
        if found:
            name = plain(found[1])
            versions[name] = found[2]
        elif line.strip().startswith("#") and name:
            above = line.strip("# ").removeprefix("via").strip()
            if above:
                needs.setdefault(plain(above), set()).add(name)
    return versions, needs


def plain(requirement: str) -> str:
    """The name of a requirement, as package indexes compare it (PEP 503).

    >>> plain("uvicorn[standard]>=0.34"), plain("Flask_Cors ; python_version > '3'")
    ('uvicorn', 'flask-cors')
    """
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else ""


def reached(names: Iterable[str], needs: dict[str, set[str]]) -> set[str]:
    """Some packages and all that they need."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs.get(name, set())
    return found


def bundled() -> dict[str, str]:
    """What built pages hold of other people's packages, with exact versions."""
    described = [json.loads((ROOT / "web" / name / "package.json").read_text()) for name in BUNDLES]
    return {package: exact for each in described for package, exact in each.get("dependencies", {}).items()}


def component(kind: str, name: str, version: str, scope: str) -> dict[str, Any]:
    """A package as CycloneDX names it."""
    place = reference(kind, name, version)
    return {"type": "library", "bom-ref": place, "name": name, "version": version, "scope": scope, "purl": place}


def reference(kind: str, name: str, version: str) -> str:
    """The package URL of a package.

    >>> reference("npm", "@noble/curves", "1.8.0")
    'pkg:npm/%40noble/curves@1.8.0'
    """
    return f"pkg:{kind}/{name.replace('@', '%40')}@{version}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(bill(), indent=1) + "\n", encoding="utf-8")
