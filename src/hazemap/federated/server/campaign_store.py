"""The coordinator's store."""

from pathlib import Path

from hazemap.codec import loads
from hazemap.federated.server.schema import SCHEMA
from hazemap.federated.service.databases import Database
from hazemap.federated.service.store import Store
from hazemap.queries.algorithm_session import Exchange


class CampaignStore(Store):
    """Campaigns, devices, secure sums and who may do what; `federated.server.schema` has the tables.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = CampaignStore(Path(folder) / "server.sqlite")
    ...     found = store.read("SELECT name FROM facts")
    ...     store.close()
    >>> found
    [('version',)]
    """

    forgiving = False  # a coordinator numbers events and entries of logs before they are written

    def __init__(self, place: str | Path | Database) -> None:
        super().__init__(place, SCHEMA)


_EXCHANGES = "SELECT question, answer FROM exchanges WHERE campaign = ? ORDER BY round"


def stored_exchanges(store: CampaignStore, name: str) -> list[Exchange]:
    """Every question of a campaign that was answered, with its answer."""
    return [Exchange(loads(question), loads(answer)) for question, answer in store.read(_EXCHANGES, name)]
