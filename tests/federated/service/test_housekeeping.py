"""What a server does besides answering."""

import asyncio
import logging

import pytest

from hazemap.errors import StoreError
from hazemap.federated.service import housekeeping
from hazemap.federated.service.housekeeping import alongside


def test_a_server_looks_after_what_it_keeps_again_when_its_disk_has_room(monkeypatch, caplog):
    looked = []

    class Ended(Exception):
        pass

    async def look():
        looked.append(1)
        raise StoreError("the disk is full") if len(looked) < 3 else Ended

    monkeypatch.setattr(housekeeping, "HOUSEKEEPING", 0)
    with pytest.raises(Ended):
        asyncio.run(housekeeping.housekeeping(look, logging.getLogger("hazemap.federated.server")))
    assert len(looked) == 3 and caplog.text.count("the disk is full") == 2


def test_what_goes_on_besides_ends_with_the_server_however_that_ends():
    ended = []

    async def forever():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    async def serve():
        async with alongside(forever(), forever()):
            await asyncio.sleep(0)
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="is full"):
        asyncio.run(serve())
    assert ended == [1, 1]
