"""The programs in `web`: what each imports, and the tests that the Makefile names."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
WEB = ROOT / "web"
MAY_IMPORT = {
    "page": {"shared"},
    "studio": {"shared"},
    "device": {"shared"},
    "tab": {"shared", "device"},
    "dap-client": set(),
    "shared": set(),
}
REFUSALS = ROOT / "src" / "hazemap" / "studio" / "refusals.json"
"""What the studio's server refuses, in English: the studio's page reads the same file."""
IMPORTED = re.compile(r'^(?:import|export)\b[^;"]*"(\.[^"]+)"', re.MULTILINE)


def test_a_program_imports_what_is_shared_and_of_another_program_the_tab_its_device_alone():
    assert MAY_IMPORT.keys() - {"shared"} == {path.parent.name for path in WEB.glob("*/package.json")}
    imports = 0
    for program, others in MAY_IMPORT.items():
        sources = [path for part in ("src", "browser") for path in (WEB / program / part).rglob("*.*ts")]
        sources += (WEB / program / "browser").glob("*.mjs")
        for source in sources:
            for name in IMPORTED.findall(source.read_text(encoding="utf-8")):
                imports += 1
                found = (source.parent / name).resolve()
                if found != REFUSALS:
                    assert found.relative_to(WEB).parts[0] in {program, *others}, f"{source} imports {name}"
    assert imports > 500


def test_the_tests_that_compile_what_tests_share_are_there():
    [named] = re.findall(r"^LOOPS := \$\(addprefix tests/,(.*?)\)$", (ROOT / "Makefile").read_text(), re.M | re.S)
    assert {name for name in named.replace("\\\n", " ").split() if not (ROOT / "tests" / name).exists()} == set()
