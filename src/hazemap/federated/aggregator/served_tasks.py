"""The tasks that an aggregator serves, from its folder of task files: they never change, and no id is forgotten."""

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final

from hazemap.errors import InputError
from hazemap.federated.aggregator.task_file import ROLES, TaskFile
from hazemap.federated.aggregator.task_retention import FORGOTTEN
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask, DrawNoise
from hazemap.federated.protocols.dap.basic_types import Role
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.service.store import Store, Write
from hazemap.privacy.random_stream import Stream

LEAST_BATCH: Final = 1


def aggregator_task(file: TaskFile, stream: Callable[[], Stream] = Stream.from_os) -> AggregatorTask:
    """What an aggregator makes of its file. Its noise is that of the task, each time from a fresh stream."""
    role = ROLES.get(file.party)
    if role is None or file.verify_key is None or file.collector is None:
        raise InputError(f"this is the file of a {file.party}: an aggregator takes a leader's or a helper's")
    task = file.task
    noise: DrawNoise | None = (lambda law, size: law.draw(stream(), size)) if task.noisy else None
    terms = file.report_expiry, file.open_reports
    return AggregatorTask(task, role, vdaf_of(task), file.verify_key, file.collector, noise, *terms)


def register_tasks(store: Store, files: Iterable[TaskFile], role: Role) -> dict[bytes, int]:
    """The number of each task in the store; `InputError` for a file of another role, or a task that has changed."""
    numbers = {bytes(task): (number, bytes(terms)) for number, task, terms in store.read("SELECT * FROM tasks")}
    after = max((number for number, _ in numbers.values()), default=0)
    for file in files:
        task = file.task
        if ROLES.get(file.party) is not role:
            raise InputError(f"this aggregator is a {role.name.lower()}; a task file is of a {file.party}")
        terms = sha256(task.configuration + (file.verify_key or b"") + task.version.tag).digest()
        known = numbers.get(task.id)
        if known is not None and known[1] == FORGOTTEN:
            raise InputError("a task of this id is over, and was forgotten: give a new one an id of its own")
        if known is not None and known[1] != terms:
            raise InputError(
                "a task is another than it was: a task never changes, so give the new one an id of its own"
            )
        if known is None:
            after += 1
            store.write_now(Write("INSERT INTO tasks VALUES (?, ?, ?)", (after, task.id, terms)))
            numbers[task.id] = (after, terms)
    return {task: number for task, (number, _) in numbers.items()}
