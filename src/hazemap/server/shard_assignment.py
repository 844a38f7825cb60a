"""Which devices have a place in which running shard."""

import asyncio
from collections.abc import Iterable
from concurrent.futures import Executor

from hazemap.server.campaign_spec import Deadlines
from hazemap.server.device_enrolment import Device, Enrolled
from hazemap.server.secure_sum_events import SumEvent
from hazemap.server.secure_sum_plan import SecureSumPlan
from hazemap.server.shard import Shard
from hazemap.server.shard_outcomes import ShardOutcome
from hazemap.server.shard_seat import SeatTask, ShardSeat
from hazemap.server.store import CampaignStore


class Seating:
    """The running shards of all campaigns. A device has at most one seat in each; it may have several in all."""

    def __init__(self, store: CampaignStore, enrolled: Enrolled, pool: Executor) -> None:
        self.running: dict[bytes, Shard] = {}
        self.people = 0
        self._store, self._enrolled, self._pool = store, enrolled, pool

    async def run(self, plan: SecureSumPlan, deadlines: Deadlines, events: Iterable[SumEvent] = ()) -> ShardOutcome:
        """Run a shard to its end, with those of its roster that are enrolled."""
        session = plan.terms.session
        loop = asyncio.get_running_loop()
        shard = await loop.run_in_executor(self._pool, Shard, plan, deadlines, self._store, self._pool)
        seated = []
        for position, identity in enumerate(plan.roster):
            device = self._enrolled.device(identity)
            device.seats[session] = ShardSeat(shard, position)
            seated.append(device)
        self.running[session] = shard
        self.people += len(seated)
        try:
            return await shard.run(events)
        finally:
            self.people -= len(seated)
            del self.running[session]
            for device in seated:
                device.seats.pop(session, None)

    @staticmethod
    def work(device: Device) -> tuple[ShardSeat, SeatTask] | None:
        """The first thing that a device is asked, if anything."""
        for seat in device.seats.values():
            work = seat.shard.work(seat.position)
            if work:
                return seat, work
        return None
