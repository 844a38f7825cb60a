"""A leader with nothing to do looks less and less often, and at once when somebody sends something."""

import asyncio
import threading
from contextlib import suppress
from types import SimpleNamespace

from hazemap.federated.aggregator import leader_driver
from hazemap.federated.aggregator.leader_driver import IDLE, LONGEST_IDLE, ONCE, WORKERS, LeaderDriver


class IdleService:
    """A service without requests, but for those that a test puts there."""

    def __init__(self):
        self.task = SimpleNamespace(task=SimpleNamespace(helper="https://helper.example/", id=bytes(32)))
        self.looks, self.waiting = 0, []

    def requests(self, ring, now, most):
        self.looks += 1
        return [self.waiting.pop() for _ in range(min(most, len(self.waiting)))]


def driver(service):
    made = LeaderDriver(service, SimpleNamespace(ring=lambda: None), None, "token", lambda: 0)

    async def sent(request):
        return None

    made._sent = sent
    return made


async def until(condition):
    async with asyncio.timeout(600):
        while not condition():
            await asyncio.sleep(0.001)


def test_pauses_grow_while_nothing_happens_and_are_short_again_afterwards():
    service, pauses = IdleService(), []

    async def woken(seconds):
        pauses.append(seconds)
        if len(pauses) == 8:
            service.waiting = [object()]
        if len(pauses) == 10:
            raise asyncio.CancelledError
        return False

    made = driver(service)
    made._woken = woken
    with suppress(asyncio.CancelledError):
        asyncio.run(made._work())
    assert pauses == [IDLE, 2 * IDLE, 4 * IDLE, 8 * IDLE, 16 * IDLE, LONGEST_IDLE, LONGEST_IDLE, LONGEST_IDLE, IDLE,
                      2 * IDLE]  # fmt: skip


def test_who_waits_is_woken_from_another_thread_and_wakes_the_other_worker(monkeypatch):
    monkeypatch.setattr(leader_driver, "IDLE", 3_600.0)
    service = IdleService()

    async def run():
        made = driver(service)
        work = asyncio.create_task(made.run())
        await until(lambda: service.looks == WORKERS)
        service.waiting = [object() for _ in range(3 * ONCE + 1)]
        threading.Thread(target=service.listener).start()
        await until(lambda: not service.waiting)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    asyncio.run(run())
    assert service.looks >= WORKERS + 4
    service.listener()  # the loop has ended: nobody minds
