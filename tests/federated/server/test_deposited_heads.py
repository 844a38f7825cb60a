"""What a device deposits of its account is written with what it was charged for, and given back with its work."""

import asyncio

from tests.federated.server.fleet import Town, crowd
from tests.federated.server.test_announced_rounds import asked, opened, said
from tests.federated.server.test_http_routes import seated

from hazemap.federated.server.device_endpoints import deposited

HEADS = ("ab" * 24, "cd" * 24)


async def next_work(town, device):
    """What a device is asked once all others have answered."""
    while (work := await asked(town, device)) is None:
        await asyncio.gather(*(each.step(town.http) for each in town.devices if each is not device))
        await asyncio.sleep(0.01)
    return work


def test_a_head_is_on_the_disk_with_the_answer_and_comes_back_after_a_restart(tmp_path, monkeypatch):
    async def story():
        async with Town(tmp_path / "town", crowd(12)) as town:
            first, second = town.devices[:2]
            assert {each["head"] for each in await seated(town)} == {None}
            written, submit = [], town.store.submit
            monkeypatch.setattr(town.store, "submit", lambda jobs, *rest: written.append(jobs) or submit(jobs, *rest))
            first.deposit = f"?head={HEADS[0]}"
            assert await first.step(town.http) and first.statuses == [204]
            [job] = [jobs for jobs in written if any("head" in each.sql for each in jobs)]
            assert [each.sql.split()[0] for each in job] == ["INSERT", "UPDATE"], "one transaction"
            assert (await next_work(town, first))["head"] == HEADS[0]
            await town.restart()
            assert (await next_work(town, first))["head"] == HEADS[0]
            assert (await next_work(town, second))["head"] is None, "nobody is given the head of another"
            assert await first.step(town.http) and first.statuses[-1] == 204

    asyncio.run(story())


def test_a_head_that_comes_with_what_was_said_before_is_on_the_disk_too(tmp_path):
    """The device has paid meanwhile for what this server has not heard of, and so has deposited nothing for."""

    async def story():
        async with Town(tmp_path / "town", crowd(12)) as town:
            await seated(town)
            first, second = town.devices[:2]
            sent, post = [], town.http.post

            async def keeping(path, **options):
                sent.append((path, options))
                return await post(path, **options)

            town.http.post = keeping
            assert await first.step(town.http)
            [(path, options)] = sent
            assert (await post(f"{path}?head={HEADS[0]}", **options)).status_code == 204
            await next_work(town, first)
            assert (await post(f"{path}?head={HEADS[1]}", **options)).status_code == 204, "of the stage before"
            await opened(town, [second])
            for head in HEADS:
                assert await said(town, second, head=head) == 204
            await town.restart()
            kept = [town.coordinator.enrolled.device(each.identity.public).head.hex() for each in (first, second)]
            assert kept == [HEADS[1]] * 2

    asyncio.run(story())


def test_what_is_written_in_another_way_is_no_head_and_nothing_else_follows():
    queries = ("", "head=", "head=zz", f"head={'ab' * 25}", f"head={HEADS[0]}&x=1", "%00", f"head={'AB' * 24}")
    assert {deposited({"query_string": query.encode()}) for query in queries} == {b""}
    assert deposited({"query_string": f"head={HEADS[0]}".encode()}).hex() == HEADS[0]


def test_a_head_comes_with_the_word_that_a_report_has_arrived(tmp_path):
    async def story():
        devices = crowd(3)
        async with Town(tmp_path / "town", devices) as town:
            round_ = await opened(town, devices)
            assert (await asked(town, devices[0]))["head"] is None
            assert await said(town, devices[0], head=HEADS[1]) == 204
            assert await said(town, devices[1], head="?") == 204
            assert await said(town, devices[2], "too dear", head=HEADS[0]) == 204
            await asyncio.gather(round_)
            await town.restart()
            found = [town.coordinator.enrolled.device(each.identity.public).head.hex() for each in devices]
            assert found == [HEADS[1], "", HEADS[0]]

    asyncio.run(story())
