"""What one device has seen of its server's public log of recipes, by its disk, and what was read of it since."""

from dataclasses import dataclass

from hazemap.federated.device.encrypted_store import Write
from hazemap.federated.device.public_recipe_log import PublicRecipeLog
from hazemap.federated.device.recipe_log_heads import RecipeLogHeads
from hazemap.federated.protocols.chained_log import LogHead
from hazemap.federated.trust.device_tasks import Task


@dataclass(frozen=True)
class SeenRecipeLog:
    """`log` is what any device of the process has read of the log at `server`."""

    heads: RecipeLogHeads
    server: str
    log: PublicRecipeLog

    def seen(self) -> LogHead:
        """The last entry that the device has seen, by its disk."""
        return self.heads.seen(self.server)

    def refusal(self, task: Task, seen: LogHead) -> str | None:
        """Why a device that had `seen` so much does not answer a task; None where it does, and for maps."""
        return None if task.recipe is None else self.log.refusal(task, seen)

    def kept(self, seen: LogHead) -> tuple[Write, ...]:
        """The statement that keeps what was read; none where it does not go on from what was seen."""
        return () if self.log.rewritten(seen) else self.heads.kept(self.server, self.log.head)
