"""One worker at a time sends a leader's request, and somebody else does when it is gone."""

from tests.federated.aggregator.two_servers import last_lease

from hazemap.federated.aggregator.task_services import LEASE, RequestLeases


def test_a_lease_ends_in_time_or_when_its_own_worker_says_so():
    leases = RequestLeases()
    assert last_lease(leases) == 0 and leases.take(b"job", b"one", 1_000)
    assert not leases.take(b"job", b"two", 1_000 + LEASE - 1) and leases.take(b"other", b"two", 1_000)
    leases.wait(b"job", b"two", 1_001)
    assert not leases.take(b"job", b"two", 1_001), "it is not the lease of this worker"
    leases.wait(b"job", b"one", 1_005)
    assert not leases.take(b"job", b"two", 1_004) and leases.take(b"job", b"two", 1_005)
    leases.wait(b"job", b"one", 1_006)
    assert last_lease(leases) == 1_005 + LEASE, "who had the lease before cannot end it"
    assert leases.take(b"job", b"three", 1_005 + LEASE)


def test_a_job_that_goes_on_is_free_and_what_has_ended_is_forgotten():
    leases = RequestLeases()
    for number in range(100):
        assert leases.take(b"%d" % number, b"worker", number * LEASE)
    assert last_lease(leases) == 100 * LEASE and leases.take(b"98", b"worker", 99 * LEASE)
    leases.end(b"99")
    leases.end(b"98")
    leases.end(b"unknown")
    assert last_lease(leases) == 0 and leases.take(b"99", b"another", 99 * LEASE)


def test_a_clock_that_was_ahead_keeps_no_request_from_being_sent():
    leases = RequestLeases()
    assert leases.take(b"job", b"one", 10**9)
    assert leases.take(b"job", b"two", 10**9 - 86_400)
