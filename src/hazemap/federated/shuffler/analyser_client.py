"""An analyser's line to a shuffler: announce a batch, wait, have it permuted, fetch it once, have it forgotten."""

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hazemap.errors import InputError, NotOpened, Refused, Unreachable
from hazemap.federated.protocols.shuffle.batch_terms import BatchTerms
from hazemap.federated.service.bounded_answer import WORDS, asked_async

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
