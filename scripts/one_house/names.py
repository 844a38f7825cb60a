"""Identifiers, after the moves: see names.toml."""
import ast, io, re, subprocess, tokenize, tomllib
from pathlib import Path

HERE = Path(__file__).parent
SKIP = ("tests/vectors/", "constraints/", "CHANGELOG.md")


def python_files(tree):
    for base in ("src", "tests", "benchmarks", "docs"):
        yield from sorted(p for p in (tree / base).rglob("*.py") if "_build" not in p.parts)


def module_of(tree, p):
    return ".".join(p.relative_to(tree / "src/hazemap").with_suffix("").parts).removesuffix(".__init__")


class Names:
    def __init__(self, tree, say):
        self.tree, self.say = tree, say
        self.table = tomllib.loads((HERE / "names.toml").read_text())
        self.symbols = {m: dict(n) for m, n in self.table["symbols"].items()}
        self.modules, self.exports, self.defined = {}, {}, {}
        for p in sorted((tree / "src/hazemap").rglob("*.py")):
            m = module_of(tree, p) if p != tree / "src/hazemap/__init__.py" else ""
            self.modules[m] = p
            t = ast.parse(p.read_text())
            self.exports[m] = {a.asname or a.name: (n.module.removeprefix("hazemap").removeprefix("."), a.name)
                               for n in ast.walk(t) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("hazemap") for a in n.names}
            self.defined[m] = top_level(t)
        for m, names in self.symbols.items():
            if m not in self.modules: say(f"names.toml: there is no hazemap.{m}"); continue
            for old in names:
                if old not in self.defined[m]: say(f"names.toml: hazemap.{m} defines no {old}")

    def target(self, module, name, depth=0):
        """The new name of `module.name`, through re-exports; None if it stays."""
        if name in self.symbols.get(module, {}) and name in self.defined.get(module, ()): return self.symbols[module][name]
        if depth < 6 and name in self.exports.get(module, {}): return self.target(*self.exports[module][name], depth + 1)
        return None


def top_level(t):
    found = set()
    def visit(body):
        for n in body:
            if isinstance(n, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)): found.add(n.name)
            if isinstance(n, ast.Assign): found.update(x.id for x in n.targets if isinstance(x, ast.Name))
            if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name): found.add(n.target.id)
            if isinstance(n, (ast.If, ast.Try)): visit(n.body); visit(n.orelse)
    visit(t.body)
    return found


def shadows(t, name, own):
    """Lines where `name` is bound otherwise than at the top of the file or by an import: a rename would be wrong there."""
    rows = []
    tops = {id(n) for n in t.body}
    for n in ast.walk(t):
        if isinstance(n, ast.arg) and n.arg == name: rows.append(n.lineno)
        if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)) and n.id == name: rows.append(n.lineno)
        if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) and n.name == name and id(n) not in tops: rows.append(n.lineno)
        if isinstance(n, ast.ExceptHandler) and n.name == name: rows.append(n.lineno)
    if own:
        tops = {x.lineno for n in t.body if isinstance(n, (ast.Assign, ast.AnnAssign)) for x in ast.walk(n) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store) and x.id == name}
        rows = [r for r in rows if r not in tops]
    return rows


def annotation_strings(t):
    """(row, column) of strings that stand for types, and of strings in __all__ and __slots__."""
    found = set()
    def mark(n):
        for x in ast.walk(n):
            if isinstance(x, ast.Constant) and isinstance(x.value, str): found.add((x.lineno, x.col_offset))
    for n in ast.walk(t):
        for field in ("annotation", "returns"):
            if getattr(n, field, None) is not None: mark(getattr(n, field))
        if isinstance(n, ast.ClassDef):
            for b in n.bases: mark(b)
        if isinstance(n, ast.Assign) and any(isinstance(x, ast.Name) and x.id in ("__all__",) for x in n.targets): mark(n.value)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ("cast", "TypeVar", "NewType"): mark(n)
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.BinOp) and not isinstance(n.value.left, ast.Constant): pass
    return found


def rename(text, names, aliases, path, say):
    """`names`: local old -> new; `aliases`: {module alias: {old: new}}."""
    t = ast.parse(text)
    strings = annotation_strings(t)
    lines = text.splitlines(keepends=True)
    edits = []
    tokens = [k for k in tokenize.generate_tokens(io.StringIO(text).readline)]
    depth, frames, imports = 0, [], set()
    import_rows = {}
    for n in ast.walk(t):
        if isinstance(n, ast.ImportFrom):
            for r in range(n.lineno, n.end_lineno + 1): import_rows[r] = n
    significant = [k for k in tokens if k.type not in (tokenize.NL, tokenize.COMMENT)]
    brackets = []
    for i, k in enumerate(significant):
        if k.type == tokenize.OP:
            if k.string in "([{":
                before = significant[i - 1] if i else None
                call = k.string == "(" and before is not None and (before.type == tokenize.NAME and before.string not in KEYWORDS or before.string in (")", "]"))
                brackets.append("call" if call else k.string)
            elif k.string in ")]}" and brackets: brackets.pop()
        if k.type == tokenize.NAME:
            before = significant[i - 1] if i else None
            after = significant[i + 1] if i + 1 < len(significant) else None
            dotted = before is not None and before.string == "."
            if dotted and k.start[0] not in import_rows:
                owner = significant[i - 2]
                deeper = i >= 3 and significant[i - 3].string == "."
                if owner.type == tokenize.NAME and not deeper and owner.string in aliases and k.string in aliases[owner.string]:
                    edits.append((k.start, k.end, aliases[owner.string][k.string]))
                continue
            if dotted: continue
            if k.string in names:
                if after is not None and after.string == "=" and brackets and brackets[-1] == "call" and before is not None and before.string in "(," and k.start[0] not in import_rows: continue
                if k.start[0] in import_rows:
                    if before is not None and before.string == "from": continue
                    node = import_rows[k.start[0]]
                edits.append((k.start, k.end, names[k.string]))
    starts = strings_starts(strings, lines)
    for k in tokens:
        if k.type == tokenize.STRING and re.match(r"[rR]?[fF]", k.string):
            new = re.sub(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", lambda m: re.sub(r"(?<![\w.'\"])[A-Za-z_]\w*(?!['\"=])", lambda w: names.get(w[0], w[0]), m[0]), k.string)
            if new != k.string: edits.append((k.start, k.end, new))
        elif k.type == tokenize.STRING and k.start in starts:
            new = re.sub(r"\b[A-Za-z_]\w*\b", lambda m: names.get(m[0], m[0]), k.string)
            if new != k.string: edits.append((k.start, k.end, new))
        elif k.type in (tokenize.COMMENT, tokenize.STRING) and (k.type == tokenize.COMMENT or k.string.startswith(('"""', 'r"""'))):
            new = re.sub(r"`([^`\n]+)`", lambda m: "`" + re.sub(r"(?<![\w.'\"])[A-Za-z_]\w*", lambda w: names.get(w[0], w[0]), m[1]) + "`", k.string)
            new = re.sub(r"^(\s*(?:>>> |\.\.\. ).*)$", lambda m: re.sub(r"(?<![\w.'\"])[A-Z]\w*", lambda w: names.get(w[0], w[0]), m[1]), new, flags=re.M)
            if new != k.string: edits.append((k.start, k.end, new))
    out = lines
    for (r, c), (r2, c2), new in sorted(set(edits), reverse=True):
        if r == r2: out[r - 1] = out[r - 1][:c] + new + out[r - 1][c2:]
        else:
            head, tail = out[r - 1][:c], out[r2 - 1][c2:]
            out[r - 1 : r2] = (head + new + tail).splitlines(keepends=True)
    return "".join(out)


def strings_starts(strings, lines):
    """Columns of ast are in bytes; those of tokens in characters."""
    return {(r, len(lines[r - 1].encode()[:c].decode())) for r, c in strings}


import keyword
KEYWORDS = set(keyword.kwlist) - {"print"}


def apply_names(tree, say):
    names = Names(tree, say)
    aliases_pass(tree, names, say)
    names = Names(tree, lambda _: None)
    new_globals = {}
    for m, table in names.symbols.items():
        for old, new in table.items(): new_globals.setdefault(old, set()).add((m, new))
    definers = {}
    for m, d in names.defined.items():
        for n in d: definers.setdefault(n, set()).add(m)
    for p in python_files(tree):
        text = p.read_text()
        t = ast.parse(text)
        local, aliases, own = {}, {}, set()
        src = p.is_relative_to(tree / "src/hazemap")
        here = (module_of(tree, p) if p != tree / "src/hazemap/__init__.py" else "") if src else None
        if here in names.symbols:
            for old, new in names.symbols[here].items():
                if old in names.defined[here]: local[old] = new; own.add(old)
        for n in ast.walk(t):
            if isinstance(n, ast.ImportFrom) and (n.module or "").split(".")[0] == "hazemap":
                base = n.module.removeprefix("hazemap").removeprefix(".")
                for a in n.names:
                    full = f"{base}.{a.name}".lstrip(".")
                    if full in names.modules and a.name not in names.exports.get(base, {}):
                        table = {o: x for o in names.defined[full] | set(names.exports[full]) if (x := names.target(full, o))}
                        if table: aliases.setdefault(a.asname or a.name, {}).update(table)
                        continue
                    new = names.target(base, a.name)
                    if new is None: continue
                    if a.asname: local.setdefault("\0" + a.name, new); continue
                    if local.get(a.name, new) != new: say(f"{p}: {a.name} is two things")
                    local[a.name] = new
        # names that tests import from other tests stay; doctests and strings see what the file sees and unique CamelCase names
        plain = {o: x for o, x in local.items() if not o.startswith("\0")}
        for old, new in plain.items():
            rows = shadows(t, old, old in own)
            if rows: say(f"{p.relative_to(tree)}:{rows[0]}: {old} is something else, too")
            taken = {x.id for x in ast.walk(t) if isinstance(x, ast.Name)} | {x.arg for x in ast.walk(t) if isinstance(x, ast.arg)}
            if new in taken and new not in plain.values(): say(f"{p.relative_to(tree)}: {new} is taken")
        as_names = {o[1:]: x for o, x in local.items() if o.startswith("\0")}
        if as_names:
            for o, x in as_names.items(): text = re.sub(rf"(import (?:[\w ,()\n]*?))\b{o} as\b", rf"\g<1>{x} as", text)
        if plain or aliases: text = rename(text, plain, aliases, p, say)
        # public names through the package: hazemap.Parcels, hm.Parcels
        text = re.sub(r"\b(hazemap)\.([A-Za-z_]\w*)\b(?!\.)", lambda m: f"{m[1]}.{names.target('', m[2]) or m[2]}" if m[2][0].isupper() else m[0], text)
        def full(m):
            parts = m[1].split(".")
            for k in range(len(parts) - 1, 0, -1):
                mod = ".".join(parts[:k])
                if mod in names.modules:
                    new = names.target(mod, parts[k])
                    return "hazemap." + ".".join([mod, new, *parts[k + 1 :]]) if new else m[0]
            return m[0]
        text = re.sub(r"\bhazemap\.((?:\w+\.)+\w+)", full, text)
        if not src: text = code_strings(text, names)
        if src or p.is_relative_to(tree / "docs"): text = docstring_words(text, names, plain, definers)
        p.write_text(text)
    pages(tree, names, definers)
    tokens_pass(tree, names.table["tokens"], say)
    import runpy
    runpy.run_path(str(HERE / "apply.py"), run_name="names")["homes"](tree)
    written(tree, names.table["written"], say)
    words_pass(tree, names.table["words"], say)
    fields(tree, names.table["fields"], say)


def code_strings(text, names):
    """Programs in strings of tests: what they import is renamed in all of the string."""
    lines = text.splitlines(keepends=True)
    edits = []
    for k in tokenize.generate_tokens(io.StringIO(text).readline):
        if k.type != tokenize.STRING or "from hazemap." not in k.string: continue
        table = {}
        for m in re.finditer(r"from hazemap\.([\w.]+) import ([\w, ]+)", k.string):
            for n in re.findall(r"\w+", m[2]):
                new = names.target(m[1], n)
                if new: table[n] = new
        new = re.sub(r"(?<![\w.])[A-Za-z_]\w*", lambda w: table.get(w[0], w[0]), k.string)
        if new != k.string: edits.append((k.start, k.end, new))
    for (r, c), (r2, c2), new in sorted(edits, reverse=True):
        head, tail = lines[r - 1][:c], lines[r2 - 1][c2:]
        lines[r - 1 : r2] = (head + new + tail).splitlines(keepends=True)
    return "".join(lines)


def unique(names, definers):
    """CamelCase names that one file alone defines (or did): a word of a page means no other."""
    found = {}
    for m, table in names.symbols.items():
        for old, new in table.items():
            if old[0].isupper() and definers.get(old, {m}) == {m}: found[old] = new
    return found


def docstring_words(text, names, plain, definers):
    """`Word` in docstrings and comments of files that do not import it, and doctests that do."""
    table = {o: n for o, n in unique(names, definers).items() if o not in plain}
    if not table: return text
    t = ast.parse(text)
    out = text
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = text.splitlines(keepends=True)
    edits = []
    for k in tokens:
        if k.type == tokenize.COMMENT or (k.type == tokenize.STRING and k.string.startswith(('"""', 'r"""'))):
            word = lambda s: re.sub(r"(?<![\w.'\"])[A-Z]\w*", lambda w: table.get(w[0], w[0]), s)
            new = re.sub(r"`([^`\n]+)`", lambda m: "`" + word(m[1]) + "`", k.string)
            new = re.sub(r"^(\s*(?:>>> |\.\.\. ).*)$", lambda m: word(m[1]), new, flags=re.M)
            if new != k.string: edits.append((k.start, k.end, new))
    for (r, c), (r2, c2), new in sorted(edits, reverse=True):
        head, tail = lines[r - 1][:c], lines[r2 - 1][c2:]
        lines[r - 1 : r2] = (head + new + tail).splitlines(keepends=True)
    return "".join(lines)


def pages(tree, names, definers):
    """Code in pages: spans and fences."""
    table = unique(names, definers)
    shared = {}
    for m, t in names.symbols.items():
        for old, new in t.items():
            if old[0].isupper() and names.target("", old) == new: shared[old] = new   # public: hazemap.Layer
    everywhere = {**table, **shared}
    for p in [*sorted((tree / "docs").rglob("*.md")), tree / "README.md"]:
        if "_build" in p.parts: continue
        text = p.read_text()
        word = lambda s: re.sub(r"(?<![\w'\"/-])[A-Z]\w*(?![\w'\"])", lambda w: table.get(w[0], w[0]), s)
        def fence(m):
            if m[1].startswith("json"): return m[0]
            return m[0] if '{"' in m[0] and "import" not in m[0] else word(m[0])
        own = {}
        for found in re.finditer(r"from hazemap((?:\.\w+)*) import (\([^)]*\)|[\w, ]+)", text):
            for n in re.findall(r"\w+", found[2]):
                new = names.target(found[1].lstrip("."), n)
                if new: own[n] = new
        table = {**everywhere, **own}
        parts = re.split(r"(^```.*?^```)", text, flags=re.M | re.S)
        for i, part in enumerate(parts):
            if part.startswith("```"):
                kind = part[3:].split("\n", 1)[0]
                if "json" not in kind: parts[i] = word(part)
            else:
                parts[i] = re.sub(r"`([^`\n]+)`", lambda m: m[0] if m[1].startswith("{") else "`" + word(m[1]) + "`", part)
        text = "".join(parts)
        def full(m):
            pieces = m[1].split(".")
            for k in range(len(pieces) - 1, 0, -1):
                mod = ".".join(pieces[:k])
                if mod in names.modules:
                    new = names.target(mod, pieces[k])
                    return "hazemap." + ".".join([mod, new, *pieces[k + 1 :]]) if new else m[0]
            return m[0]
        text = re.sub(r"\bhazemap\.((?:\w+\.)+\w+)", full, text)
        def line(m):
            base, what = m[1], m[2]
            renamed = []
            for n in what.split(","):
                n = n.strip(); old = n.split(" as ")[0]
                new = names.target(base, old)
                renamed.append(n.replace(old, new, 1) if new else n)
            return f"from hazemap.{base} import {', '.join(renamed)}"
        text = re.sub(r"from hazemap\.([\w.]+) import ([\w, ]+)", line, text)
        p.write_text(text)


def tokens_pass(tree, table, say):
    files = [f for f in subprocess.run(["git", "-C", str(tree), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True).stdout.splitlines()
             if f.endswith((".py", ".md", ".json", ".toml")) and not f.startswith(SKIP)]
    for f in files:
        p = tree / f
        if not p.exists(): continue
        text = p.read_text()
        new = text
        for old, now in table.items():
            if re.search(rf"(?<![\w-]){re.escape(now)}(?![\w-])", text): say(f"{f} has {now} already")
            new = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", now, new)
        if new != text: p.write_text(new)


def aliases_pass(tree, names, say):
    """Array aliases: from the files that define them anew to hazemap/arrays.py."""
    table = names.table["aliases"]
    where = {}                                   # module -> {name: canonical}
    keep = {"Cells", "Colours", "Limbs", "Lanes", "Picture"}
    for m, p in names.modules.items():
        for n in ast.parse(p.read_text()).body:
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name):
                value = ast.unparse(n.value)
                if value in table and n.targets[0].id not in keep and n.targets[0].id[0] != "_": where.setdefault(m, {})[n.targets[0].id] = table[value]
    (tree / "src/hazemap/arrays.py").write_text('"""Arrays by the type of their numbers."""\n\nimport numpy as np\nfrom numpy.typing import NDArray\n\n'
        + "".join(f"{n} = {t}\n" for t, n in table.items()))
    for p in python_files(tree):
        text = p.read_text(); t = ast.parse(text)
        src = p.is_relative_to(tree / "src/hazemap")
        here = (module_of(tree, p) if p != tree / "src/hazemap/__init__.py" else "") if src else None
        local, drop_lines, needs = {}, set(), set()
        for n in t.body:
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name):
                value = ast.unparse(n.value)
                name = n.targets[0].id
                if (value in table and name not in keep and name[0] != "_") and (here in where or not src):
                    local[name] = table[value]; drop_lines |= set(range(n.lineno, n.end_lineno + 1)); needs.add(table[value])
        moved = []
        for n in ast.walk(t):
            if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("hazemap."):
                base = n.module.removeprefix("hazemap.")
                hit = [a for a in n.names if a.name in where.get(base, {})]
                for a in hit:
                    local[a.name] = where[base][a.name]; needs.add(where[base][a.name]); moved.append((n, a))
        if not local: continue
        for old, new in local.items():
            rows = [r for r in shadows(t, old, True)]
            if rows: say(f"{p.relative_to(tree)}:{rows[0]}: {old} is something else, too (alias)")
        lines = text.splitlines(keepends=True)
        for n in {id(n): n for n, _ in moved}.values():
            gone = {a.name for x, a in moved if x is n}
            left = [a for a in n.names if a.name not in gone]
            indent = re.match(r"\s*", lines[n.lineno - 1]).group()
            keep_line = f"{indent}from {n.module} import {', '.join(ast.unparse(a) for a in left)}\n" if left else ""
            lines[n.lineno - 1] = keep_line
            for r in range(n.lineno, n.end_lineno): lines[r] = ""
        for r in drop_lines: lines[r - 1] = ""
        text = "".join(lines)
        text = rename(text, {o: x for o, x in local.items() if o != x}, {}, p, say)
        # the import goes behind the last import at the top
        t = ast.parse(text)
        tops = [n for n in t.body if isinstance(n, (ast.Import, ast.ImportFrom))]
        lines = text.splitlines(keepends=True)
        at = tops[-1].end_lineno if tops else 1
        lines.insert(at, f"from hazemap.arrays import {', '.join(sorted(needs))}\n")
        p.write_text("".join(lines))


def written(tree, table, say):
    p = tree / "src/hazemap/codec/allowed_types.py"
    text = p.read_text()
    rows = "".join(f'    "{new}": "{old}",\n' for new, old in sorted(table.items()))
    text = text.rstrip("\n") + ("\n\nWRITTEN: Mapping[str, str] = {\n" + rows + "}\n"
        '"""Types whose name in texts is older than the one in the code, so that old texts are read and digests stay."""\n\n\n'
        'def written_name(type_: type) -> str:\n    """What a type is called in texts."""\n    return WRITTEN.get(type_.__name__, type_.__name__)\n')
    p.write_text(text)


AS: dict = {}


def words_pass(tree, table, say):
    """Our own words inside identifiers, and in the sentences of docstrings, comments, messages and pages."""
    code = {w: c for w, (c, _) in table.items()}
    prose = {w: p for w, (_, p) in table.items()}
    plural = lambda t: {**t, **{w + "s": x + "s" for w, x in t.items()}}
    code, prose = plural(code), plural(prose)
    upper = {w.upper(): c.upper() for w, c in code.items()}

    def identifier(name):
        if name.isupper():
            return "_".join(upper.get(part, part) for part in name.split("_"))
        return "_".join(code.get(part, part) for part in name.split("_")) if re.search(r"[a-z]", name) and not re.search(r"[A-Z]", name) else name

    def in_code(text): return re.sub(r"[A-Za-z_]\w*", lambda m: identifier(m[0]), text)

    def sentence(text):
        def word(m):
            low = m[0].lower()
            new = prose.get(low)
            if new is None: return m[0]
            return new[0].upper() + new[1:] if m[0][0].isupper() else new
        return re.sub(r"(?<![\w.`-])[A-Za-z]+(?![\w`(=-]|\.\w)", word, text)

    def mixed(text):
        """A docstring or comment: doctests and code spans as code, all else as sentences."""
        out = []
        for line in text.split("\n"):
            if re.match(r"\s*(>>>|\.\.\.) ", line): out.append(in_code(line)); continue
            parts = re.split(r"(`[^`\n]*`)", line)
            out.append("".join(in_code(x) if x.startswith("`") else sentence(x) for x in parts))
        return "\n".join(out)

    for p in python_files(tree):
        text = p.read_text()
        if not re.search("|".join(code), text, flags=re.I): continue
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        rows = {r for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Import, ast.ImportFrom)) for r in range(n.lineno, n.end_lineno + 1)}
        there = {k.string for k in tokens if k.type == tokenize.NAME and k.start[0] not in rows}
        edits = []
        last = ""
        for k in tokens:
            new = k.string
            before, last = last, k.string
            if k.type == tokenize.NAME and (k.start[0] not in rows or before == "as"):
                new = identifier(k.string)
                if new != k.string and new in there: say(f"{p.relative_to(tree)}:{k.start[0]}: {new} is there already, for {k.string}")
            elif k.type == tokenize.COMMENT: new = mixed(k.string)
            elif k.type == tokenize.STRING:
                body = k.string
                if re.match(r"(r?\"\"\")", body): new = mixed(body)
                elif re.match(r"[rR]?[fF]", body):
                    parts = re.split(r"(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})", body)
                    new = "".join(in_code(x) if x.startswith("{") else sentence(x) for x in parts)
                elif re.fullmatch(r"[\"'](\w+(?:, ?\w+)*)[\"']", body): new = in_code(body)
                elif " " in body: new = sentence(body)
            if new != k.string: edits.append((k.start, k.end, new))
        lines = text.splitlines(keepends=True)
        for (r, c), (r2, c2), new in sorted(edits, reverse=True):
            head, tail = lines[r - 1][:c], lines[r2 - 1][c2:]
            lines[r - 1 : r2] = (head + new + tail).splitlines(keepends=True)
        p.write_text(re.sub(r"(import (?:[\w, ]*, )?)(\w+) as \2\b", r"\1\2", "".join(lines)))
    for p in [*sorted((tree / "docs").rglob("*.md")), tree / "README.md"]:
        if "_build" in p.parts or "decisions" in p.parts: continue
        text = p.read_text()
        parts = re.split(r"(^```.*?^```)", text, flags=re.M | re.S)
        for i, part in enumerate(parts):
            if part.startswith("```"):
                if not re.match(r"```\{?(json|console)", part): parts[i] = in_code(part)
            else:
                spans = re.split(r"(`[^`\n]*`|\]\([^)]*\))", part)
                parts[i] = "".join(in_code(x) if x.startswith("`") and "-" not in x else x if x.startswith(("`", "](")) else sentence(x) for x in spans)
        p.write_text("".join(parts))


def fields(tree, table, say):
    p = tree / "src/hazemap/codec/allowed_types.py"
    text = p.read_text()
    old = 'RENAMED: Mapping[str, str] = {"outside": "nowhere"}'
    if text.count(old) != 1: say("allowed_types.py has another table RENAMED"); return
    more = ", ".join(f'"{n}": "{o}"' for n, o in table.items())
    p.write_text(text.replace(old, old[:-1] + ", " + more + "}"))
