"""A trial: what one method does at one place, and how it is told apart from every other."""

from dataclasses import dataclass
from hashlib import sha256

from hazemap import __version__
from hazemap.codec import dumps, to_json
from hazemap.compare.map_scores import VERSION, WORKLOAD
from hazemap.compare.source_digest import code_of
from hazemap.compare.trial_settings import Named, Place, Row, Setting
from hazemap.errors import InputError


@dataclass(frozen=True)
class Trial:
    """A place by its name, a method, a setting, the budget ε, and which of several repetitions it is.

    What a place and a method are is the setting's: a map and a way to release it, a table of speeds and a mean.
    """

    place: str
    method: Named
    setting: Setting
    epsilon: str
    repetition: int

    def key(self, place: Place) -> str:
        """A digest of all that its result can depend on but luck: the people, the method, its parameters and its code,
        the setting, ε, the queries, the version of the scores and of hazemap.

        A name is not part of it: a method or a map that is only called otherwise need not be measured again.
        `InputError` if this method cannot be run here.
        """
        if not isinstance(place, self.setting.places):
            raise InputError(f"{self.place} holds nothing that {self.method.name} could be compared on here")
        if not isinstance(self.method, self.setting.methods):
            raise InputError(f"the method {self.method.name} is no method for {self.place} here")
        algorithm = self.setting.algorithm(place, self.method, self.epsilon)
        known = (
            place.digest,
            dumps(algorithm),
            code_of(type(algorithm).__module__),
            type(self.setting).__name__,
            str(to_json(self.setting)),
            self.epsilon,
            str(self.repetition),
            WORKLOAD.decode(),
            str(VERSION),
            __version__,
        )
        return sha256("\n".join(known).encode()).hexdigest()

    def labels(self, place: Place) -> Row:
        """What a row of results says of its trial before any score."""
        settings = {name: value for name, value in vars(self.setting).items() if type(value) in (int, float, str)}
        return {
            "map": self.place,
            "people": place.people,
            **place.size,
            "method": self.method.name,
            "spelled": self.method.spelled,
            "epsilon": float(self.epsilon),
            "repetition": self.repetition,
            "at": self.method.at,
            **{f"set_{name}": value for name, value in {**settings, **self.method.settings}.items()},
        }
