#!/usr/bin/env python3
"""The great rename, as a program. `venv/bin/python apply.py [--until moves|names|all] TREE` on a clean checkout of main.

Steps: 1 moves (moves.toml, tests.toml): files, imports, dotted names in strings and docs, paths in text; 2 exact edits
(edits/moves.py); 3 identifiers (names.toml); 4 exact edits after that (edits/names.py); 5 patches (patches/*.patch, in
order); then ruff --fix and ruff format. Everything that is not known stops it, with a sentence. It runs on every later main:
give a new file a line in moves.toml or tests.toml.
"""
import argparse, ast, re, runpy, subprocess, sys, tomllib
from pathlib import Path

HERE = Path(__file__).parent
RUFF = "ruff"
MARK = "\x00"          # stands behind `hazemap` and `tests` in text that is already new
TEXT = {".py", ".md", ".toml", ".txt", ".json"}
problems: list[str] = []


def say(text): problems.append(text); print("!", text, file=sys.stderr)


def git(tree, *args):
    return subprocess.run(["git", "-C", str(tree), *args], check=True, capture_output=True, text=True).stdout


class Moves:
    """Old and new names of modules, of the package and of the tests."""

    def __init__(self, tree: Path):
        self.tree = tree
        table = tomllib.loads((HERE / "moves.toml").read_text())
        tests = tomllib.loads((HERE / "tests.toml").read_text())
        self.files = {f: f for f in table["stay"]} | table["moves"]          # without .py
        self.new_inits = table.get("inits", {}) | tomllib.loads((HERE / "inits.toml").read_text())
        package = tree / "src/hazemap"
        there = {str(p.relative_to(package).with_suffix("")) for p in package.rglob("*.py")}
        for f in sorted(there - set(self.files)): say(f"moves.toml does not know src/hazemap/{f}.py")
        for f in sorted(set(self.files) - there): say(f"moves.toml knows {f}, which is not there")
        self.modules = {}                                                    # old dotted -> new dotted or None
        for old, new in self.files.items():
            self.modules[dotted(old)] = dotted(new) if new else None
        self.dropped = {m for m, n in self.modules.items() if n is None}
        self.exports = {}                                                    # old package -> {name: (module, name)}
        for f in there:
            if f.endswith("__init__") and f != "__init__":
                self.exports[dotted(f)] = exports((package / f).with_suffix(".py"))
        # tests
        folder = tree / "tests"
        self.tests = {}
        for p in sorted(folder.rglob("*.py")):
            old = str(p.relative_to(folder).with_suffix(""))
            self.tests[old] = self.test_home(old, tests)
        self.test_modules = {dotted(o): dotted(n) for o, n in self.tests.items() if n}

    def test_home(self, old, table):
        if old in table["moves"]: return table["moves"][old]
        if old in table["stay"] or "/" not in old: return old
        d, name = old.rsplit("/", 1)
        if name.startswith("test_"):
            bare = name[5:]
            hits = [s for s in self.files if s == f"{d}/{bare}"] or [
                s for s in self.files if s.startswith(d + "/") and s.rsplit("/", 1)[1] == bare]
            if len(hits) == 1 and self.files[hits[0]]:
                home, leaf = self.files[hits[0]].rsplit("/", 1)
                return f"{home}/test_{leaf}"
        if d in table["folders"]: return f"{table['folders'][d]}/{name}"
        say(f"tests.toml does not know tests/{old}.py")
        return old

    def where(self, module, name):
        """The new home of what `from hazemap.module import name` gets: (module or package, name, is it a module)."""
        full = f"{module}.{name}" if module else name
        exported = self.exports.get(module, {})
        if name not in exported and full in self.modules:
            new = self.modules[full]
            if new is None:
                if not (self.allowed(full)): say(f"hazemap.{full} is a folder no more")
                return full.rpartition(".")[0], name, True
            return new.rpartition(".")[0], new.rpartition(".")[2], True
        if module in self.dropped:
            if name not in exported:
                say(f"hazemap.{module} has no {name}"); return module, name, False
            return self.where(*exported[name])
        if module not in self.modules:
            if module == "": return "", name, False
            say(f"there is no hazemap.{module} (for {name})"); return module, name, False
        return self.modules[module], name, False


    def allowed(self, folder):
        """A folder that is still there, with an __init__ that exports nothing: who names it needs an edit, or none."""
        return f"{folder.replace('.', '/')}/__init__" in self.new_inits


HANDLED = runpy.run_path(str(HERE / "edits/moves.py")).get("HANDLED", set())
"""Files that speak of folders that are no more, and whose sentences an exact edit puts right."""


def dotted(file): return file.replace("/", ".").removesuffix(".__init__") if file != "__init__" else ""


def exports(init: Path):
    """Names that an __init__ imports from the package: {name: (module, its name there)}."""
    found = {}
    for node in ast.walk(ast.parse(init.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("hazemap"):
            if init.parts[-1 - node.module.count(".") : -1] == tuple(node.module.split("."))[1:]: continue  # its own files
            for a in node.names:
                found[a.asname or a.name] = (node.module.removeprefix("hazemap").removeprefix("."), a.name)
    return found


def new_imports(moves: Moves, statement: ast.stmt, test: str | None) -> list[str] | None:
    """An import as it is written after the moves, one statement a string; None if it has nothing to do with us."""
    if isinstance(statement, ast.ImportFrom):
        module = statement.module or ""
        if test is not None and (statement.level or module == "tests" or module.startswith("tests.")):
            return test_imports(moves, statement, test)
        if test is not None and "/" in test and f"{test.rpartition('/')[0]}/{module}" in moves.tests:
            home = moves.tests[f"{test.rpartition('/')[0]}/{module}"].replace("/", ".")  # a neighbour, by its bare name
            return [f"from tests{MARK}.{home} import " + ", ".join(ast.unparse(a) for a in statement.names)]
        if module != "hazemap" and not module.startswith("hazemap."): return None
        base = module.removeprefix("hazemap").removeprefix(".")
        homes: dict[str, list[str]] = {}
        for a in statement.names:
            if a.name == "*": say(f"star import of {module}"); continue
            home, name, is_module = moves.where(base, a.name)
            local = a.asname or a.name
            homes.setdefault(home, []).append(name if name == local else f"{name} as {local}")
        return [f"from hazemap{MARK}{'.' + h if h else ''} import {', '.join(n)}" for h, n in homes.items()]
    return None


def test_imports(moves: Moves, statement: ast.ImportFrom, test: str):
    package = test.split("/")[:-1]
    if statement.level:
        at = package[: len(package) - (statement.level - 1)]
        base = ".".join(at + ([statement.module] if statement.module else []))
    else:
        base = (statement.module or "").removeprefix("tests").removeprefix(".")
    here = moves.tests[test].split("/")[:-1]
    out = []
    for a in statement.names:
        full = f"{base}.{a.name}".lstrip(".")
        if full in moves.test_modules:
            new = moves.test_modules[full]; home, _, name = new.rpartition(".")
        elif base in moves.test_modules:
            home, name = moves.test_modules[base], a.name
        else:
            say(f"tests/{test}.py imports {base}, which is no test module"); return None
        local = a.asname or a.name
        target = home.split(".") if home else []
        if statement.level and (target == here or target[:-1] == here):
            where = "." + ".".join(target[len(here):])
        else:
            where = f"tests{MARK}." + home if home else f"tests{MARK}"
        out.append(f"from {where} import {name}" + ("" if name == local else f" as {local}"))
    return out


def rewrite_python(moves, text, test, path):
    """Import statements of a Python file, by its syntax tree; then whatever text says of modules."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    for node in sorted(nodes, key=lambda n: -n.lineno):
        new = new_imports(moves, node, test)
        if new is None: continue
        old = "".join(lines[node.lineno - 1 : node.end_lineno])
        comment = re.search(r"#\s*noqa.*|#.*$", old)
        indent = re.match(r"[ \t]*", old).group()
        if old.strip().count("import ") > 1 and ";" in old: say(f"{path}: two statements in a line: {old!r}")
        made = [f"{indent}{s}" for s in new]
        if comment: made[0] += "  " + comment.group().strip()
        lines[node.lineno - 1 : node.end_lineno] = ["\n".join(made) + "\n"]
    return "".join(lines)


LINE = re.compile(r"^(?P<before>.*?(?:>>> |\.\.\. |^|[\"'`;(]|\s))(?P<what>from hazemap(?:\.\w+)* import "
                  r"(?:\((?P<many>[^)]*)\)|\w+(?: as \w+)?(?:, ?\w+(?: as \w+)?)*))", re.M)


def rewrite_text(moves, text, path, test=None):
    """Imports in strings, doctests and pages; dotted names of modules; paths of files."""
    def statement(match):
        what = match["what"]
        new = new_imports(moves, ast.parse(re.sub(r"\s+", " ", what)).body[0], None)
        before = match["before"]
        if len(new) == 1: return before + new[0]
        if before.strip() in ("", ">>>", "...") and set(before) <= set(" >."):
            return "\n".join(before + n for n in new)
        return before + "; ".join(new)
    text = LINE.sub(statement, text)

    def name(match):
        parts = match[1].lstrip(".").split(".")
        for k in range(len(parts), 0, -1):
            module = ".".join(parts[:k])
            if module not in moves.modules: continue
            rest = parts[k:]
            if rest and rest[0] in moves.exports.get(module, {}) and module in moves.dropped:
                home, n, _ = moves.where(module, rest[0])
                return f"hazemap{MARK}." + ".".join([home, n, *rest[1:]])
            new = moves.modules[module]
            if new is None:
                if moves.allowed(module) or path in HANDLED: new = module
                else: say(f"{path}: speaks of hazemap.{module}, which is a folder no more"); new = module
            return f"hazemap{MARK}." + ".".join([new, *rest])
        return match[0]
    text = re.sub(r"\bhazemap((?:\.[A-Za-z_]\w*)+)", name, text)

    def quoted(match):
        parts = match[1].split(".")
        for k in range(len(parts), 1, -1):
            new = moves.modules.get(".".join(parts[:k]))
            if new: return "`" + ".".join([new, *parts[k:]])
        return match[0]
    if path.startswith(("src/", "docs/")): text = re.sub(r"`((?:[a-z_]\w*\.)+[A-Za-z_]\w*)", quoted, text)

    if path.startswith("tests/"):
        bare = lambda m: f'"{moves.files[m[1]]}"' if moves.files.get(m[1]) else m[0]
        text = re.sub(r'"((?:[a-z_0-9]+/)+[a-z_0-9]+)"', bare, text)

    suffixes = {}
    for f in moves.files:
        parts = f.split("/")
        for k in range(1, len(parts)): suffixes.setdefault("/".join(parts[k:]), []).append(f)

    def file(match):
        before, old = match["before"] or "", match["path"]
        if before.endswith("tests/") or (not before and old in moves.tests):
            if old in moves.tests: return before + moves.tests[old] + ".py"
            return match[0]
        if old in moves.files and ("/" in old or before):
            return before + (moves.files[old] or old) + ".py"
        if before: return match[0]
        hits = suffixes.get(old, [])
        if "/" not in old:
            if path.startswith("src/hazemap/"):
                d = path.removeprefix("src/hazemap/").rpartition("/")[0]
                here = f"{d}/{old}" if d else old
                if here in moves.files and moves.files[here]: return moves.files[here].rpartition("/")[2] + ".py"
            elif path.startswith("docs/") and len(hits) == 1 and hits[0] in moves.files:
                return moves.files[hits[0]].rpartition("/")[2] + ".py"
            return match[0]
        if len(hits) == 1: return moves.files[hits[0]] + ".py"
        return match[0]
    text = re.sub(r"(?<![\w/.-])(?P<before>(?:\.\./)*(?:src/hazemap/|tests/))?(?P<path>[a-z_][\w/]*)\.py\b", file, text)
    return text


def apply_moves(tree: Path, moves: Moves):
    tracked = git(tree, "ls-files").splitlines()
    writes, deletes = {}, []
    for f in tracked:
        p = tree / f
        if p.suffix not in TEXT and f != "Makefile" or f.startswith(("tests/vectors/", "benchmarks/results/", "constraints/")): continue
        if not p.exists(): continue
        text = old = p.read_text()
        test, target = None, f
        if f.endswith(".py"):
            if f.startswith("src/hazemap/"):
                new = moves.files.get(f.removeprefix("src/hazemap/").removesuffix(".py"))
                target = f"src/hazemap/{new}.py" if new else None
            elif f.startswith("tests/"):
                test = f.removeprefix("tests/").removesuffix(".py")
                target = f"tests/{moves.tests[test]}.py" if moves.tests[test] else None
            if target:
                text = rewrite_python(moves, text, test, f)
                text = rewrite_text(moves, text, f)
                if test:
                    down = target.count("/") - f.count("/")
                    if down: text = re.sub(r"\.parents\[(\d+)\]", lambda m: f".parents[{int(m[1]) + down}]" if int(m[1]) >= f.count("/") else m[0], text)
        elif f not in ("CHANGELOG.md",) or True:
            text = rewrite_text(moves, text, f)
        text = text.replace(MARK, "")
        if target is None: deletes.append(f); continue
        if target != f: deletes.append(f)
        if target != f or text != old: writes[target] = text
    for f in deletes: (tree / f).unlink()
    for f, text in writes.items():
        (tree / f).parent.mkdir(parents=True, exist_ok=True)
        (tree / f).write_text(text)
    for f, doc in moves.new_inits.items():
        p = tree / "src/hazemap" / f"{f}.py"
        if p.exists(): say(f"{p} is there already"); continue
        p.parent.mkdir(parents=True, exist_ok=True)
        p.write_text(f'"""{doc}"""\n')
    # a folder of tests is a package where one of its files was in one, so that names may repeat
    folders = {p.parent for p in (tree / "tests").rglob("*.py")} - {tree / "tests"}
    for d in sorted(folders):
        if not (d / "__init__.py").exists() and any(n != o and n.rpartition("/")[0] == str(d.relative_to(tree / "tests")) for o, n in moves.tests.items()):
            (d / "__init__.py").write_text("")
    for d in sorted(folders):
        for up in d.parents:
            if up == tree / "tests": break
            if (d / "__init__.py").exists() and not (up / "__init__.py").exists(): (up / "__init__.py").write_text("")
    loose = {}
    for p in (tree / "tests").rglob("test_*.py"):
        if not (p.parent / "__init__.py").exists(): loose.setdefault(p.name, []).append(p)
    for name, ps in loose.items():
        if len(ps) > 1: say(f"{name} is there twice outside packages: {ps}")
    for d in sorted((tree / "src/hazemap").rglob("*"), reverse=True):
        if d.is_dir() and not any(x.name != "__pycache__" for x in d.iterdir()):
            subprocess.run(["rm", "-rf", str(d)])
    for base in ("src/hazemap", "tests"):
        for d in sorted((p for p in (tree / base).rglob("*") if p.is_dir()), key=lambda p: -len(p.parts)):
            if d.name != "__pycache__" and not any(x.name != "__pycache__" for x in d.iterdir()):
                subprocess.run(["rm", "-rf", str(d)])


def exact_edits(tree: Path, script: Path):
    """Lists of (file, old text, new text): each old text must be there exactly once; new=None deletes the file."""
    if not script.exists(): return
    module = runpy.run_path(str(script))
    for function in module.get("FUNCTIONS", []): function(tree, say)
    for entry in module["EDITS"]:
        file, old, new = entry[:3]
        times = entry[3] if len(entry) > 3 else 1
        p = tree / file
        if not p.exists(): say(f"{script.name}: {file} is not there"); continue
        if new is None: p.unlink(); continue
        if old is None: p.write_text(new); continue
        text = p.read_text()
        if text.count(old) != times and times >= 0: say(f"{script.name}: {file} has {text.count(old)} times: {old[:70]!r}"); continue
        p.write_text(text.replace(old, new))
    for function in module.get("AFTER", []): function(tree, say)


def homes(tree: Path):
    """The lazy table of hazemap/__init__.py, made of the imports beside it that only type checkers see."""
    p = tree / "src/hazemap/__init__.py"
    text = p.read_text()
    found: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hazemap."):
            found.setdefault(node.module.removeprefix("hazemap."), []).extend(a.asname or a.name for a in node.names)
    table = "_HOMES: dict[str, tuple[str, ...]] = {\n"
    for home in sorted(found):
        names = [f'"{n}"' for n in sorted(found[home])]
        table += f'    "{home}": ('
        rows, row = [], []
        for n in names:
            if len(", ".join([*row, n])) > 90: rows.append(row); row = []
            row.append(n)
        rows.append(row)
        if len(rows) > 1: table += "".join(f"\n        *({', '.join(r)})," for r in rows) + "\n    ),\n"
        else: table += ", ".join(names) + ("," if len(names) == 1 else "") + "),\n"
    table += "}\n"
    new, times = re.subn(r"^_HOMES(?:: [^=]*)? = \{\n.*?^\}\n", lambda _: table, text, flags=re.M | re.S)
    if times != 1: say("src/hazemap/__init__.py: no table _HOMES")
    p.write_text(new)


def wrap(tree: Path):
    """Lines of docstrings and comments that grew too long, broken at the last space and run on into the next."""
    import io, json, tokenize
    for _ in range(12):
        found = json.loads(ruff(tree, "check", "--select", "E501", "--output-format=json", "--exit-zero").stdout)
        rows: dict[str, list[int]] = {}
        for f in found: rows.setdefault(f["filename"], []).append(f["location"]["row"])
        done = 0
        for name, lines in rows.items():
            p = Path(name); text = p.read_text()
            prose, raw = set(), set()
            for t in tokenize.generate_tokens(io.StringIO(text).readline):
                if t.type == tokenize.STRING and t.string.startswith(('"""', 'r"""')): prose |= set(range(t.start[0], t.end[0] + 1))
                if t.type == tokenize.COMMENT and t.line.strip().startswith("#"): prose.add(t.start[0])
            out = text.splitlines()
            for row in sorted(lines, reverse=True):
                line = out[row - 1]
                alone = re.fullmatch(r'(\s*)(f?)"([^"]*)"(,?)', line)
                if alone and row not in prose:
                    indent, f, body, comma = alone.groups()
                    depth, cut = 0, -1
                    for i, c in enumerate(body):
                        depth += (c == "{") - (c == "}")
                        if c == " " and depth == 0 and len(indent) + len(f) + i + 3 <= 120: cut = i
                    if cut > 0:
                        out[row - 1 : row] = [f'{indent}{f}"{body[: cut + 1]}"', f'{indent}{f if "{" in body[cut:] else ""}"{body[cut + 1 :]}"{comma}']
                        done += 1
                    continue
                if row not in prose or ">>>" in line: continue
                head = re.match(r"\s*(?:# )?", line).group()
                cut = line.rfind(" ", len(head) + 1, 121)
                if cut < 0: continue
                rest = line[cut + 1 :]
                follow = out[row] if row < len(out) else ""
                opens = line[:cut].lstrip().startswith(('"""', '* ', '- '))
                bullet = "  " if re.match(r"\s*[*-] ", line) else ""
                out[row - 1] = line[:cut]
                body = re.match(r"\s*(?:# )?", follow).group()
                fits = follow.strip() and row + 1 in prose and not re.match(r"\s*(?:# )?([*-] |>>>|\"\"\"|\.\.\. )", follow) and (
                    body == head + bullet or (opens and body == head))
                if fits: out[row] = body + rest + " " + follow[len(body) :]
                else: out.insert(row, head + bullet + rest)
                done += 1
            p.write_text("\n".join(out) + "\n")
        if not done: break


def lonely_noqa(tree):
    """A signature that grows too long is broken, and its `noqa: ARG002` must stand behind the argument: given there at once."""
    for p in (tree / "src/hazemap").rglob("*.py"):
        text = p.read_text()
        new = re.sub(r"^( *)def (\w+)\(([^()\n]*)\) -> ([^\n:]*):(  # noqa: ARG002[^\n]*)\n", split_signature, text, flags=re.M)
        if new != text: p.write_text(new)


def split_signature(m):
    if len(m[0].partition("  # noqa")[0]) <= 120: return m[0]
    inner = re.sub(r", (?=[\w*]+(?::|$|,))", ",\n" + m[1] + "    ", m[3])
    lines = inner.split("\n")
    lines = [line if not re.match(r"\s*(count|other|budget)\b", line) else line + m[5] for line in lines]
    body = "\n".join(line + ("," if i == len(lines) - 1 else "") for i, line in enumerate(lines))
    return f"{m[1]}def {m[2]}(\n{m[1]}    {body}\n{m[1]}) -> {m[4]}:\n"


def ruff(tree, *args):
    return subprocess.run([RUFF, *args, "."], cwd=tree, capture_output=True, text=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("tree", type=Path)
    options.add_argument("--until", choices=["moves", "names", "all"], default="all")
    options.add_argument("--dirty", action="store_true")
    o = options.parse_args()
    tree, here = o.tree.resolve(), HERE.resolve()
    if git(tree, "status", "--porcelain", "--untracked-files=no").strip() and not o.dirty: sys.exit("commit or stash first")
    if (tree / "src/hazemap/spatial/quadtree.py").exists(): sys.exit("this tree is renamed already")
    if here.is_relative_to(tree): sys.exit("copy this folder to a place outside of the tree, and run it there")
    moves = Moves(tree)
    if problems: sys.exit(f"{len(problems)} unknown: nothing was changed")
    if (tree / "scripts/one_house").exists(): git(tree, "rm", "-rq", "scripts/one_house")
    apply_moves(tree, moves)
    homes(tree)
    exact_edits(tree, HERE / "edits/moves.py")
    ruff(tree, "check", "--fix", "-q", "--select", "I,F401,RUF022,D209,UP037", "--exit-zero")
    ruff(tree, "format", "-q")
    if o.until != "moves":
        names = HERE / "names.py"
        if names.exists():
            module = runpy.run_path(str(names))
            module["apply_names"](tree, say)
            lonely_noqa(tree)
        exact_edits(tree, HERE / "edits/names.py")
        ruff(tree, "check", "--fix", "-q", "--select", "I,F401,RUF022,D209,UP037", "--exit-zero")
        ruff(tree, "format", "-q")
    if o.until == "all":
        exact_edits(tree, HERE / "edits/cycles.py")
        for patch in sorted((HERE / "patches").glob("*.patch")):
            done = subprocess.run(["git", "apply", "--3way", "--whitespace=nowarn", str(patch)], cwd=tree, capture_output=True, text=True)
            if done.returncode: say(f"{patch.name}: {done.stderr.strip()[:500]}")
        ruff(tree, "check", "--fix", "-q", "--select", "I,F401,RUF022,D209,UP037", "--exit-zero")
        ruff(tree, "format", "-q")
    wrap(tree)
    ruff(tree, "check", "--fix", "--unsafe-fixes", "-q", "--select", "D209", "--exit-zero")
    ruff(tree, "format", "-q")
    left = ruff(tree, "check", "--output-format=concise")
    print(left.stdout[-6000:])
    subprocess.run(["git", "-C", str(tree), "add", "-A"], check=True)
    if problems: sys.exit(f"{len(problems)} problems")
    print("applied")


if __name__ == "__main__":
    main()
