"""A PostgreSQL server of a test's own."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PLACES = (*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), Path("/usr/bin"))


@contextmanager
def cluster(port: int | None = None) -> Iterator[str]:
    """The URL of a new database, reached through a socket in a folder of its own; the test is skipped without one.

    With a `port` it is reached there as well, by this machine.
    """
    programs = next((place for place in PLACES if (place / "initdb").exists()), None)
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed here")
    user = _user()
    if user is None:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")
    folder = Path(tempfile.mkdtemp(prefix="hazemap-postgres-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, user)
        as_user = {"user": user} if os.geteuid() == 0 else {}

        def call(program: str, *arguments: str) -> None:
            command = [str(programs / program), "-D", str(folder / "data"), *arguments]
            done = subprocess.run(command, **as_user, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr

        call("initdb", "-U", "hazemap", "-A", "trust", "--no-sync")
        reached = f"-c listen_addresses=127.0.0.1 -p {port}" if port else "-c listen_addresses=''"
        options = f"{reached} -c unix_socket_directories={folder}"
        call("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql:///postgres?host={folder}&user=hazemap" + (f"&port={port}" if port else "")
        finally:
            call("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> str | None:
    known = {entry.pw_name for entry in pwd.getpwall()}
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    return next((name for name in ("postgres", "nobody") if name in known), None)
