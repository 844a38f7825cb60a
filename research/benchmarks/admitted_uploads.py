"""Whether a sum over two servers is that of honest first reports, while a quarter of devices attack and servers die.

    python -m research.benchmarks.admitted_uploads [UPLOADS] [KILLS]

200 devices have a credential for each of ten tasks, 50 of them are hostile: ten each send the same report again and
again, many reports under one credential, reports under credentials of others that they have seen, junk, or requests
that announce 30 MB or whose bodies come a byte at a time. Meanwhile the leader or the helper is killed (SIGKILL) and
started again. Written to results/admitted_uploads.json beside this script; it fails where a sum is wrong.
"""

import asyncio
import json
import os
import platform
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import httpx

from hazemap.federated.aggregator.collector_client import CollectorClient
from hazemap.federated.aggregator.task_file import TaskFile, new_task_files
from hazemap.federated.protocols.dap.basic_types import TimeInterval
from hazemap.federated.protocols.dap.client import DapClient
from hazemap.federated.protocols.dap.report_credentials import HeldCredential, ReportAdmission, issued, report_key
from hazemap.federated.protocols.dap.resource_paths import reports
from hazemap.federated.protocols.dap.task import BatchMode, DapTask
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.upload_messages import DapReport, UploadErrors, UploadRequest
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfigList, MultihotConfiguration
from hazemap.privacy.signing_identities import Identity

from .two_servers import RUN, free_port

RESULTS = Path(__file__).with_name("results") / "admitted_uploads.json"
PRECISION = 7 * 86_400
TASKS, DEVICES, HOSTILE, CELLS = 10, 200, 50, 16
KINDS = ("replays", "two reports", "another's serial", "junk", "30 MB and slow bodies")
SLOW, AT_ONCE = 8, 24
"""Seconds for which a slow body drips, and devices that are at work at a time."""


@dataclass
class Servers:
    """Both processes; each may die at any moment."""

    folder: Path
    ports: dict[str, int]
    tasks: int
    running: "dict[str, subprocess.Popen[bytes]]" = field(default_factory=dict)

    def start(self, role: str) -> None:
        """Start one."""
        command = [sys.executable, "-c", RUN, "aggregator", "--role", role, "--port", str(self.ports[role])]
        command += ["--data", str(self.folder / role)]
        for number in range(self.tasks):
            command += ["--task", str(self.folder / f"{role}-{number}.toml")]
        with (self.folder / f"{role}.log").open("ab") as log:
            self.running[role] = subprocess.Popen(command, stderr=log)

    def kill(self, role: str) -> None:
        """Kill one, and start it again."""
        self.running[role].kill()
        self.running[role].wait()
        self.start(role)


@dataclass
class Person:
    """A device: what it holds for each task, and where its person is in each."""

    name: bytes
    kind: str
    cells: list[int]

    def held(self, issuer: Identity, secret: bytes, task: DapTask) -> HeldCredential:
        """Its credential of a task."""
        key = report_key(self.name.ljust(32), task.id)
        return HeldCredential.received(
            issued(issuer, secret, task.id, self.name, key.public), key, issuer.public, task.id
        )


class World:
    """Everybody, and what became of each upload."""

    def __init__(self, folder: Path, uploads: int, kills: int) -> None:
        self.random, self.uploads, self.kills = Random(29), uploads, kills
        self.servers = Servers(folder, {role: free_port() for role in ("leader", "helper")}, TASKS)
        self.issuer, self.secret = Identity.from_bytes(b"i" * 32), b"s" * 32
        urls = {role: f"http://127.0.0.1:{port}/" for role, port in self.servers.ports.items()}
        self.files = []
        for number in range(TASKS):
            task = DapTask.created(
                self.random.randbytes(32),
                b"a round",
                urls["leader"],
                urls["helper"],
                PRECISION,
                DEVICES - 3 * HOSTILE // len(KINDS),
                BatchMode.TIME_INTERVAL,
                MultihotConfiguration(CELLS, 4, 1),
                admission=ReportAdmission(self.issuer.public, DEVICES),
            )
            made = new_task_files(task, os.urandom)
            for role in urls:
                made[role].write(folder / f"{role}-{number}.toml")
            self.files.append(made)
        kinds = [KINDS[at % len(KINDS)] for at in range(HOSTILE)] + ["honest"] * (DEVICES - HOSTILE)
        self.people = [
            Person(b"person %d" % at, kind, [self.random.randrange(CELLS) for _ in range(TASKS)])
            for at, kind in enumerate(kinds)
        ]
        self.answers, self.sent, self.waits = Counter[str](), Counter[str](), list[float]()
        self.seen = dict[int, DapReport]()
        self.killed = Counter[str]()

    async def run(self) -> dict[str, object]:
        """All of it."""
        for role in self.servers.ports:
            self.servers.start(role)
        begun = time.perf_counter()
        async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=200)) as http:
            self.http = http
            keys = [await self._key(port) for port in self.servers.ports.values()]
            self.clients = [DapClient(made["client"].task, vdaf_of(made["client"].task), *keys) for made in self.files]
            each = (self.uploads - (DEVICES - HOSTILE) * TASKS) // (HOSTILE * TASKS)
            killer = asyncio.create_task(self._kill())
            at_once = asyncio.Semaphore(AT_ONCE)
            work = [(person, number) for number in range(TASKS) for person in self.people]
            self.random.shuffle(work)

            async def one(person: Person, number: int) -> None:
                async with at_once:
                    await self._act(person, number, each)

            await asyncio.gather(*(one(person, number) for person, number in work))
            uploading = time.perf_counter() - begun
            await killer
        found = await asyncio.to_thread(self._collected)
        return {**self._facts(found), "upload_s": round(uploading, 1), "all_s": round(time.perf_counter() - begun, 1)}

    async def _key(self, port: int) -> "object":
        while True:
            with suppress(httpx.HTTPError):
                reply = await self.http.get(f"http://127.0.0.1:{port}/hpke_config")
                if reply.status_code == 200:
                    return HpkeConfigList.from_bytes(reply.content).preferred()
            await asyncio.sleep(0.1)

    async def _kill(self) -> None:
        """Kill servers evenly over the uploads."""
        for number in range(self.kills):
            while sum(self.sent.values()) < (number + 1) * self.uploads / (self.kills + 1):
                await asyncio.sleep(0.02)
            role = self.random.choice(["leader", "helper"])
            self.killed[role] += 1
            await asyncio.to_thread(self.servers.kill, role)

    def _report(self, person: Person, number: int, cell: int, held: HeldCredential | None = None) -> DapReport:
        client = self.clients[number]
        bits = [at == cell for at in range(CELLS)]
        held = held or person.held(self.issuer, self.secret, client.task)
        made = client.report(bits, int(time.time()), os.urandom(client.randomness_bytes), credential=held)
        assert isinstance(made, DapReport)
        return made

    async def _act(self, person: Person, number: int, each: int) -> None:
        first = self._report(person, number, person.cells[number])
        if person.kind == "honest":
            await self._until_taken(person, number, first)
            self.seen[number] = first
        elif person.kind == "replays":
            await self._until_taken(person, number, first)
            for _ in range(each - 1):
                await self._upload(person, number, UploadRequest((first,)).to_bytes())
        elif person.kind == "two reports":
            await self._until_taken(person, number, first)
            for at in range(1, each):
                other = self._report(person, number, (person.cells[number] + at) % CELLS)
                await self._upload(person, number, UploadRequest((other,)).to_bytes())
        elif person.kind == "another's serial":
            for _ in range(each):
                await self._upload(person, number, self._theft(person, number, first))
        elif person.kind == "junk":
            size = len(first.to_bytes())
            for at in range(each):
                await self._upload(person, number, os.urandom(size if at % 2 else self.random.randrange(1, 3 * size)))
        else:
            for at in range(each):
                await (self._slow if at == 0 else self._long)(person, number, len(first.to_bytes()))

    def _theft(self, person: Person, number: int, own: DapReport) -> bytes:
        """A report under what another device has shown."""
        theirs = self.seen.get(number)
        if theirs is None:
            held = replace(person.held(self.issuer, self.secret, self.clients[number].task), serial=os.urandom(32))
            return UploadRequest((self._report(person, number, 0, held),)).to_bytes()
        metadata = replace(own.metadata, public_extensions=theirs.metadata.public_extensions)
        return UploadRequest((replace(own, metadata=metadata),)).to_bytes()

    async def _until_taken(self, person: Person, number: int, report: DapReport) -> None:
        """As devices do: the same bytes until the leader says that it has them."""
        begun, body = time.perf_counter(), UploadRequest((report,)).to_bytes()
        while await self._upload(person, number, body) not in ("taken", "report_replayed"):
            await asyncio.sleep(0.2)
        self.waits.append(time.perf_counter() - begun)

    async def _upload(self, person: Person, number: int, body: bytes) -> str:
        self.sent[person.kind] += 1
        url = self.clients[number].task.leader + reports(self.clients[number].task.id)
        try:
            reply = await self.http.post(url, content=body, headers={"Content-Type": UploadRequest.media_type()})
        except httpx.HTTPError:
            said = "no answer"
        else:
            said = f"HTTP {reply.status_code}" if reply.status_code != 200 else "taken"
            if reply.status_code == 200 and reply.content:
                said = UploadErrors.from_bytes(reply.content).statuses[0].error.name.lower()
        self.answers[f"{person.kind}: {said}"] += 1
        return said

    async def _long(self, person: Person, number: int, _: int) -> None:
        await self._raw(person, number, 30_000_000, b"0" * 65_536, 0.0)

    async def _slow(self, person: Person, number: int, size: int) -> None:
        await self._raw(person, number, size, b"0", 0.5)

    async def _raw(self, person: Person, number: int, size: int, part: bytes, pause: float) -> None:
        """A head that announces so many bytes, and what follows until the server has enough of it."""
        self.sent[person.kind] += 1
        task, said = self.clients[number].task, "no answer"
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(task.leader).port)
            head = f"POST /{reports(task.id)} HTTP/1.1\r\nHost: x\r\nContent-Type: {UploadRequest.media_type()}\r\n"
            writer.write(f"{head}Content-Length: {size}\r\n\r\n".encode())
            answer = asyncio.create_task(_first_line(reader))
            until = time.perf_counter() + SLOW
            while not answer.done() and time.perf_counter() < until:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause)
            if answer.done():
                said = f"HTTP {answer.result().decode().split(' ')[1]}" if answer.result() else said
            else:
                said = "waited for"
                answer.cancel()
            writer.close()
        except OSError:
            pass
        self.answers[f"{person.kind}: {said}"] += 1

    def _collected(self) -> list[tuple[int, list[int]]]:
        """Each task's reports and sums; what is wrong ends the program."""
        now, found = int(time.time()), list[tuple[int, list[int]]]()
        with httpx.Client(timeout=120) as http:
            for number, made in enumerate(self.files):
                file: TaskFile = made["collector"]
                result = CollectorClient(file, http).collect(TimeInterval(now // PRECISION, 1), wait=1_800)
                counted = [each for each in self.people if each.kind in ("honest", *KINDS[:2])]
                truth = Counter(each.cells[number] for each in counted)
                if result.count != len(counted) or list(result.sums) != [truth[at] for at in range(CELLS)]:
                    raise SystemExit(f"task {number}: {result.count} reports, {result.sums}, and not {truth}")
                found.append((result.count, list(result.sums)))
        return found

    def _facts(self, found: list[tuple[int, list[int]]]) -> dict[str, object]:
        memory = {
            f"{role}_most_mb": int(line.split()[1]) // 1024
            for role, process in self.servers.running.items()
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
            if line.startswith("VmHWM")
        }
        [database] = (self.servers.folder / "leader").glob("*.sqlite")
        [(rows,)] = sqlite3.connect(database).execute("SELECT count(*) FROM reports").fetchall()
        waits = sorted(self.waits)
        return {
            "uploads": sum(self.sent.values()),
            "sent": dict(self.sent),
            "answers": dict(sorted(self.answers.items())),
            "kills": dict(self.killed),
            "tasks": TASKS,
            "counted_each": sorted({count for count, _ in found}),
            "sums_right": len(found),
            "rows_stored": rows,
            "honest_wait_s": {"median": round(waits[len(waits) // 2], 3), "longest": round(waits[-1], 2)},
            **memory,
        }


async def _first_line(reader: asyncio.StreamReader) -> bytes:
    """What a server answers, or nothing where it hangs up."""
    try:
        return await reader.readline()
    except OSError:
        return b""


def main() -> None:
    """Run once and write."""
    uploads, kills = (int(value) for value in [*sys.argv[1:], "10000", "20"][:2])
    if len(sys.argv) == 2:
        kills = 20
    with TemporaryDirectory() as folder:
        world = World(Path(folder), uploads, kills)
        try:
            found = asyncio.run(world.run())
        finally:
            for process in world.servers.running.values():
                process.kill()
                process.wait()
    machine = {"cpus": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version()}
    result = {"devices": DEVICES, "hostile": HOSTILE, **found, **machine}
    print(json.dumps(result, indent=1))
    if (uploads, kills) == (10_000, 20):
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
