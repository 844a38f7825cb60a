"""Walks down a tree of one report, over a network that loses and repeats, with servers that die at their writes.

Whatever happens: a question has one answer, with noise that was drawn once for it, over reports that both servers
count; nobody pays more than the budget; and what was asked for is answered in the end.
"""

import os
from fractions import Fraction
from itertools import pairwise, product

import pytest
from tests.federated.aggregator.test_walk_questions import BITS, HOUR, asked, own_cells, part, walkers
from tests.federated.aggregator.two_servers import Crash

from hazemap.federated.aggregator import task_services
from hazemap.federated.aggregator.task_services import RequestKind
from hazemap.federated.protocols.dap.aggregator_changes import AddAggregateShare, AddQuestion
from hazemap.federated.protocols.dap.aggregator_task import resource_id
from hazemap.federated.protocols.dap.basic_types import DapRole
from hazemap.federated.protocols.dap.leader_jobs import AbandonedJob
from hazemap.federated.protocols.dap.prefix_question import PrefixQuestion
from hazemap.federated.protocols.dap.privacy_parameters import Nowhere, WalkTerms
from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemType
from hazemap.privacy.budget import PureDP

HISTORIES = int(os.environ.get("DAP_WALK_HISTORIES", "300"))
NOWHERE = 1 << (BITS - 1)


class Walk:
    """A task, its people, and a collector that asks what it may and what it may not."""

    def __init__(self, seed):
        self.terms = WalkTerms.of(
            PureDP(Fraction(1, 5)), levels=1 + seed % 3, prefixes=32, nowhere=Nowhere(seed // 3 % 2)
        )
        self.two = walkers(seed, least=2, terms=self.terms)
        self.random = self.two.random
        self.paths = [NOWHERE if self.random.random() < 0.2 else self.random.randrange(NOWHERE) for _ in range(4)]
        made = [(self.two.report(path), path) for path in self.paths]
        self.reports = {report.metadata.report_id: path for report, path in made}
        for report, _ in made:
            self.send(report)
        self.jobs, self.results, self.level = {}, {}, self.random.randint(0, 2)
        self.refusing = self.random.choice([0, 0, 0.2])
        self._answers, self.two.at_helper = self.two.at_helper, self.at_helper

    def at_helper(self, request):
        """The helper's answer; now and then it refuses a question for good, which it has not closed before."""
        share = resource_id(self.two.helper.task, request.body)
        known = self.two.helper.store.read("SELECT 1 FROM aggregate_shares WHERE share = ?", share)
        new = request.kind is RequestKind.AGGREGATE_SHARE and not known
        if new and self.random.random() < self.refusing:
            raise DapProblem(ProblemType.BATCH_MISMATCH, "other reports")
        return self._answers(request)

    def send(self, report):
        """Upload a report until it is taken, through losses and deaths, and now and then once more."""
        while True:
            self.two._may_die(self.two.leader, 0.3)
            try:
                self.two.upload(report)
            except Crash:
                self.two.leader.start()
                continue
            finally:
                self.two.leader.store.dies = None
            if self.random.random() < 0.7:
                return

    def question(self):
        """One about the level reached or a deeper one; its cells may be too deep, and its share too large."""
        self.level += self.random.random() < 0.4 and self.level < BITS - 3
        first = ["0", "0", "0", "1"]
        cells = ["".join(bits) for n in range(self.level + 1) for bits in product("01", repeat=n)]
        parts = []
        for _ in range(self.random.randint(1, 2)):
            own = self.random.choice(first)
            some = self.random.sample(cells, self.random.randint(1, min(4, len(cells)))) if own == "0" else [""]
            parts.append(part(*some, weight=self.random.randint(1, 3), first=own))
        share = Fraction(1, self.random.randint(1, 6))
        candidates = (*range(1 << self.level), 1 << self.level)
        return asked(self.level - 1, candidates, *parts, share=share, number=len(self.jobs))

    def ask(self):
        """Ask something new, or something again."""
        again = self.jobs and self.random.random() < 0.3
        question = self.random.choice(list(self.jobs)) if again else self.question()
        self.two._may_die(self.two.leader, 0.3)
        try:
            self.jobs[question] = self.two.ask(HOUR, 1, question)
        except Crash:
            self.two.leader.start()
        except DapProblem:
            answered = self.results.get(question, set()) - {"refused"}
            assert not answered, "what was answered is refused when it is asked again"
        finally:
            self.two.leader.store.dies = None

    @staticmethod
    def driven(turn):
        """A turn of the leader; False where it gave a job up whose batch another question had closed meanwhile."""
        try:
            turn()
        except AbandonedJob:
            return False
        return True

    def poll(self):
        for question, job in self.jobs.items():
            try:
                found = self.two.result(*job)
            except DapProblem:
                self.results.setdefault(question, set()).add("refused")
                continue
            if found is not None:
                self.results.setdefault(question, set()).add(found)

    def run(self):
        for _ in range(self.random.randint(10, 24)):
            step = self.random.random()
            if step < 0.35:
                self.ask()
            elif step < 0.9:
                self.driven(lambda: self.two.exchange(lossy=0.25, deadly=0.25))
            else:
                self.poll()
        for _ in range(1 + len(self.jobs)):
            while not self.driven(self.two.run):
                pass
            self.poll()

    def check(self):
        """What must hold, by means of the reports, the draws and the records alone."""
        two, noises, paid = self.two, [], []
        for question, found in self.results.items():
            assert len(found) == 1, "two answers to one question were seen"
            [result] = found
            if result == "refused":
                continue
            asking = PrefixQuestion.from_bytes(question)
            paid.append(asking)
            level = int.from_bytes(asking.parameter[:2], "big")
            counted = [self._counted(server, level) for server in (two.leader, two.helper)]
            assert counted[0] == counted[1] == set(self.reports), "servers count other people"
            assert result.count == len(self.reports)
            of_each = [[own_cells(cells, path) for path in self.reports.values()] for cells in asking.parts]
            true = [sum(column) for own in of_each for column in zip(*own, strict=True)]
            noise = {value - own for value, own in zip(result.sums, true, strict=True)}
            assert len(noise) == 1, "sums are not those of the people"
            noises += noise
        drawn = {role: [int(each[0]) for each in two.noise[role]] for role in two.noise}
        for noise in noises:
            assert any(noise - own in drawn[DapRole.HELPER] for own in drawn[DapRole.LEADER]), "noise that nobody drew"
        for place in (1, 1_000):  # a leader's draws are 1, 2, …; a helper's thousands
            own = [noise // place % 1_000 for noise in noises]
            assert len(set(own)) == len(own), "two questions have the same noise"
        assert all(len(answers) == 1 for answers in two.left_helper.values()), "a helper answered in two ways"
        for server in (two.leader, two.helper):
            rows = server.store.read("SELECT question FROM questions ORDER BY place")
            account = [PrefixQuestion.from_bytes(bytes(each)) for (each,) in rows]
            assert {each.to_bytes() for each in paid} <= {each.to_bytes() for each in account}
            self._within_budget(account)
            levels = [int.from_bytes(each.parameter[:2], "big") for each in account]
            assert len(set(levels)) <= self.terms.levels
            new = list(dict.fromkeys(levels))
            assert all(one < other for one, other in pairwise(new)), "a level above one that was verified"
        return len(noises)

    def _counted(self, server, level):
        rows = server.store.read("SELECT report FROM claims WHERE level = ? AND counted = 1", level)
        return {bytes(report) for (report,) in rows}

    def _within_budget(self, account):
        """By force, for rows that turn any path into that of nowhere: the loss over all questions, in shares."""
        for path in range(0, NOWHERE, 1 << (BITS - 6)):
            loss = Fraction(0)
            for each in account:
                moved = sum(
                    abs(a - b)
                    for cells in each.parts
                    for a, b in zip(own_cells(cells, path), own_cells(cells, NOWHERE), strict=True)
                )
                loss += each.share * moved / self.terms.moved(each.sensitivity).l1
            assert loss <= 1, "somebody pays more than the budget"


def histories(seeds):
    answers = 0
    for seed in seeds:
        walk = Walk(seed)
        try:
            walk.run()
            answers += walk.check()
        except AssertionError as error:
            raise AssertionError(f"history {seed}: {error}") from error
        finally:
            walk.two.close()
    return answers


def test_walks_hold_whatever_is_lost():
    assert histories(range(12)) >= 12, "most histories come to answers"


def without(changed, monkeypatch):
    """Servers that forget to write some changes."""
    kept = task_services.change_writes
    monkeypatch.setattr(
        task_services,
        "change_writes",
        lambda task, changes: kept(task, [each for each in changes if not isinstance(each, changed)]),
    )


@pytest.mark.parametrize(
    ("forgotten", "why"),
    [(AddAggregateShare, "in two ways|the same noise|two answers|asked again"), (AddQuestion, "pays more|<=")],
)
def test_servers_that_forget_what_they_answered_or_what_was_paid_are_found_out(monkeypatch, forgotten, why):
    without(forgotten, monkeypatch)
    with pytest.raises((AssertionError, DapProblem), match=why):
        histories(range(24))


@pytest.mark.slow
def test_many_walks_hold_whatever_is_lost():
    assert histories(range(1_000, 1_000 + HISTORIES)) >= HISTORIES
