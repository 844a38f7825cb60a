"""Which changes of privacy-critical lines the fast tests find out: `make mutants`, or some files of it.

    python -m research.benchmarks.mutants                          every file, as far as it was not done (hours)
    python -m research.benchmarks.mutants privacy/parallel_composition.py      some files
    python -m research.benchmarks.mutants --minutes 20 --sample 60 60 mutants a file, and no more time than that

Mutants are Cosmic Ray's, in an order drawn by chance from a seed that is stated: what was done of a file is a random
sample of its mutants. Each is put into a copy of `src`, and the fast tests of its file, with its doctests, run against
that copy until one fails. A mutant hangs when it takes several times the processor time that the tests need. Compiled
loops lie beside the copy; those that may contain something of the changed file are compiled anew with every mutant.

What was done is kept in `.mutants`, so it goes on where it stopped. A file that has changed begins again; where its
tests have changed, what had survived is tried again. Results are merged into `results/mutants.json`, file by file,
each with the digest of the source that it is about. Survivors that change nothing stand in `mutants_equivalent.toml`,
each with its reason. Exits with 1 while another one survives of which no test says why, results are about an older
source, or tests find fewer than 95 % of a file's mutants that change something.
"""

import argparse
import ast
import difflib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

# Loaded once, and not by the tests of each mutant: those run in a fork of this process. Nothing of ours is among them.
import duckdb  # noqa: F401
import hypothesis.extra.numpy  # noqa: F401
import numba  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pytest
from cosmic_ray.commands.init import init
from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult
from scipy.stats import beta

ROOT = Path(__file__).parents[2]
SOURCE, DONE, RESULTS = ROOT / "src", ROOT / ".mutants", ROOT / "research/benchmarks/results/mutants.json"
COPY, LOOPS = DONE / "src", DONE / "loops"
EQUIVALENT = ROOT / "research/benchmarks/mutants_equivalent.toml"
GOAL, HUNG = 0.95, "timeout"

TARGETS: dict[str, list[str]] = tomllib.loads((ROOT / "research/benchmarks/mutants_targets.toml").read_text())
"""Each file, the most critical first, and the tests of its own."""

FROZEN = "privacy/test_frozen.py"
"""A test of every file, and a quick one."""


def main() -> None:
    """Test mutants of some files, write what is known of all, and judge it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="*", metavar="FILE", help="of src/hazemap; all, where none is named")
    options.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long")
    options.add_argument("--sample", type=int, help="so many mutants of each file at most, drawn by chance")
    options.add_argument("--seed", type=int, default=11, help="of the order in which mutants are drawn (11)")
    chosen = options.parse_args()
    if strange := set(chosen.files) - set(TARGETS):
        options.error(f"no target: {', '.join(sorted(strange))}; the targets are {', '.join(TARGETS)}")
    until = time.monotonic() + 60 * chosen.minutes
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(SOURCE, COPY, ignore=shutil.ignore_patterns("*.pyc"))  # compiled loops go with their sources
    for file in chosen.files or TARGETS:
        if time.monotonic() < until:
            tested(file, until, chosen.sample, chosen.seed)
            merged()
    sys.exit(judged())


def tested(file: str, until: float, sample: int | None, seed: int) -> None:
    """Run the mutants of one file that are left, in an order drawn by chance, which begins with what survived before.

    So many are done in the end, as many as before at least.
    """
    tests = digest_of_tests(file)
    with closing(session(file, seed)) as database:
        again = survivors_of_other_tests(file, database)
        every = sorted(database.work_items, key=lambda item: (item.mutations[0].operator_name, place(item)))
        random.Random(f"{seed} {file}").shuffle(every)
        done = {job for job, _ in database.results}
        fresh = [item for item in every if item.job_id not in done]
        left = [item for item in every if item.job_id in again]
        left += fresh if sample is None else fresh[: max(sample - len(done), 0)]
        if not left:
            return
        runner = Runner.of(file)
        for number, item in enumerate(left, 1):
            if time.monotonic() > until:
                return
            result = runner.result(item)
            database.set_result(item.job_id, result)
            again.discard(item.job_id)
            print(f"{file}: {number} of {len(left)}, {result.test_outcome}", flush=True)
        if not again:
            (folder(file) / "tests").write_text(tests)


class Runner(NamedTuple):
    """What runs the fast tests of a file against the copy."""

    file: str
    seconds: float  # of processor time, that the unchanged file takes

    @classmethod
    def of(cls, file: str) -> "Runner":
        """For this file; the tests of the file as it is must pass."""
        forget(compiled_with(file))  # so that the time in which loops are compiled counts: mutants' are compiled, too
        code, seconds = Runner(file, float("inf")).run()
        if code != 0:
            raise SystemExit(f"the tests of {file} fail without any change: see {DONE / 'output'}")
        shutil.rmtree(LOOPS, ignore_errors=True)
        for each in COPY.rglob("*.nb?"):
            kept = LOOPS / each.relative_to(COPY)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(each, kept)
        return cls(file, seconds)

    def result(self, item: WorkItem) -> WorkResult:
        """What becomes of one mutant; afterwards the copy is as before."""
        mutation, path = item.mutations[0], COPY / "hazemap" / self.file
        was, loops = path.stat(), compiled_with(self.file)
        operator = get_operator(mutation.operator_name)(**mutation.operator_args)
        forget(loops)
        with use_mutation(path, operator, mutation.occurrence) as (before, after):
            code, _ = self.run()
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
        forget(loops)
        for name in loops:
            for kept in loop_files(LOOPS, name):
                shutil.copy2(kept, COPY / kept.relative_to(LOOPS))
        return WorkResult(
            worker_outcome=WorkerOutcome.NORMAL,
            test_outcome=TestOutcome.SURVIVED if code == 0 else TestOutcome.KILLED,
            output=HUNG if code is None else str(code),
            diff="\n".join(difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=0)),
        )

    def run(self) -> tuple[int | None, float]:
        """The status of pytest, None where it hung, and the processor time it took."""
        limit = 10 + 2 * self.seconds
        child = os.fork()
        if child == 0:
            self._tests(limit)
        end, waits = time.monotonic() + 60 + 10 * limit, True  # others use this machine, too
        while waits:
            found, status, used = os.wait4(child, os.WNOHANG)
            if waits := found == 0:
                if time.monotonic() > end:
                    os.killpg(child, signal.SIGKILL)
                time.sleep(0.02)
        hung = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return None if hung else os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime

    def _tests(self, limit: float) -> None:
        """The tests, in a process of their own that ends with them."""
        code = 70
        try:
            os.setsid()
            os.chdir(ROOT)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if limit < float("inf"):
                resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
            output = os.open(DONE / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(output, stream)
            os.environ.update(PYTHONPATH=str(COPY), CI="1", PYTHONDONTWRITEBYTECODE="1")
            sys.dont_write_bytecode = True
            sys.path.insert(0, str(COPY))
            tests = [str(ROOT / "tests" / name) for name in tests_of(self.file)]
            options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
            doctests = ["--doctest-modules", str(COPY / "hazemap" / self.file)]
            code = int(pytest.main([*options, *doctests, *tests]))
        finally:
            sys.stdout.flush()
            os._exit(code)


def session(file: str, seed: int) -> WorkDB:
    """The mutants of a file with what is known of them; all anew where the file or the seed is another one."""
    where = folder(file)
    if not is_current(file) or int((where / "seed").read_text()) != seed:
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir(parents=True)
        with closing(WorkDB(where / "session.sqlite", WorkDB.Mode.create)) as database:
            init([COPY / "hazemap" / file], database, {})
            skipped(database, COPY / "hazemap" / file)
        (where / "tests").write_text(digest_of_tests(file))
        (where / "seed").write_text(str(seed))
        (where / "source").write_text(digest(file))
    return WorkDB(where / "session.sqlite", WorkDB.Mode.open)


def is_current(file: str) -> bool:
    """Whether what was done of a file was done with the source that it has now."""
    source = folder(file) / "source"
    return source.is_file() and source.read_text() == digest(file)


def folder(file: str) -> Path:
    """Where what was done of a file is kept."""
    return DONE / file.replace("/", ".")


def digest(file: str) -> str:
    """Of a file as it is now."""
    return hashlib.sha256((SOURCE / "hazemap" / file).read_bytes()).hexdigest()


def tests_of(file: str) -> list[str]:
    """The names of its tests, in the order in which they run."""
    return [*TARGETS[file], FROZEN]


def digest_of_tests(file: str) -> str:
    """Of the tests of a file as they are now."""
    names = tests_of(file)
    texts = [(ROOT / "tests" / name).read_bytes() for name in names]
    return hashlib.sha256(b"\0".join([" ".join(names).encode(), *texts])).hexdigest()


def survivors_of_other_tests(file: str, database: WorkDB) -> set[str]:
    """Mutants that survived, where the tests have changed since."""
    if (folder(file) / "tests").read_text() == digest_of_tests(file):
        return set()
    return {job for job, result in database.results if result.test_outcome == TestOutcome.SURVIVED}


def place(item: WorkItem) -> tuple[Any, ...]:
    """What tells the mutants of one operator apart."""
    mutation = item.mutations[0]
    return mutation.start_pos, mutation.occurrence, json.dumps(mutation.operator_args, sort_keys=True)


def skipped(database: WorkDB, path: Path) -> None:
    """Forget mutants of what is no code that runs: types, and lines that only a type checker reads."""
    lines = {line for first, last in annotations(path) for line in range(first, last + 1)}
    kept = [
        item
        for item in database.work_items
        if not (item.mutations[0].start_pos[0] in lines and "BitOr" in item.mutations[0].operator_name)
    ]
    database.clear()
    database.add_work_items(kept)


def annotations(path: Path) -> Iterator[tuple[int, int]]:
    """First and last line of each annotation."""
    for node in ast.walk(ast.parse(path.read_text())):
        for name in ("annotation", "returns"):
            found = getattr(node, name, None)
            if isinstance(found, ast.expr):
                yield found.lineno, found.end_lineno or found.lineno


def compiled_with(file: str) -> set[str]:
    """Files whose loops may contain a loop or a constant of this one, directly or by others."""
    texts = {str(path.relative_to(COPY / "hazemap")): path.read_text() for path in COPY.glob("hazemap/**/*.py")}
    loops = {name: text for name, text in texts.items() if "hazemap.vdaf.compiled_loops import" in text}
    found, new = {file} & set(loops), {file}
    while new:
        modules = {"hazemap." + name.removesuffix(".py").replace("/", ".") for name in new}
        new = {name for name, text in loops.items() if any(f"{module} import" in text for module in modules)} - found
        found |= new
    return found


def loop_files(where: Path, name: str) -> Iterator[Path]:
    """The compiled loops of one file."""
    path = where / "hazemap" / name
    return (path.parent / "__pycache__").glob(f"{path.stem}.*.nb?")


def forget(names: set[str]) -> None:
    """Have the loops of some files compiled anew."""
    for name in names:
        for each in loop_files(COPY, name):
            each.unlink()


def merged() -> None:
    """Write what is known of each file whose source is the one that was tried, and leave what was known of others."""
    known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    known |= {file: outcome(file) for file in TARGETS if is_current(file)}
    ordered = {name: known[name] for name in TARGETS if name in known}
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


def outcome(file: str) -> dict[str, Any]:
    """How many mutants a file has, how many were tried and found out, and which were not."""
    reasons = {(each["file"], each["was"], each["becomes"]): each["reason"] for each in equivalents()}
    results, survivors = [], []
    seed = int((folder(file) / "seed").read_text())
    with closing(session(file, seed)) as database:
        results = [result for _, result in database.results]
        mutants = database.num_work_items
    for result in results:
        if result.test_outcome == TestOutcome.SURVIVED:
            was, becomes = changed(result.diff or "")
            survivors.append({"was": was, "becomes": becomes, "reason": reasons.get((file, was, becomes))})
    survivors.sort(key=lambda each: (each["was"], each["becomes"]))
    equivalent = sum(each["reason"] is not None for each in survivors)
    killed = len(results) - len(survivors)
    return {
        "source": digest(file),
        "seed": seed,
        "mutants": mutants,
        "tried": len(results),
        "killed": killed,
        "timeouts": sum(result.output == HUNG for result in results),
        "survived": len(survivors),
        "equivalent": equivalent,
        "part": round(killed / max(len(results) - equivalent, 1), 4),
        "survivors": survivors,
        "tests": tests_of(file),
    }


def changed(diff: str) -> tuple[str, str]:
    """The line that a mutant changes, before and after."""
    sides = [
        [line[1:].strip() for line in diff.splitlines() if line.startswith(sign) and not line.startswith(sign * 3)]
        for sign in "-+"
    ]
    return " ".join(sides[0]), " ".join(sides[1])


def equivalents() -> list[dict[str, str]]:
    """The mutants that change nothing."""
    found: list[dict[str, str]] = tomllib.loads(EQUIVALENT.read_text())["equivalent"]
    return found


def judged() -> int:
    """Print what is known of each file and of all; 1 where tests are missing."""
    known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    wrong, killed, counted = 0, 0, 0
    for file, found in known.items():
        old = found["source"] != digest(file)
        unexplained = [each for each in found["survivors"] if each["reason"] is None]
        wrong += old or bool(unexplained) or found["part"] < GOAL
        print(
            f"{file}: {found['tried']} of {found['mutants']} tried, {found['part']:.1%} of those that matter found out"
            + (", in an older source" if old else "")
        )
        for each in unexplained:
            print(f"    lives: {each['was']}\n       as: {each['becomes']}")
        if not old:
            killed, counted = killed + found["killed"], counted + found["tried"] - found["equivalent"]
    if counted:
        low, high = interval(killed, counted)
        print(f"together: {killed} of {counted}, {killed / counted:.1%} (95 % interval {low:.1%} to {high:.1%})")
    if missing := [file for file in TARGETS if file not in known]:
        print(f"not tried: {', '.join(missing)}")
    return int(wrong > 0)


def interval(hits: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of Clopper and Pearson for a probability."""
    low = float(beta.ppf(0.025, hits, trials - hits + 1)) if hits else 0.0
    high = float(beta.ppf(0.975, hits + 1, trials - hits)) if hits < trials else 1.0
    return low, high


if __name__ == "__main__":
    main()
