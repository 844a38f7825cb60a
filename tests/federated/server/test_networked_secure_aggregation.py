"""Devices as an asynchronous trust model: the two-line driver of a session works with them."""

import asyncio

import pytest
from tests.federated.server.fleet import Town, crowd
from tests.federated.server.test_campaign_spec import TREE, campaign

from hazemap.algorithms import FittedLevel
from hazemap.errors import Unanswerable
from hazemap.federated.server.networked_secure_aggregation import DeviceTrustModel
from hazemap.federated.service.store import Write
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.queries.algorithm_session import Unrecorded, run_async
from hazemap.queries.noisy_queries import Choice, Query


def test_an_algorithm_runs_among_devices_by_run_async(tmp_path):
    ordered = campaign(algorithm=FittedLevel(TREE), budget=PureDP(25))

    async def play():
        async with Town(tmp_path, crowd(12)) as town:
            await town.store.write(Write("INSERT INTO campaigns VALUES ('berlin', '', '', 'tested', '', '', NULL)"))
            core = town.coordinator
            devices = DeviceTrustModel(ordered, core.house)
            assert devices.answers(Query)
            assert not devices.answers(Choice)
            running = asyncio.create_task(run_async(ordered.algorithm, devices, ordered.budget, Unrecorded()))
            while not running.done():
                for device in town.devices:
                    await device.step(town.http)
                await asyncio.sleep(0.01)
            return await running

    result = asyncio.run(play())
    assert round(float(result.value.unbiased.sum())) == 12
    assert len(result.transcript) == 2
    assert all(exchange.answer.people == 12 for exchange in result.transcript)


def test_only_sums_for_everybody_are_answered(tmp_path):
    async def play():
        async with Town(tmp_path, []) as town:
            core = town.coordinator
            devices = DeviceTrustModel(campaign(), core.house)
            first = next(campaign().algorithm.rounds(devices.prices(PureDP(1))))
            with pytest.raises(Unanswerable, match="ask everybody"):
                await devices.answer(Query(first.encoder, first.share, cohort=1), PureDP(1))
            with pytest.raises(Exception, match="pure"):
                devices.prices(ZCDP(1))

    asyncio.run(play())
