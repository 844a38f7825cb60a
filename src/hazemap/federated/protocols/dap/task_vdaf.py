"""The VDAF that a task's configuration names, in the version that its draft of DAP speaks."""

from hazemap.federated.protocols.dap.task import DapTask
from hazemap.federated.protocols.dap.vdaf_configuration import (
    CountConfiguration,
    HistogramConfiguration,
    MultihotConfiguration,
    Poplar1Configuration,
    SumConfiguration,
    SumVecConfiguration,
)
from hazemap.vdaf.poplar1 import Poplar1
from hazemap.vdaf.prio3 import prio3_count, prio3_histogram, prio3_multihot_count_vec, prio3_sum, prio3_sum_vec
from hazemap.vdaf.vdaf import VDAF_08, VDAF_18, Vdaf

_VERSIONS = {version.number: version for version in (VDAF_08, VDAF_18)}


def vdaf_of(task: DapTask) -> Vdaf:
    """What devices shard by, aggregators verify by and collectors unshard by.

    >>> from hazemap.federated.protocols.dap.task import BatchMode
    >>> task = DapTask.created(bytes(32), b"a map", "https://one.example/", "https://two.example/", 3600, 100,
    ...     BatchMode.TIME_INTERVAL, HistogramConfiguration(1024, 32))
    >>> vdaf_of(task).output_length(b"")
    1024
    """
    version = _VERSIONS[task.version.vdaf]
    match task.measured:
        case CountConfiguration():
            return prio3_count(version=version)
        case SumConfiguration(most):
            return prio3_sum(most, version=version)
        case SumVecConfiguration(length, most, chunk):
            return prio3_sum_vec(length, most, chunk, version=version)
        case HistogramConfiguration(length, chunk):
            return prio3_histogram(length, chunk, version=version)
        case MultihotConfiguration(length, chunk, weight):
            return prio3_multihot_count_vec(length, weight, chunk, version=version)
        case Poplar1Configuration(bits):
            return Poplar1(bits) if task.walk is None else Poplar1(bits, task.walk.candidates)
