"""Random SQL over two streams, of which some fields are denied: sound queries, hostile ones, and damaged ones."""

import random

ALLOWED = ("keyboard.ngram", "keyboard.time", "keyboard.speed", "profile.age")
FIELDS = {
    "keyboard": ("ngram", "time", "speed", "secret"),
    "profile": ("age", "city"),
    "vault": ("pin", "word"),
}
"""Denied are keyboard.secret, profile.city and all of vault."""

PLAIN = ("abs", "avg", "count", "length", "lower", "max", "min", "round", "sign", "sum", "total", "typeof", "upper")
PAIRS = ("coalesce", "ifnull", "nullif", "max", "min", "substr", "round", "instr", "trim")
DENIED = (
    *(
        "randomblob",
        "zeroblob",
        "printf",
        "format",
        "hex",
        "quote",
        "group_concat",
        "json",
        "json_array",
        "json_object",
    ),
    *("json_group_array", "char", "date", "datetime", "strftime", "julianday", "unixepoch", "changes", "soundex"),
    *("last_insert_rowid", "sqlite_version", "load_extension", "likelihood", "likely", "sqlite_compileoption_get"),
    *("total_changes", "sqlite_source_id", "sqlite_offset", "fts3_tokenizer", "match", "regexp", "random", "pow"),
)
OPERATORS = ("+", "-", "*", "/", "%", "||", "=", "<", "IS", "LIKE", "GLOB", "AND", "OR", "->")
WINDOWS = ("row_number()", "rank()", "dense_rank()", "lag({})", "lead({})", "first_value({})", "ntile(2)", "sum({})")
TABLES = (
    *("sqlite_master", "sqlite_schema", "sqlite_temp_master", "main.sqlite_master", "temp.sqlite_schema", "dbstat"),
    *("pragma_table_info('keyboard')", "pragma_table_list", "pragma_function_list", "pragma_database_list"),
    *("json_each('[1, 2]')", "json_tree(ngram)", "json_each(secret)", "sqlite_stmt", "generate_series(1, 1000000000)"),
    *("bytecode('SELECT 1')", "fts3tokenize('simple')", "pragma_compile_options", "main.keyboard", "main.vault"),
    *("'keyboard'", "'vault'", "[vault]", '"vault"', "`vault`", "KEYBOARD", "Vault"),
)
ROW_NUMBERS = ("rowid", "oid", "_rowid_", "ROWID", "main.keyboard.secret", "keyboard.secret", "vault.pin")
DAMAGE = (
    *(";", "; SELECT secret FROM keyboard", "--", "/*", "*/", "\0", "\ufeff", "'", '"', "`", "[", "]", "(", ")", ","),
    *("EXPLAIN", "EXPLAIN QUERY PLAN", "PRAGMA", "ATTACH ':memory:' AS x", "RETURNING secret"),
    *("NATURAL", "USING (time)", "VALUES (1)", "INDEXED BY x", "NOT INDEXED", "COLLATE nocase", "ALL"),
    *("RAISE(ABORT, secret)", ":x", "?1", "@x", "$x", "secret", "*", "vault", "||", "->", "->>"),
    *("IS NOT DISTINCT FROM", "DISTINCT", "9223372036854775808", "1e999", "x'ff'", "NULL", "\u00a0"),
    *("ESCAPE 'a'", "MATERIALIZED", "RECURSIVE", "0x7fffffffffffffff"),
)  # fmt: skip


class Grammar:
    """Queries from one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.scope: list[tuple[str, tuple[str, ...]]] = []
        self.parts: list[str] = []
        self.aliases = 0

    def query(self) -> str:
        """One query; one of five is damaged."""
        self.scope, self.parts = [], []
        text = self.select(3)
        if self.chance.random() < 0.3:
            for name in self.chance.choice((("c",), ("c", "d"), ("c", "keyboard"), ("c", "json_each"))):
                columns = "(a, b) " if self.chance.random() < 0.2 else ""
                kind = self.chance.choice(("", "", "MATERIALIZED ", "NOT MATERIALIZED "))
                self.parts.append(f"{name} {columns}AS {kind}({self.select(2)})")
            text = f"WITH {self.chance.choice(('', '', 'RECURSIVE '))}{', '.join(self.parts)} {text}"
            text = text.replace("FROM keyboard", self.chance.choice(("FROM c", "FROM c, keyboard", "FROM keyboard")), 1)
        if self.chance.random() < 0.2:
            words = text.split(" ")
            for _ in range(self.chance.randint(1, 3)):
                place = self.chance.randrange(len(words) + 1)
                words[place : place + self.chance.randint(0, 1)] = [self.chance.choice(DAMAGE)]
            text = " ".join(words)
        return text

    def select(self, depth: int) -> str:
        """A SELECT, perhaps with another one after it."""
        tables, before = self.tables(depth), len(self.scope)
        self.scope += tables[1]
        star = self.chance.choice(("*", f"{tables[1][0][0]}.*", "count(*)", "1"))
        columns = [self.value(depth) for _ in range(self.chance.randint(1, 3))]
        text = f"SELECT {star if self.chance.random() < 0.15 else ', '.join(columns)} FROM {tables[0]}"
        if self.chance.random() < 0.5:
            text += f" WHERE {self.field()} {self.chance.choice(OPERATORS)} {self.value(depth - 1)}"
        if self.chance.random() < 0.2:
            text += f" GROUP BY {self.field()}"
            text += f" HAVING {self.value(depth - 1)}" if self.chance.random() < 0.3 else ""
        if self.chance.random() < 0.1:
            text += f" WINDOW w AS (PARTITION BY {self.value(0)} ORDER BY {self.value(0)})"
        if depth and self.chance.random() < 0.07:
            kind = self.chance.choice(("UNION", "UNION ALL", "EXCEPT", "INTERSECT"))
            text += f" {kind} SELECT {', '.join(self.field() for _ in columns)} FROM {tables[0]}"
        elif self.chance.random() < 0.2:
            text += f" ORDER BY {self.value(depth - 1)}"
        if self.chance.random() < 0.2:
            text += f" LIMIT {self.chance.choice(('1', '3', '2 OFFSET 1', '(SELECT max(time) FROM keyboard)'))}"
        del self.scope[before:]
        return text

    def tables(self, depth: int) -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
        """What follows FROM, and the names that it brings."""
        texts, names = [], []
        for place in range(self.chance.choice((1, 1, 1, 2, 3))):
            self.aliases += 1
            roll, alias = self.chance.random(), f"t{self.aliases}"
            if roll < 0.02:
                texts.append(f"{self.chance.choice(TABLES)} AS {alias}")
                names.append((alias, ("name", "value", "sql", "secret", "pin")))
            elif roll < 0.15 and depth:
                texts.append(f"({self.select(depth - 1)}) AS {alias}")
                names.append((alias, ("time", "ngram")))
            else:
                stream = self.chance.choices(tuple(FIELDS), (30, 12, 1))[0]
                texts.append(f"{stream} AS {alias}" if place or self.chance.random() < 0.3 else stream)
                names.append((alias if " AS " in texts[-1] else stream, FIELDS[stream]))
        joins = (" JOIN ", ", ", " LEFT JOIN ", " CROSS JOIN ", " FULL JOIN ", " NATURAL JOIN ", " RIGHT JOIN ")
        text = texts[0]
        for each in texts[1:]:
            text += self.chance.choices(joins, (40, 40, 30, 9, 9, 1, 9))[0] + each
        return text, names

    def field(self) -> str:
        """A name of a field; a denied one now and then."""
        if not self.scope or self.chance.random() < 0.01:
            return self.chance.choice((*ROW_NUMBERS, "ngram", "time", "a", "b", "x", "value"))
        table, fields = self.chance.choice(self.scope)
        allowed = [each for each in fields if each not in ("secret", "city", "pin", "word")] or list(fields)
        name = self.chance.choice(allowed if self.chance.random() < 0.985 else fields)
        return name if self.chance.random() < 0.1 else f"{table}.{name}"

    def value(self, depth: int) -> str:
        """An expression."""
        if depth <= 0 or self.chance.random() < 0.45:
            constants = ("1", "'a'", "-1", "2.5", "NULL", "'hello world'", "9223372036854775807")
            return self.chance.choice(constants) if self.chance.random() < 0.25 else self.field()
        one, two = self.value(depth - 1), self.value(depth - 1)
        roll = self.chance.random()
        if roll < 0.02:
            return f"{self.chance.choice(DENIED)}({one})"
        if roll < 0.2:
            return f"{self.chance.choice(PLAIN)}({one})"
        window = self.chance.choice(WINDOWS).format(one)
        return self.chance.choice(
            (
                *[f"{one} {self.chance.choice(OPERATORS)} {two}"] * 3,
                *[f"{self.chance.choice(PAIRS)}({one}, {two})"] * 3,
                f"CASE WHEN {one} THEN {two} ELSE {self.field()} END",
                f"CAST({one} AS {self.chance.choice(('TEXT', 'INTEGER', 'REAL', 'BLOB'))})",
                f"{one} {self.chance.choice(('IN', 'NOT IN'))} ({two}, 1)",
                f"({one}) IN (SELECT {self.chance.choice(('time', 'ngram', 'time', 'secret'))} FROM keyboard)",
                f"({one}) IN (SELECT age FROM profile WHERE age > {two})",
                f"EXISTS ({self.select(depth - 1)})",
                f"(SELECT count(*) FROM {self.chance.choices(('keyboard', 'profile', 'c', 'vault'), (9, 9, 3, 1))[0]})",
                f"count(*) FILTER (WHERE {one})",
                f"{window} OVER (PARTITION BY {two} ORDER BY {self.field()})",
                f"{window} OVER w" if self.chance.random() < 0.1 else f"- {one}",
                f"{one} BETWEEN {two} AND {self.field()}",
                f"{one} COLLATE {self.chance.choice(('nocase', 'binary', 'rtrim', 'nocase', 'secret'))}",
                f"({one}, {two}) = ({self.field()}, {self.field()})",
            )
        )
