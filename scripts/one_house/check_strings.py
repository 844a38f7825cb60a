"""Imports of hazemap inside strings, doctests and pages of a tree: each must name something that is there. check_strings.py TREE"""
import ast, re, sys
from pathlib import Path
tree = Path(sys.argv[1]); pk = tree / "src/hazemap"
known = {}
for p in pk.rglob("*.py"):
    m = "hazemap." + ".".join(p.relative_to(pk).with_suffix("").parts)
    m = m.removesuffix(".__init__")
    t = ast.parse(p.read_text()); names = set()
    for n in ast.walk(t):
        if isinstance(n, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)): names.add(n.name)
        if isinstance(n, (ast.Import, ast.ImportFrom)): names |= {(a.asname or a.name) for a in n.names}
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store): names.add(n.id)
    known[m] = names
for m in list(known): known.setdefault(m.rpartition(".")[0], set()).add(m.rpartition(".")[2])
bad = 0
for p in [*tree.glob("src/**/*.py"), *tree.glob("tests/**/*.py"), *tree.glob("benchmarks/*.py"), *tree.glob("docs/**/*.md"), tree / "README.md"]:
    for m in re.finditer(r"from (hazemap(?:\.\w+)*) import (\([^)]*\)|[\w, ]+)", p.read_text()):
        for n in re.sub(r"#[^\n]*", "", m[2].strip("()")).split(","):
            n = n.split(" as ")[0].strip()
            if n and not n.isspace() and n not in known.get(m[1], set()) and not (m[1] == "hazemap" and n[0].isalpha()): bad += 1; print(p.relative_to(tree), m[1], n)
print("bad", bad)
