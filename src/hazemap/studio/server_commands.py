"""The command line and the Python that do what somebody does in the studio with a coordinator. Tokens stay in files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hazemap.specs.spec_fields import Value
from hazemap.studio.command_text import SameAs, line, option_words
from hazemap.studio.coordinator_access import CoordinatorAccess


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
            "from hazemap.codec import dumps\nfrom hazemap.federated.server.campaign_order import CampaignOrder\n",
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
            "from hazemap.codec import dumps\nfrom hazemap.federated.server.study_order import StudyOrder\n",
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
