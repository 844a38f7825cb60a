"""Python's collector leaves alone what a server has loaded."""

import asyncio
import gc
import sys
from types import ModuleType

import pytest

from hazemap.federated.service import housekeeping


@pytest.fixture
def thawed():
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_what_is_loaded_is_set_aside_once_nothing_more_is_loaded(thawed, monkeypatch):
    monkeypatch.setattr(housekeeping, "PAUSE", 0.0)

    async def looked(times):
        for _ in range(times):
            await asyncio.sleep(0)

    async def counts():
        work = asyncio.create_task(housekeeping.settled())
        await looked(1)
        found = [gc.get_freeze_count()]  # the first look
        await looked(20)
        found.append(gc.get_freeze_count())
        kept = [[number] for number in range(5_000)]  # more objects, and no more code
        await looked(20)
        found.append(gc.get_freeze_count())
        monkeypatch.setitem(sys.modules, "loaded_meanwhile", ModuleType("loaded_meanwhile"))
        await looked(20)
        found.append(gc.get_freeze_count())
        work.cancel()
        return found, kept

    gc.unfreeze()
    (first, settled, later, again), _ = asyncio.run(counts())
    assert gc.get_threshold()[0] == housekeeping.YOUNG
    assert first == 0 < settled
    assert later <= settled
    assert again > later + 4_000
