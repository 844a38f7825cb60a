"""What both aggregators check of every request before they do anything."""

from typing import TypeVar

from hazemap.errors import CodecError
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.extensions import Extension, UnsupportedExtensions, check_extensions
from hazemap.federated.protocols.dap.media_types import Message
from hazemap.federated.protocols.dap.problem_types import ProblemType

M = TypeVar("M", bound=Message)


def parsed(task: AggregatorTask, kind: type[M], body: bytes) -> M:
    """The message, or the problem `invalidMessage`."""
    try:
        return kind.from_bytes(body)
    except CodecError as error:
        raise task.problem(ProblemType.INVALID_MESSAGE, str(error)) from None


def check_no_extensions(task: AggregatorTask, extensions: tuple[Extension, ...]) -> None:
    """Refuse the extensions of a collection job: none are known, and none may be ignored (section 4.6.2)."""
    try:
        check_extensions(extensions, ())
    except UnsupportedExtensions as error:
        raise task.problem(ProblemType.UNSUPPORTED_EXTENSION, str(error), error.types) from None
    except CodecError as error:
        raise task.problem(ProblemType.INVALID_EXTENSION, str(error)) from None
