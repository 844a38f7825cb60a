"""Messages of DAP that a hostile peer might send, and what each decoder says of them."""

from collections.abc import Sequence
from fractions import Fraction

from hazemap.errors import Refused
from hazemap.federated.protocols.dap import aggregation_messages as aggregation
from hazemap.federated.protocols.dap import collection_messages as collection
from hazemap.federated.protocols.dap import upload_messages as upload
from hazemap.federated.protocols.dap import upload_messages as upload_09
from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext, ReportError, TimeInterval
from hazemap.federated.protocols.dap.blank_reports import BlankReports
from hazemap.federated.protocols.dap.privacy_parameters import PrivacyParameters
from hazemap.federated.protocols.dap.problem_types import ProblemDocument, ProblemType
from hazemap.federated.protocols.dap.report_credentials import HeldCredential, ReportAdmission, ReportCredential, issued
from hazemap.federated.protocols.dap.resource_paths import id_text, message_name, read_id
from hazemap.federated.protocols.dap.task import BatchMode, DapTask, TaskConfiguration
from hazemap.federated.protocols.dap.vdaf_configuration import (
    CountConfiguration,
    Extension,
    HistogramConfiguration,
    HpkeConfig,
    HpkeConfigList,
    MultihotConfiguration,
    Poplar1Configuration,
    SumConfiguration,
    SumVecConfiguration,
    check_extensions,
    read_configuration,
)
from hazemap.privacy.local_randomisers import Asymmetric, UnaryEncoding
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from hazemap.privacy.signing_identities import Identity
from hazemap.vdaf.hpke import Aead, CipherSuite, HpkeKeyPair, Kdf, Kem
from hazemap.vdaf.ping_pong import MessageType, PingPongMessage
from hazemap.vdaf.tls_encoding import Structure
from research.hostile_bytes.spoilt import Check, must, structure


def understood_query(data: bytes) -> None:
    """A query, and what it asks for."""
    query = collection.BatchQuery.from_bytes(data)
    interval = query.interval()
    must(
        query
        == (collection.BatchQuery.next_batch() if interval is None else collection.BatchQuery.of_interval(interval))
    )


def understood_batch(data: bytes) -> None:
    """A batch selector, and the batch that it means."""
    selector = collection.BatchSelector.from_bytes(data)
    batch, made = selector.batch(), collection.BatchSelector
    must(selector == (made.of_interval(batch) if isinstance(batch, TimeInterval) else made.of_batch(batch)))


def understood_task(data: bytes) -> None:
    """A task in all its parts."""
    task = DapTask.read(bytes(32), data)
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
RECEIVER = HpkeKeyPair.derived(SUITE.kem, bytes(32))
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
    reports = [upload.DapReport(each, bytes(32 * i), SEALED, SEALED) for i, each in enumerate(metadata)]
    shares = [aggregation.DapReportShare(each, bytes(32 * i), SEALED) for i, each in enumerate(metadata)]
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
    queries = [collection.BatchQuery.of_interval(TimeInterval(3, 4)), collection.BatchQuery.next_batch()]
    batches = [collection.BatchSelector.of_interval(TimeInterval(3, 4)), collection.BatchSelector.of_batch(bytes(32))]
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
        DapTask.created(
            bytes(32),
            b"fuzz",
            "https://one.example/",
            "https://two.example:8443/dap",
            3600,
            100,
            mode,
            each,
            interval=TimeInterval(1, 100),
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
    tasks.append(DapTask.created(bytes(32), b"fuzz", *ends, *bits, admission=admission, blank=blank[0]))
    tasks += [
        DapTask.created(bytes(32), b"fuzz", *ends, 3600, 100, BatchMode.TIME_INTERVAL, each, admission=admission)
        for each in measured[2:]
    ]
    configs = HpkeConfigList((HpkeConfig(1, 0x20, 1, 1, RECEIVER.public), HpkeConfig(2, 0x9999, 9, 9, b"")))
    metadata_09 = upload_09.ReportMetadata09(bytes(16), 3600)
    bound = upload.InputShareAad(bytes(32), tasks[0].configuration, metadata[1], bytes(32))
    selected = zip(jobs, batches, strict=True)
    structures: list[Sequence[Structure]] = [
        [SEALED],
        [TimeInterval(3, 4)],
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
        [collection.CollectionJobResp(100, TimeInterval(3, 4), SEALED, SEALED)],
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
