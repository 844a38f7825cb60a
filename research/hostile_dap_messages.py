"""Messages of DAP that a hostile peer might send: valid ones, spoilt, and what each decoder says of them.

usage: python -m research.hostile_dap_messages [--number 100000] [--seed 1]

A decoder may refuse bytes (`CodecError`, `Refused`) or give the one value that is written as those bytes. It may not
fail in another way, work for long, or make room for what a length only promises. Every decoder gets `--number` inputs:
spoilt one to four times in bits, bytes and lengths, or cut, doubled, or mixed with other messages.
"""

import argparse
import random
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from time import process_time, thread_time

from hazemap.errors import CodecError, Refused
from hazemap.privacy.local_randomisers import Asymmetric, UnaryEncoding
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from hazemap.privacy.signing_identities import Identity
from hazemap.protocols.dap import aggregation_messages as aggregation
from hazemap.protocols.dap import collection_messages as collection
from hazemap.protocols.dap import upload_messages as upload
from hazemap.protocols.dap import upload_messages_09 as upload_09
from hazemap.protocols.dap.basic_types import HpkeCiphertext, Interval, ReportError
from hazemap.protocols.dap.blank_reports import BlankReports
from hazemap.protocols.dap.extensions import Extension, check_extensions
from hazemap.protocols.dap.hpke_configs import HpkeConfig, HpkeConfigList
from hazemap.protocols.dap.media_types import message_name
from hazemap.protocols.dap.privacy_parameters import PrivacyParameters
from hazemap.protocols.dap.problem_types import ProblemDocument, ProblemType
from hazemap.protocols.dap.report_credentials import HeldCredential, ReportAdmission, ReportCredential, issued
from hazemap.protocols.dap.resource_paths import id_text, read_id
from hazemap.protocols.dap.task import Task
from hazemap.protocols.dap.task_configuration import BatchMode, TaskConfiguration
from hazemap.protocols.dap.vdaf_configuration import (
    CountConfiguration,
    HistogramConfiguration,
    MultihotConfiguration,
    Poplar1Configuration,
    SumConfiguration,
    SumVecConfiguration,
    read_configuration,
)
from hazemap.protocols.hpke import Aead, CipherSuite, Kdf, Kem, KeyPair
from hazemap.protocols.tls_encoding import Structure
from hazemap.protocols.vdaf.ping_pong import MessageType, PingPongMessage

ROOM = 512 << 20
"""Bytes of address space that all inputs together may take more than was there: a length of 2³² promises 4 GiB."""
PATIENCE = 0.5
"""CPU seconds for one input; a usual one takes 20 µs."""
LONGEST = 8_192
"""Bytes of an input, at most."""
LENGTHS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)

Check = Callable[[bytes], None]
"""Takes any bytes: it refuses them, or finds that they are the encoding of what they were read as."""


@dataclass
class Found:
    """What came of the inputs to one decoder."""

    name: str
    taken: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)


class Unsound(Exception):
    """Bytes were taken for what they are not the encoding of."""


def must(true: bool) -> None:
    """`Unsound` unless it is so."""
    if not true:
        raise Unsound("the bytes were taken for what they do not say")


def structure(kind: type[Structure]) -> Check:
    """The decoder of a structure."""

    def check(data: bytes) -> None:
        must(kind.from_bytes(data).to_bytes() == data)

    return check


def understood_query(data: bytes) -> None:
    """A query, and what it asks for."""
    query = collection.Query.from_bytes(data)
    interval = query.interval()
    must(query == (collection.Query.next_batch() if interval is None else collection.Query.of_interval(interval)))


def understood_batch(data: bytes) -> None:
    """A batch selector, and the batch that it means."""
    selector = collection.BatchSelector.from_bytes(data)
    batch, made = selector.batch(), collection.BatchSelector
    must(selector == (made.of_interval(batch) if isinstance(batch, Interval) else made.of_batch(batch)))


def understood_task(data: bytes) -> None:
    """A task in all its parts."""
    task = Task.read(bytes(32), data)
    must(task.configuration == TaskConfiguration.from_bytes(data).to_bytes() == data)
    must(task.leader != task.helper and min(task.time_precision, task.min_batch_size) > 0)
    must(task.privacy is None or task.privacy.price(task.measured) <= task.privacy.epsilon)


def understood_vdaf(data: bytes) -> None:
    """A VDAF with its parameters, after its number in one byte."""
    must(read_configuration(data[0] if data else 0, data[1:]).to_bytes() == data[1:])


def understood_message(data: bytes) -> None:
    """A message of ping-pong."""
    must(PingPongMessage.from_bytes(data).to_bytes() == data)


def understood_problem(data: bytes) -> None:
    """A problem document, whose JSON may be written in many ways."""
    found = ProblemDocument.from_json(data)
    must(ProblemDocument.from_json(found.to_json()) == found)


def understood_media_type(data: bytes) -> None:
    """A media type."""
    must(message_name(data.decode("latin-1")) != "")


def understood_id(data: bytes) -> None:
    """An id in a path."""
    text = data.decode("latin-1")
    must(id_text(read_id(text, 32)) == text)


def understood_extensions(data: bytes) -> None:
    """Extensions of a report, which must ascend and be known."""
    metadata = upload.ReportMetadata.from_bytes(data)
    known = check_extensions(metadata.public_extensions, {1, 2})
    must([each.type for each in metadata.public_extensions] == sorted(known))


SUITE = CipherSuite(Kem.X25519_HKDF_SHA256, Kdf.HKDF_SHA256, Aead.AES_128_GCM)
RECEIVER = KeyPair.derived(SUITE.kem, bytes(32))
SEALED = HpkeCiphertext(1, *SUITE.seal(RECEIVER.public, b"info", b"aad", b"plain", bytes(range(32))))


def opened(data: bytes) -> None:
    """A ciphertext: only what was sealed opens."""
    sealed = HpkeCiphertext.from_bytes(data)
    if sealed.config_id != SEALED.config_id:
        raise Refused("an unknown key")
    must(SUITE.open(RECEIVER, sealed.enc, b"info", b"aad", sealed.payload) == b"plain")
    must(sealed == SEALED)


ISSUER, DEVICE = (Identity.from_bytes(bytes([number]) * 32) for number in (1, 2))
CREDIT = HeldCredential.received(
    issued(ISSUER, bytes(32), bytes(32), b"ann", DEVICE.public), DEVICE, ISSUER.public, bytes(32)
).spent(b"a report", (b"leader's", b"helper's"))


def admitted(data: bytes) -> None:
    """A credential: only the one that was issued and spent is genuine."""
    if not ReportCredential.from_bytes(data).is_genuine(ISSUER.public, bytes(32), b"a report"):
        raise Refused("it is not signed so")
    must(data == CREDIT.to_bytes())


def corpus() -> dict[str, tuple[list[bytes], Check]]:
    """By the name of a decoder, bytes that it takes, and the decoder."""
    extensions = (Extension(1, b"one"), Extension(2, bytes(40)))
    metadata = [upload.ReportMetadata(bytes(range(16)), 7), upload.ReportMetadata(bytes(16), 1 << 40, extensions)]
    reports = [upload.Report(each, bytes(32 * i), SEALED, SEALED) for i, each in enumerate(metadata)]
    shares = [aggregation.ReportShare(each, bytes(32 * i), SEALED) for i, each in enumerate(metadata)]
    said = [
        PingPongMessage(MessageType.INITIALIZE, b"", b"s" * 48),
        PingPongMessage(MessageType.CONTINUE, b"m" * 32, b"s" * 48),
        PingPongMessage(MessageType.FINISH, b"m" * 32),
    ]
    begun = [aggregation.VerifyInit(each, said[0].to_bytes()) for each in shares]
    answers = [
        aggregation.VerifyResp.continued(bytes(16), said[1].to_bytes()),
        aggregation.VerifyResp.finished(bytes(16)),
        *(
            aggregation.VerifyResp.rejected(bytes(16), error)
            for error in (ReportError.RESERVED, ReportError.OUTDATED_CONFIG)
        ),
    ]
    queries = [collection.Query.of_interval(Interval(3, 4)), collection.Query.next_batch()]
    batches = [collection.BatchSelector.of_interval(Interval(3, 4)), collection.BatchSelector.of_batch(bytes(32))]
    jobs = [collection.CollectionJobReq(query, bytes(9), extensions) for query in queries]
    privacy = [
        PrivacyParameters.of(DiscreteLaplace(Fraction(41, 2)), 4, Fraction(1, 5)),
        PrivacyParameters.of(DiscreteGaussian(Fraction(100)), 4, Fraction(5), Fraction(1, 10**6)),
    ]
    measured = [
        CountConfiguration(),
        SumConfiguration(255),
        SumVecConfiguration(12, 8, 14),
        HistogramConfiguration(256, 18),
        MultihotConfiguration(256, 18, 14),
        Poplar1Configuration(46),
    ]
    tasks = [
        Task.created(
            bytes(32),
            b"fuzz",
            "https://one.example/",
            "https://two.example:8443/dap",
            3600,
            100,
            mode,
            each,
            interval=Interval(1, 100),
            privacy=privacy[0] if isinstance(each, Poplar1Configuration) else None,
        )
        for mode in (BatchMode.TIME_INTERVAL, BatchMode.LEADER_SELECTED)
        for each in measured
    ]
    admission = ReportAdmission(ISSUER.public, 1_000)
    ends = "https://one.example/", "https://two.example/"
    laws = Asymmetric(Fraction(4)), UnaryEncoding(Fraction(1, 2), Fraction(1, 9))
    blank = [BlankReports.of(law, 99) for law in laws]
    bits = 3600, 100, BatchMode.TIME_INTERVAL, MultihotConfiguration(9, 3, 4)
    tasks.append(Task.created(bytes(32), b"fuzz", *ends, *bits, admission=admission, blank=blank[0]))
    tasks += [
        Task.created(bytes(32), b"fuzz", *ends, 3600, 100, BatchMode.TIME_INTERVAL, each, admission=admission)
        for each in measured[2:]
    ]
    configs = HpkeConfigList((HpkeConfig(1, 0x20, 1, 1, RECEIVER.public), HpkeConfig(2, 0x9999, 9, 9, b"")))
    metadata_09 = upload_09.ReportMetadata09(bytes(16), 3600)
    bound = upload.InputShareAad(bytes(32), tasks[0].configuration, metadata[1], bytes(32))
    selected = zip(jobs, batches, strict=True)
    structures: list[Sequence[Structure]] = [
        [SEALED],
        [Interval(3, 4)],
        extensions,
        configs.configs,
        [configs],
        metadata,
        reports,
        [upload.UploadRequest(tuple(reports)), upload.UploadRequest(())],
        [upload.UploadErrors((upload.ReportUploadStatus(bytes(16), ReportError.REPORT_REPLAYED),) * 2)],
        [upload.PlaintextInputShare(extensions, bytes(100))],
        [bound],
        [metadata_09],
        [upload_09.Report09(metadata_09, b"", SEALED, SEALED)],
        [upload_09.PlaintextInputShare09(extensions, bytes(100))],
        [upload_09.InputShareAad09(bytes(32), metadata_09, b"public")],
        [TaskConfiguration.from_bytes(task.configuration) for task in tasks],
        shares,
        begun,
        [aggregation.AggregationJobInitReq(1, bytes(9), extensions, tuple(begun))],
        answers,
        [aggregation.AggregationJobResp(tuple(answers))],
        [aggregation.AggregationJobContinueReq(1, (aggregation.VerifyContinue(bytes(16), said[2].to_bytes()),) * 2)],
        queries,
        batches,
        jobs,
        [collection.CollectionJobResp(100, Interval(3, 4), SEALED, SEALED)],
        [collection.AggregateShareReq(job, batch, 100, bytes(32)) for job, batch in selected],
        [collection.AggregateShare(SEALED)],
        [collection.AggregateShareAad(bytes(32), tasks[0].configuration, job) for job in jobs],
        privacy,
        [admission],
        [CREDIT],
        blank,
    ]
    found: dict[str, tuple[list[bytes], Check]] = {
        type(group[0]).__name__: ([each.to_bytes() for each in group], structure(type(group[0])))
        for group in structures
    }
    problems = [
        ProblemDocument(ProblemType.BATCH_OVERLAP.urn, 400, "why", "A" * 43),
        ProblemDocument(ProblemType.UNSUPPORTED_EXTENSION.urn, 400, "", None, (23, 42)),
    ]
    return found | {
        "Query, understood": ([each.to_bytes() for each in queries], understood_query),
        "BatchSelector, understood": ([each.to_bytes() for each in batches], understood_batch),
        "Task": ([task.configuration for task in tasks], understood_task),
        "VDAF configuration": ([bytes([each.VDAF]) + each.to_bytes() for each in measured], understood_vdaf),
        "PingPongMessage": ([each.to_bytes() for each in said], understood_message),
        "ProblemDocument": ([each.to_json() for each in problems], understood_problem),
        "media type": ([upload.UploadRequest.media_type().encode()], understood_media_type),
        "id": ([id_text(bytes(range(32))).encode()], understood_id),
        "extensions of a report": ([each.to_bytes() for each in metadata], understood_extensions),
        "credential": ([CREDIT.to_bytes()], admitted),
        "HPKE": ([SEALED.to_bytes()], opened),
    }


def spoilt(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The bytes after one to four accidents."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        at = rng.randrange(len(out) + 1)
        accident = rng.randrange(8)
        if accident == 0 and out:
            out[at % len(out)] ^= 1 << rng.randrange(8)
        elif accident == 1 and out:
            out[at % len(out)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif accident == 2:
            width = rng.choice((1, 2, 4, 8))
            value = rng.choice((*LENGTHS, len(out), len(out) - at, rng.randrange(1 << 32)))
            out[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "big")
        elif accident == 3:
            del out[at:]
        elif accident == 4:
            out += rng.randbytes(rng.choice((1, 2, 4, 32, 100)))
        elif accident == 5:
            del out[at : at + rng.choice((1, 2, 4, 32, rng.randrange(1, 100)))]
        elif accident == 6:
            out[at:at] = out[at : at + rng.choice((1, 4, 32, rng.randrange(1, 200)))]
        else:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            out[at : at + rng.choice((0, 4, 32, 1000))] = other[start : start + rng.choice((4, 32, 1000))]
    return bytes(out[:LONGEST])


@contextmanager
def little_room() -> Iterator[None]:
    """A `MemoryError` for who takes much more memory than there was at the beginning."""
    with open("/proc/self/statm") as pages:  # noqa: PTH123 - no file, and gone at once
        now = int(pages.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = now + ROOM if before[1] == resource.RLIM_INFINITY else min(now + ROOM, before[1])
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def tried(found: Found, check: Check, data: bytes) -> None:
    """One input, and what came of it."""
    start = thread_time()
    try:
        check(data)
        found.taken += 1
    except (CodecError, Refused):
        found.refused += 1
    except Exception as error:
        found.faults.append(f"{type(error).__name__}: {error} from {data.hex()}")
    took = thread_time() - start
    if took > PATIENCE:  # memory may have been tidied up at the time: the least of three counts
        took = min(took, *(timed(check, data) for _ in range(2)))
    if took > PATIENCE:
        found.faults.append(f"{took:.1f} s for {data.hex()}")


def timed(check: Check, data: bytes) -> float:
    """CPU seconds that an input takes, whatever comes of it."""
    start = thread_time()
    with suppress(Exception):
        check(data)
    return thread_time() - start


def fuzzed(number: int, seed: int, targets: dict[str, tuple[list[bytes], Check]] | None = None) -> list[Found]:
    """`number` inputs to every decoder, and what came of them."""
    targets = corpus() if targets is None else targets
    everything = [data for valid, _ in targets.values() for data in valid]
    results = []
    with little_room():
        for name, (valid, check) in targets.items():
            rng, found = random.Random(f"{seed} {name}"), Found(name)  # noqa: S311 - to be drawn again alike
            for data in valid:
                check(data)
            for _ in range(number):
                tried(found, check, spoilt(rng, rng.choice(valid), everything))
            results.append(found)
    return results


def summarise(results: Sequence[Found], number: int, seconds: float) -> None:
    """Print what became of so many inputs to each decoder; an error where there are faults."""
    for found in results:
        print(f"{found.name:28} {found.refused:>9,} refused {found.taken:>9,} taken {len(found.faults):>3} faults")
        for fault in found.faults[:3]:
            print(f"    {fault[:2_000]}")
    print(f"{len(results)} decoders, {number:,} inputs each, {seconds:.0f} s of CPU")
    if any(found.faults for found in results):
        raise SystemExit(1)


def main() -> None:
    """Fuzz every decoder, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=100_000, help="inputs to each decoder")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = process_time()
    results = fuzzed(options.number, options.seed)
    summarise(results, options.number, process_time() - start)


if __name__ == "__main__":
    main()
