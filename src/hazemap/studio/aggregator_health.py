"""Whether the aggregators that campaigns by two servers report to are there: whether they say the keys of devices."""

import time
from typing import Any, Final

from hazemap.device.printable_text import one_line
from hazemap.errors import CodecError, HazemapError
from hazemap.protocols.dap.hpke_configs import HpkeConfigList
from hazemap.service.bounded_answer import asked
from hazemap.studio.coordinator_access import CoordinatorAccess

PATIENCE: Final = 10.0
"""Seconds that one is given."""


def aggregators(access: CoordinatorAccess) -> list[dict[str, Any]]:
    """Each of them: its address, whether it is well, and how long it took, in milliseconds. No token is shown to it."""
    import ssl

    import httpx

    verify = ssl.create_default_context(cafile=access.certificate)
    with httpx.Client(verify=verify, timeout=PATIENCE) as http:
        return [_health(http, url) for url in access.aggregators]


def _health(http: Any, url: str) -> dict[str, Any]:
    import httpx

    begun = time.monotonic()
    try:
        reply = asked(http, "GET", f"{url.rstrip('/')}/hpke_config")
        if reply.status_code != 200:
            raise CodecError(f"it answers {reply.status_code}")
        offered = HpkeConfigList.from_bytes(reply.content)
        offered.preferred()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return {"url": url, "well": False, "said": f"it does not answer ({type(error).__name__})", "milliseconds": None}
    except HazemapError as error:
        return {"url": url, "well": False, "said": one_line(str(error), 200), "milliseconds": None}
    said = f"{len(offered.configs):,} keys for devices"
    return {"url": url, "well": True, "said": said, "milliseconds": round(1000 * (time.monotonic() - begun))}
