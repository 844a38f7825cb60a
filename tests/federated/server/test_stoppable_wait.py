"""Threads that wait for others' servers end when nobody wants their result any more."""

import asyncio
import time

import pytest

from hazemap.federated.server.networked_two_servers import stoppable


def test_a_thread_that_waits_is_left_at_once_when_its_campaign_is_stopped():
    ended = []

    def work(pause):
        try:
            pause(600)
        finally:
            ended.append(True)

    async def story():
        task = asyncio.create_task(stoppable(work))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    begun = time.monotonic()
    asyncio.run(story())  # it waits for its threads
    assert ended == [True] and time.monotonic() - begun < 60


def test_what_goes_wrong_in_the_thread_is_raised():
    with pytest.raises(ZeroDivisionError):
        asyncio.run(stoppable(lambda _: 1 / 0))
