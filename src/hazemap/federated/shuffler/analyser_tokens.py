"""Who may analyse: some names, each with a token of its own in the shuffler's folder.

A token ends when its file is removed, at once; its name is left out at the next start, or gets a new token then.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from hazemap.errors import InputError
from hazemap.federated.service.access_tokens import known_token, token_file

FIRST: Final = "analyser"
"""Who analyses where nobody is named; its token is in `analyser.token`."""
MOST: Final = 64
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")

Tokens = Callable[[], Mapping[str, str]]
"""The tokens that open a shuffler now, by the names of their analysers."""


class AnalyserTokens:
    """The tokens of these analysers, in files of their own that are made where there are none.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     tokens = AnalyserTokens(Path(folder), ("anna", "ben"))
    ...     first = sorted(tokens())
    ...     tokens.path("anna").unlink()
    ...     first, sorted(tokens())
    (['anna', 'ben'], ['ben'])
    """

    def __init__(self, folder: Path, names: Sequence[str] = (FIRST,)) -> None:
        if not 1 <= len(names) <= MOST or len(set(names)) < len(names):
            raise InputError(f"a shuffler has 1 to {MOST} analysers, each named once")
        for name in names:
            if not _NAME.fullmatch(name):
                raise InputError(
                    f"an analyser's name is 1 to 64 letters, digits and . _ @ -, from a letter or digit on; found "
                    f"{name!r:.80}"
                )
        self._folder, self.names = folder, tuple(names)
        for name in names:
            self.path(name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            token_file(self.path(name))

    def path(self, name: str) -> Path:
        """Where an analyser's token is."""
        if name == FIRST:
            return self._folder / "analyser.token"
        return self._folder / "analysers" / f"{name}.token"

    def __call__(self) -> Mapping[str, str]:
        """The tokens whose files are there."""
        found = {name: known_token(self.path(name)) for name in self.names}
        return {name: token for name, token in found.items() if token is not None}
