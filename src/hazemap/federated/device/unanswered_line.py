"""The line of a person's log about what was refused before it was answered, however damaged its message is."""

from collections.abc import Callable
from datetime import datetime

from hazemap.federated.device.activity_log import LogEntry
from hazemap.federated.device.printable_text import one_line
from hazemap.federated.device.recipe_log_entry import RecipeLogEntry
from hazemap.federated.device.server_task import ReadTask

DAMAGED = "nothing that can be understood"


def unanswered(read: Callable[[], ReadTask], outcome: str, now: datetime) -> LogEntry | RecipeLogEntry:
    """The line; `read` gives what was asked, or fails in any way, for the message may be why it is refused."""
    try:
        found = read()
        task = found.task
        if (asked := task.recipe) is not None:
            facts = (asked.id, asked.analysis, one_line(asked.purpose), asked.digest, asked.query.text)
            return RecipeLogEntry(now, *facts, verdict=outcome)
        question = found.words
    except Exception:
        return LogEntry(now, "unknown", "unknown", 0, DAMAGED, outcome=outcome)
    return LogEntry(now, one_line(task.campaign), one_line(task.purpose), task.round, question, outcome=outcome)
