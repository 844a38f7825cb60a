"""How the aggregators are that campaigns by two servers report to: whether they say the keys of devices, and, where the
steward has the token of one's operator, what it counts of each of its tasks.
"""

import time
from pathlib import Path
from typing import Any, Final

from hazemap.errors import HazemapError
from hazemap.federated.device.printable_text import one_line
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfigList
from hazemap.federated.service.access_tokens import known_token
from hazemap.federated.service.operator_line import asked
from hazemap.federated.service.prometheus_text import samples
from hazemap.studio.coordinator_access import CoordinatorAccess

PATIENCE: Final = 10.0
"""Seconds that one is given."""
MOST: Final = 1 << 20
"""Bytes of the longest list of numbers."""
TASKS: Final = 200
"""So many tasks are shown."""
COUNTED: Final = {
    "reports_waiting": "waiting",
    "jobs_open": "jobs",
    "batches_total": "batches",
    "reports_counted_total": "counted",
    "reports_rejected_total": "rejected",
}
"""What is shown of what an aggregator counts of each task."""


def aggregators(access: CoordinatorAccess) -> list[dict[str, Any]]:
    """Each of them: its address, whether it is well, how long it took, in milliseconds, and its tasks.

    One is shown the token of its own operator alone, and only where it is asked for numbers.
    """
    import ssl

    import httpx

    verify = ssl.create_default_context(cafile=access.certificate)
    with httpx.Client(verify=verify, timeout=PATIENCE) as http:
        return [_health(http, url.rstrip("/"), token) for url, token in access.aggregators]


def _health(http: Any, url: str, token: Path | None) -> dict[str, Any]:
    import httpx

    begun = time.monotonic()
    known: dict[str, Any] = {"url": url, "well": False, "milliseconds": None, "tasks": None, "more": ""}
    try:
        reply = asked(http, "GET", f"{url}/hpke_config")
        if reply.status_code != 200:
            return {**known, **_said("answersStatus", status=reply.status_code)}
        offered = HpkeConfigList.from_bytes(reply.content)
        offered.preferred()
        found = {**known, "well": True, "milliseconds": round(1000 * (time.monotonic() - begun))}
        if token is None:
            return {**found, **_said("keysOffered", count=len(offered.configs))}
        secret = known_token(token) or ""
        reply = asked(http, "GET", f"{url}/metrics", MOST, {"Authorization": f"Bearer {secret}"})
        if reply.status_code != 200 or secret in reply.text:
            return {**found, **_said("numbersRefused", status=reply.status_code)}
        return {**found, **_said("keysOffered", count=len(offered.configs)), "tasks": _tasks(reply.text)}
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return {**known, **_said("noAnswer", kind=type(error).__name__)}
    except HazemapError as error:
        return {**known, **_said("oddAnswer"), "more": one_line(str(error), 200)}


def _said(sentence: str, **words: object) -> dict[str, Any]:
    """A sentence of the page's catalogue."""
    return {"sentence": sentence, "words": {name: str(word) for name, word in words.items()}}


def _tasks(text: str) -> list[dict[str, Any]]:
    """Of each task what waits, is under way, was counted and was not taken."""
    found: dict[str, dict[str, Any]] = {}
    for name, labels, number in samples(text):
        if name in COUNTED and 0 <= number < 1 << 53:
            task = found.setdefault(one_line(labels.get("task", ""), 16), dict.fromkeys(COUNTED.values(), 0))
            task[COUNTED[name]] += int(number)
    return [{"task": task, **numbers} for task, numbers in sorted(found.items())[:TASKS]]
