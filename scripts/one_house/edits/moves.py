A = "tests/test_architecture.py"
EDITS = [
    (A, 'ROWS = {"tables.memory", "tables.engine", "tables.opening", "tables.counting", "tables.samples", "tables.pairs"}\n'
        'NOISE = {"privacy.samplers", "privacy.stream", "trust"}',
        'ROWS = {"engines", "readers", "tables.person_cell_values"}\nNOISE = {"privacy.samplers", "privacy.random_stream", "trust"}'),
    (A, '"draw": {"tables", "privacy", "trust", "releases"}', '"draw": {"tables", "engines", "readers", "privacy", "trust", "releases"}'),
    (A, 'floor_of(p) in {"wire", "trust"}', 'floor_of(p) in {"protocols", "trust"}'),
    ("benchmarks/counting.py", "from hazemap import tables", "from hazemap.readers.open_table import open_table\n        from hazemap.tables import contribution_bounding as tables"),
    ("benchmarks/counting.py", "tables.open_table(", "open_table("),
    ("benchmarks/csv_reading.py", "from hazemap import tables", "from hazemap.readers.csv_dialect import CsvDialect\n    from hazemap.readers.open_table import open_table\n    from hazemap.tables.contribution_bounding import AtMostRows, RowIsPerson"),
    ("benchmarks/csv_reading.py", "tables.CsvDialect", "CsvDialect"),
    ("benchmarks/csv_reading.py", "tables.open_table", "open_table"),
    ("benchmarks/csv_reading.py", "tables.AtMostRows(1)", "AtMostRows(1)"),
    ("benchmarks/csv_reading.py", "tables.RowIsPerson()", "RowIsPerson()"),
    ("tests/engines/test_memory.py", "import sys, hazemap.tables;", "import sys, hazemap.engines.memory, hazemap.tables.votes;"),
    ("tests/spatial/test_quadtree.py", '"import sys, hazemap.domains as d; d.Quadtree.world(3); d.Hexagons(d.WORLD, 0, 3);"',
     '"import sys; from hazemap.spatial.bounding_box import WORLD; from hazemap.spatial.quadtree import Quadtree;"\n'
     '        "from hazemap.spatial.h3_hexagons import Hexagons; Quadtree.world(3); Hexagons(WORLD, 0, 3);"'),
    ("tests/server/processes.py", "hazemap.device.device_process, hazemap.domains\n", "hazemap.device.device_process\n"),
    ("tests/server/processes.py", "import hazemap.releases.map_geoparquet,", "import hazemap.spatial.h3_hexagons, hazemap.releases.map_geoparquet,"),
    ("tests/execution/crashes.py", "hazemap.releases.map_geoparquet, hazemap.execution", "hazemap.releases.map_geoparquet\nimport hazemap.execution"),
    ("src/hazemap/engines/single_cell_samples.py", "(`hazemap.domains.Intervals`)", "(`values.interval_tree`)"),
    ("src/hazemap/cells.py", "`privacy.parallel_composition` cannot tell places in such a stretch apart.", "Places in such a stretch cannot be told apart."),
    ("tests/compare/test_run_comparison.py", 'for name in ("adaptive", "flat")', 'for name in ("adaptive_tree", "single_level")'),
]

HANDLED = {"src/hazemap/tables/samples.py", "tests/domains/test_quadtree.py", "tests/server/processes.py"}


FLOORS = """| floor | what lives there |
|---|---|
| `cli` | commands, what they print, exit codes |
| `device` \\| `server` | a person's process, which holds their rows and decides nothing \\| the coordinator's, which decides and sees no row |
| `audit` | lower bounds on what releases give away: made-up neighbours, runs in processes of their own, evidence; planted faults |
| `compare` | methods side by side on maps and tables of which the truth is known: datasets, trials, scores, figures |
| `publish`, `planning` | from a table to a release; what to expect of one, tried on a synthetic city |
| `execution` | one run: output lock, journal, charge, answers, file; and recovery after a crash |
| `specs` | typed specifications, as TOML and JSON: `ReleaseSpec`, `StatisticsSpec`; budgets, rules, cells and methods by their names |
| `releases` | the published file, its questions, its exports |
| `draw` | maps and charts |
| `algorithms` \\| `trust`, `statement_builder` | who asks: our methods, and in `algorithms/published` those of the literature \\| who answers; neither knows the other; the one builder of privacy statements |
| `estimate` \\| `protocols` | post-processing: arrays in, arrays out \\| secure aggregation without a socket: bytes in, bytes out |
| `session` | one run: charge, check, transcript, replay |
| `codec` | queries, answers and methods as JSON |
| `queries`, `algorithm_disclosure` | the types of the conversation; what an algorithm says of itself |
| `privacy` | budgets, ledger, statement, mechanisms, samplers, random stream, parallel composition |
| `encoders` | how a person's rows become a vector of bounded sensitivity |
| `readers` | files and data frames of any kind as a stream of rows |
| `engines` | what counts rows: DuckDB with compiled loops, or NumPy in memory |
| `tables` | rows and the person each belongs to; contribution bounding, and the votes it leaves |
| `values` | what: quantizer, encodings, bins and intervals of a value; cells times slots in which it is asked |
| `spatial` \\| `temporal` | where: boxes, quadtree, H3 hexagons, grids, binary partitions, districts \\| when: timeslots and the clocks of a place |
| `cellmap` | a number and an error bar for each cell |
| `cells` | the nouns `Partition` and `Tree` |
| `hash_index` | where numbers stand in an array, by hashing |
| `arrays`, `jit`, `jit_cache`, `field_types`, `atomic_write` | names of array types; loops in machine code, and where they are kept; exact types of fields; files that appear whole or not at all |
| `errors` | one tree of errors |
"""


def design(tree, say):
    """The table of floors on the page of the design, and the words for them in its text."""
    import re
    p = tree / "docs/concepts/design.md"
    text, times = re.subn(r"^\| floor \| what lives there \|\n(?:\|.*\n)+", lambda _: FLOORS, p.read_text(), flags=re.M)
    if times != 1: say("docs/concepts/design.md has no table of floors")
    for old, new in {"wire": "protocols", "runs": "execution", "rounds": "queries", "disclosure": "algorithm_disclosure", "stating": "statement_builder"}.items():
        text = text.replace(f"* `{old}` ", f"* `{new}` ").replace(f"with `{old}`,", f"with `{new}`,")
    text = text.replace("`tables` (who is one person, what is left of them)", "`readers` and `engines` (what a row says, who is one person), `tables` (what is left of them)")
    p.write_text(text)


NEW_FLOORS = """FLOORS = [
    "errors",
    "atomic_write | field_types | jit_cache",
    "jit",
    "hash_index",
    "cells",
    "cellmap",
    "spatial | temporal",
    "values",
    "tables",
    "engines",
    "readers",
    "encoders",
    "privacy",
    "algorithm_disclosure | queries",
    "codec",
    "session",
    "estimate | protocols",
    "algorithms | statement_builder | trust",
    "draw",
    "releases",
    "specs",
    "execution",
    "planning | publish",
    "compare",
    "audit",
    "device | server",
    "cli",
]
"""
KNOWN = set(
    "errors loop_cache typed whole compiled positions cells cellmap domains tables encoders privacy disclosure rounds codec session "
    "estimate wire algorithms stating trust draw releases specs runs planning publish compare audit device server cli".split()
)


def floors(tree, say):
    import ast, re
    p = tree / A
    text = p.read_text()
    found = re.search(r"^FLOORS = (\[\n.*?^\])\n", text, flags=re.M | re.S)
    names = {n for floor in ast.literal_eval(found[1]) for n in floor.split(" | ")}
    if names != KNOWN: say(f"tests/test_architecture.py has other floors than were known: {sorted(names ^ KNOWN)}")
    p.write_text(text.replace(found[0], NEW_FLOORS))


FUNCTIONS = [design, floors]
EDITS += [("tests/cli/test_main.py", "from hazemap.trust import Curator", "from hazemap.trust.curator import Curator")]
