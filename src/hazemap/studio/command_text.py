"""The command line and the Python that do the same as a form of the studio. Tokens stay in files."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hazemap.privacy.ledger import Ledger
from hazemap.specs.spec_fields import RELEASE, STATISTICS, Field, Value
from hazemap.studio.coordinator_access import CoordinatorAccess
from hazemap.studio.order_form import STATISTICS_KIND, fields_of, is_statistics


@dataclass(frozen=True)
class SameAs:
    """What else does the same: a command for a terminal and a few lines of Python, both in the folder of the files."""

    command: str
    python: str

    def to_json(self) -> dict[str, str]:
        """For the browser."""
        return {"command": self.command, "python": self.python}


@dataclass(frozen=True)
class StewardCommands:
    """Commands of a steward who works in a folder; `ledger` is named where it is not the default one.

    >>> words = StewardCommands(Path("/data"), None).release({"source": "a b.csv", "epsilon": "1", "box": "-1,2,3,4"})
    >>> print(words.command)
    cd /data
    hazemap release 'a b.csv' --epsilon 1 --box=-1,2,3,4
    >>> print(words.python)
    import os, hazemap
    <BLANKLINE>
    os.chdir('/data')
    hazemap.release('a b.csv', epsilon='1', box='-1,2,3,4')
    """

    folder: Path
    ledger: Ledger | None

    def release(self, order: Mapping[str, Value]) -> SameAs:
        """Release a map, or statistics."""
        rest = {name: value for name, value in order.items() if name != "source"}
        what = "stats" if rest.pop("kind", None) == STATISTICS_KIND else "release"
        words = [what, str(order["source"]), *option_words(rest, fields_of(order)), *self._ledger]
        return self._same(words, f"hazemap.{what}({_arguments([order['source']], rest, self._keyword)})")

    def plan(self, order: Mapping[str, Value], people: int) -> SameAs:
        """Plan one."""
        if is_statistics(order):
            options = {name: value for name, value in order.items() if name != "kind"}
            words = ["stats", "--plan", "--value", "VALUE", *option_words(options, STATISTICS)]
            return self._same(words, f"hazemap.plan_stats({_arguments([], options)})")
        rest = {name: value for name, value in order.items() if name != "box"}
        words = ["plan", *option_words({"box": order["box"]}), "--people", str(people), *option_words(rest)]
        return self._same(words, f"hazemap.plan({_arguments([order['box']], {'people': people, **rest})})")

    def show(self, file: str) -> SameAs:
        """Draw a release."""
        picture = str(Path(file).with_suffix(".png"))
        python = f"hazemap.open({file!r}).plot().savefig({picture!r})"
        return self._same(["show", file, "-o", picture], python)

    def export(self, file: str, goal: str) -> SameAs:
        """Write its numbers for other tools."""
        return self._same(["export", file, "-o", goal], f"hazemap.open({file!r}).export({goal!r})")

    def compare(self, files: Sequence[str]) -> SameAs:
        """Draw two releases in one scale; the command line draws one at a time."""
        opened = ", ".join(f"({file!r}, hazemap.open({file!r}).map)" for file in files)
        python = f"from hazemap.draw import draw_side_by_side, save\n\nsave(draw_side_by_side([{opened}]), 'two.png')"
        command = " && ".join(line(["show", file]) for file in files)
        return SameAs(f"{self._cd}\n{command}", f"{self._python_cd}\n{python}")

    def difference(self, before: str, after: str) -> SameAs:
        """Show what changed from one release to another."""
        page = str(Path(after).with_suffix(".html"))
        python = (
            f"made = hazemap.open({after!r}).since(hazemap.open({before!r}))\nopen({page!r}, 'w').write(made.to_html())"
        )
        return self._same(["show", after, "--since", before, "-o", page], python)

    def history(self, dataset: str | None) -> SameAs:
        """Look at the ledger."""
        words = ["ledger", "history", *([] if dataset is None else [dataset]), *self._ledger]
        book = "hazemap.Ledger.default()" if self.ledger is None else f"hazemap.{self._keyword['ledger'].text}"
        asked = "" if dataset is None else repr(dataset)
        return SameAs(line(words), f"import hazemap\n\n{book}.history({asked})")

    def recover(self, charge: int, go_on: bool = False) -> SameAs:
        """Make the file of a charge, or pay the rest after a look."""
        words = ["recover", str(charge), *["--continue"] * go_on, *self._ledger]
        rest = {"go_on": True} if go_on else {}
        return self._same(words, f"hazemap.recover({_arguments([charge], rest, self._keyword)})")

    @property
    def _ledger(self) -> list[str]:
        return [] if self.ledger is None else ["--ledger", str(self.ledger.place)]

    @property
    def _keyword(self) -> dict[str, "_Code"]:
        return {} if self.ledger is None else {"ledger": _Code(f"hazemap.Ledger({str(self.ledger.place)!r})")}

    @property
    def _cd(self) -> str:
        return f"cd {shlex.quote(str(self.folder))}"

    @property
    def _python_cd(self) -> str:
        return f"import os, hazemap\n\nos.chdir({str(self.folder)!r})"

    def _same(self, words: Sequence[str], python: str) -> SameAs:
        return SameAs(f"{self._cd}\n{line(words)}", f"{self._python_cd}\n{python}")


@dataclass(frozen=True)
class _Code:
    """Python that stands for itself."""

    text: str

    def __repr__(self) -> str:
        return self.text


def line(words: Sequence[str]) -> str:
    """A command as a shell takes it."""
    return shlex.join(["hazemap", *words])


def option_words(order: Mapping[str, Value], fields: Mapping[str, Field] = RELEASE) -> list[str]:
    """Names of a specification as options, in the order of a file."""
    words: list[str] = []
    for name, field in fields.items():
        if name not in order:
            continue
        flag, value = max(field.flags, key=len, default=f"--{name.replace('_', '-')}"), order[name]
        if value is True:
            words.append(flag)
        elif not isinstance(value, bool):
            repeated = value if isinstance(value, list) else [value]
            for each in repeated if field.texts else [",".join(map(str, repeated))]:
                words += [f"{flag}={each}"] if str(each).startswith("-") else [flag, str(each)]
    return words


def _arguments(first: Sequence[Any], named: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> str:
    rest = {**named, **(more or {})}
    return ", ".join([*map(repr, first), *(f"{name}={value!r}" for name, value in rest.items())])


@dataclass(frozen=True)
class ServerCommands:
    """Commands of somebody who works with one coordinator.

    >>> from pathlib import Path
    >>> commands = ServerCommands(CoordinatorAccess("http://127.0.0.1:8470", Path("/c/operator.token")))
    >>> print(commands.campaign("watch", "commuters").command)
    hazemap campaign watch commuters --server http://127.0.0.1:8470 --token-file /c/operator.token
    >>> print(commands.campaign("stop", "commuters").python)
    from pathlib import Path
    from hazemap.federated.service.operator_line import operator
    <BLANKLINE>
    with operator('http://127.0.0.1:8470', Path('/c/operator.token')) as server:
        server.post('/v1/campaigns/commuters/stop')
    """

    access: CoordinatorAccess

    def campaigns(self) -> SameAs:
        """List campaigns."""
        return self.same(["campaign", "list"], "print(server.get('/v1/campaigns'))")

    def devices(self) -> SameAs:
        """List devices."""
        return self.same(["server", "devices"], "print(server.get('/v1/devices'))")

    def campaign(self, what: str, name: str) -> SameAs:
        """Watch, stop, resume or release in part."""
        if what == "watch":
            return self.same(["campaign", what, name], f"print(server.get({f'/v1/campaigns/{name}'!r}))")
        path = f"/v1/campaigns/{name}/{'partial' if what == 'release-partial' else what}"
        return self.same(["campaign", what, name], f"server.post({path!r})")

    def fetch(self, name: str, file: str) -> SameAs:
        """Fetch a release; `file` is a whole path."""
        asked = f"server.content({f'/v1/campaigns/{name}/release'!r})"
        return self.same(["campaign", "release", name, "-o", file], f"Path({file!r}).write_bytes({asked})")

    def order(self, order: Mapping[str, Any], map_: Mapping[str, Value]) -> SameAs:
        """Begin a campaign."""
        words = ["campaign", "start", *_words(order), *option_words(map_)]
        own = ", ".join(f"{name}={value!r}" for name, value in order.items())
        return self.same(
            words,
            "server.post('/v1/campaigns', dumps(campaign).encode())",
            "from hazemap.codec import dumps\nfrom hazemap.federated.server.campaign_spec import CampaignOrder\n",
            f"order = CampaignOrder({own})\ncampaign = order.campaign(order.map_of({dict(map_)!r}))\n",
        )

    def study(self, what: str, name: str) -> SameAs:
        """Look at a study, or stop it."""
        python = {"status": "print(study.status())", "stop": "study.stop()"}
        return self._of_study(["study", what, name], name, python[what])

    def begin_study(self, order: Mapping[str, Any]) -> SameAs:
        """Begin a study."""
        rest = {name: value for name, value in order.items() if name != "name"}
        own = ", ".join(f"{name}={value!r}" for name, value in order.items())
        return self.same(
            ["study", "begin", str(order["name"]), *_words(rest)],
            f"server.post('/v1/studies', dumps(StudyOrder({own}).study()).encode())",
            "from hazemap.codec import dumps\nfrom hazemap.federated.server.studies import StudyOrder\n",
        )

    def ask(self, name: str, file: str) -> SameAs:
        """Ask the recipe in a file, by its whole path."""
        asked = f"print(study.answer(study.begin(read_recipe(Path({file!r})))))"
        return self._of_study(["study", "ask", name, file], name, asked, "read_recipe")

    def results(self, name: str, round_: int, confidence: float) -> SameAs:
        """Look at the answer of a round."""
        words = ["study", "results", name, "--round", str(round_), "--confidence", str(confidence)]
        return self._of_study(words, name, f"print(study.answer({round_}))")

    def answers(self, name: str, file: str) -> SameAs:
        """Write all answers to a file, by its whole path."""
        return self._of_study(["study", "release", name, "-o", file], name, f"study.release().save({file!r})")

    def _of_study(self, words: Sequence[str], name: str, python: str, more: str = "") -> SameAs:
        imports = "from hazemap.federated.study.http_study import HttpStudy\n"
        if more:
            imports = "from hazemap.federated.recipes.recipe_file import read_recipe\n" + imports
        return self.same(words, f"study = HttpStudy(server.http, {name!r})\n{python}", imports)

    def same(self, words: Sequence[str], python: str, imports: str = "", before: str = "") -> SameAs:
        """A command with its server and token, and a few lines of Python with `server`."""
        access = self.access
        reached = ["--server", access.url, "--token-file", str(access.token)]
        given = [repr(access.url), f"Path({str(access.token)!r})"]
        if access.certificate is not None:
            reached += ["--trust-certificate", str(access.certificate)]
            given.append(f"Path({str(access.certificate)!r})")
        script = (
            f"from pathlib import Path\n{imports}"
            f"from hazemap.federated.service.operator_line import operator\n\n{before}"
            f"with operator({', '.join(given)}) as server:\n"
        )
        return SameAs(line([*words, *reached]), script + "\n".join(f"    {each}" for each in python.splitlines()))


def _words(order: Mapping[str, Any]) -> list[str]:
    words = []
    for name, value in order.items():
        flag = f"--{name.replace('_', '-')}"
        words += [f"{flag}={value}"] if str(value).startswith("-") else [flag, str(value)]
    return words
