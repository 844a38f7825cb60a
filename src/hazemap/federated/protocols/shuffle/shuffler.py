"""Takes sealed messages of enrolled people, and hands them on in an order that says nothing; it opens none."""

from collections.abc import Sequence

from hazemap.errors import NotOpened, Refused
from hazemap.federated.protocols.shuffle.shuffle_parameters import ShuffleParameters
from hazemap.privacy.random_permutation import in_any_order
from hazemap.privacy.random_stream import Stream


class Shuffler:
    """One batch: who has sent, and what, until it is handed on and forgotten.

    A person's messages are taken whole or not at all: as many as the parameters say, each as long as they say, once.
    What is in them it cannot see.

    >>> terms = ShuffleParameters(bytes(32), size=2, bits=8, block=2, honest=1_000, minimum=1_000)
    >>> batch = Shuffler(terms)
    >>> batch.take("ann", [bytes(terms.message_bytes)] * terms.messages)
    >>> batch.people
    1
    """

    def __init__(self, terms: ShuffleParameters) -> None:
        self.terms = terms
        self._messages: list[bytes] = []
        self._people: set[str] = set()
        self._handed_on = False

    @property
    def people(self) -> int:
        """How many people's messages are there."""
        return len(self._people)

    def take(self, person: str, messages: Sequence[bytes]) -> None:
        """All messages of an enrolled person, or none: `Refused` for another number, another length, a second time."""
        terms = self.terms
        if self._handed_on:
            raise Refused("this batch was handed on already; it takes no more messages")
        if person in self._people:
            raise Refused("this person's messages are in this batch already; each counts once")
        if len(messages) != terms.messages:
            raise Refused(
                f"a person sends {terms.messages:,} messages to this batch, all or none, not {len(messages):,}"
            )
        if any(len(each) != terms.message_bytes for each in messages):
            raise Refused(f"a message of this batch has {terms.message_bytes:,} bytes, every one of them")
        self._people.add(person)
        self._messages.extend(messages)

    def hand_on(self, stream: Stream) -> list[bytes]:
        """All messages in an order drawn uniformly, once; nothing of them or of who sent them stays here.

        `NotOpened` while too few people have sent theirs; then everything stays as it was.
        """
        if self._handed_on:
            raise Refused("this batch was handed on already, and forgotten")
        if self.people < self.terms.minimum:
            raise NotOpened(
                f"{self.people:,} people have sent their messages, and nothing below {self.terms.minimum:,} is handed "
                "on: wait for more of them"
            )
        order = in_any_order(stream, len(self._messages)).tolist()
        shuffled = [self._messages[at] for at in order]
        self._messages.clear()
        self._people.clear()
        self._handed_on = True
        return shuffled
