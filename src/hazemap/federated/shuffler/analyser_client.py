"""An analyser's client of a shuffler, and the tokens of analysers.

The client announces a batch, waits, has it permuted, fetches it once, and has it forgotten. Each analyser has a token
in the shuffler's folder. A token ends when its file is removed, at once; its name is left out at the next start, or
gets a new token then.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hazemap.errors import InputError, NotOpened, Refused, Unreachable
from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms
from hazemap.federated.service.access_tokens import known_token, token_file
from hazemap.federated.service.operator_line import WORDS, asked_async

if TYPE_CHECKING:
    import httpx


MORE: Final = "the shuffler hands on more messages than the people of this batch could send"


class ShuffledBatch(NamedTuple):
    """How the shuffler says that a batch stands."""

    state: str
    people: int
    pieces: int
    sha256: str | None


class AnalyserClient:
    """Requests to one shuffler. `http` has its address as the base URL; `token` is what it knows its analyser by."""

    def __init__(self, http: "httpx.AsyncClient", token: str) -> None:
        self._http, self._headers = http, {"Authorization": f"Bearer {token}"}

    async def key(self) -> bytes:
        """The shuffler's public key."""
        reply = await self._asked("GET", "/v1/shuffler")
        try:
            return bytes.fromhex(reply.json()["key"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Unreachable("what answers at the shuffler's address is no shuffler") from error

    async def announce(self, terms: BatchTerms) -> None:
        """Begin a batch; again does nothing. `InputError` where the shuffler does not take it."""
        await self._asked("PUT", _path(terms.digest), content=terms.to_bytes())

    async def state(self, batch: bytes) -> ShuffledBatch:
        """How a batch stands."""
        return _batch(await self._asked("GET", _path(batch)))

    async def collected(self, terms: BatchTerms) -> list[bytes]:
        """All messages of a batch, in the one order that the shuffler drew; the same ones if it is asked again.

        `NotOpened` below the minimum. `Refused` where the shuffler does not say how many people they are of, or hands
        on something else than it said. Call `forget` once they are added up.
        """
        found = _batch(await self._asked("POST", f"{_path(terms.digest)}/permutation"))
        size, most = terms.message_bytes, terms.most_bytes
        parts: list[bytes] = []
        for number in range(found.pieces):
            where = f"{_path(terms.digest)}/messages"
            piece = (await self._asked("GET", where, most + 1, params={"piece": str(number)})).content
            parts.append(piece)
            most -= len(piece)
            if most < 0:
                raise Refused(MORE)
            if not piece or len(piece) % size:
                raise Refused("the shuffler hands on a piece that is not of whole messages: the batch is not opened")
        every = b"".join(parts)
        if sha256(every).hexdigest() != found.sha256 or len(every) % size:
            raise Refused("the shuffler hands on something else than it said it would: the batch is not opened")
        return [every[start : start + size] for start in range(0, len(every), size)]

    async def forget(self, batch: bytes) -> None:
        """Have all messages of a batch deleted."""
        await self._asked("DELETE", _path(batch))

    async def _asked(self, method: str, path: str, most: int = WORDS, **options: Any) -> "httpx.Response":
        """The answer, whose body is read as far as `most` bytes: a shuffler may send without end."""
        import httpx

        try:
            reply = await asked_async(self._http, method, path, max(most, WORDS), self._headers, **options)
        except httpx.HTTPError as error:
            raise Unreachable(f"the shuffler does not answer ({type(error).__name__})") from error
        except Refused as error:
            raise Refused(f"the shuffler's answer is not read: {error}") from error
        if reply.is_success:
            return reply
        words = f"the shuffler says: {_words(reply)}"
        if reply.status_code == 409:
            raise NotOpened(words)
        if reply.status_code == 422:
            raise InputError(words)
        if reply.status_code == 429 or reply.status_code >= 500:
            raise Unreachable(words)
        raise Refused(words)


def _path(batch: bytes) -> str:
    return f"/v1/batches/{batch.hex()}"


def _batch(reply: "httpx.Response") -> ShuffledBatch:
    try:
        found = reply.json()
        state, people, pieces, digest = (found[name] for name in ("state", "people", "pieces", "sha256"))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreachable("the shuffler does not say how a batch stands") from error
    if type(state) is not str or any(type(each) is not int or not 0 <= each < 1 << 40 for each in (people, pieces)):
        raise Unreachable("the shuffler does not say how a batch stands")
    return ShuffledBatch(state, people, pieces, digest if isinstance(digest, str) else None)


def _words(reply: "httpx.Response") -> str:
    try:
        return str(reply.json()["error"])[:500]
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"HTTP {reply.status_code}"


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
