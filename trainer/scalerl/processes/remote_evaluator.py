"""The coordinator's side of the evaluator: one order at a time, with restarts."""

import pickle

from scalerl.cluster.placement import PlacedUnit, UnitState
from scalerl.errors import Interrupted
from scalerl.processes.accounts import Accounts
from scalerl.processes.evaluator_process import EvaluatorWork
from scalerl.processes.fleet import SILENCE_LIMIT_S, START_LIMIT_S, Fleet
from scalerl.processes.launch import Launcher
from scalerl.processes.line import Death
from scalerl.processes.messages import CannotMeasure, Measure, MeasuredWeights, Measuring, Paused, Refused
from scalerl.processes.time_sheet import ReportedAccount
from scalerl.prompts.judge import VerifierFailed

JUDGE_LIMIT_S = 3600.0
"""Time limit for judging the answers of one evaluation, or scoring them with the start's weights."""


class RemoteEvaluator:
    """The evaluator's process, started on construction."""

    def __init__(
        self, launcher: Launcher, unit: PlacedUnit, work: EvaluatorWork, accounts: Accounts, news: list[str]
    ) -> None:
        """Start the evaluator; its events are added to `news`."""
        assert accounts.evaluator is not None
        self.store = work.store
        self._accounts, self._news = accounts, news
        self._order: Measure | None = None
        self._answer: MeasuredWeights | Refused | None = None
        self.is_there = self._has_begun = False
        """True if its process has sent its first message."""
        self._judges = False
        self._fleet = Fleet(launcher, [unit], [pickle.dumps(work)])

    @property
    def is_free(self) -> bool:
        """True if the evaluator accepts an order: the last answer has been taken."""
        return self._order is None

    def ask(self, order: Measure) -> None:
        """Order an evaluation; the order is sent once the process has started, and an answer follows even if the
        process dies."""
        assert self.is_free, "the evaluator takes one order at a time"
        self._order, self._answer = order, None
        if self.is_there:
            self._send()

    def take(self) -> MeasuredWeights | Refused | None:
        """Return the answer, once; None if there is none."""
        if self._answer is None:
            return None
        answer, self._answer, self._order = self._answer, None, None
        return answer

    def look(self) -> None:
        """Process messages and restart a dead evaluator.

        Interrupted if it is not restarted, VerifierFailed if it cannot judge.
        """
        for _, said in self._fleet.answers():
            self._take_in(said)
        self._fleet.kill_if_silent(0, *self._owed())

    def missing_s(self) -> float:
        """Seconds since a dead, silent or starting evaluator was last alive; 0 for one that is alive."""
        return self._fleet.missing_s(0)

    def unit_state(self) -> UnitState:
        """Node and last known activity of the evaluator."""
        return UnitState(
            unit="evaluator",
            node=self._fleet.node_name(0),
            state=("silent" if self.missing_s() else "at work") if self.is_there else "starting",
            doing=self._account.doing if self.is_there else "",
            deaths=self._fleet.deaths[0],
        )

    def close(self) -> None:
        """End the process; an unfinished evaluation is measured again."""
        self._fleet.close()

    @property
    def _account(self) -> ReportedAccount:
        assert self._accounts.evaluator is not None
        return self._accounts.evaluator

    def _send(self) -> None:
        assert self._order is not None
        self._judges = False
        self._account.switch("evaluate", self._accounts.now())
        self._fleet.send(0, self._order)

    def _take_in(self, said: object) -> None:
        match said:
            case Paused():
                self.is_there = self._has_begun = True
                self._account.switch("wait_weights", self._accounts.now())
                if self._order and self._answer is None:
                    self._send()
            case Measuring():
                self._judges = said.doing == "judges"
            case MeasuredWeights():
                self._account.measured(said.seconds, self._accounts.now())
                self._answer = said
            case Refused():
                self._account.switch("wait_weights", self._accounts.now())
                self._answer = said
            case CannotMeasure():
                raise VerifierFailed(said.reason)
            case Death():
                self._note_death(said)
            case _:
                raise AssertionError(f"{type(said).__name__} is not an answer of the evaluator")

    def _note_death(self, death: Death) -> None:
        if death.by_itself and not self._has_begun:
            raise Interrupted(f"the evaluator {death.how} while starting")
        self.is_there = False
        self._account.switch("dead", self._accounts.now())
        is_restarted, said = self._fleet.restart(0)
        if not is_restarted:
            raise Interrupted(
                f"the evaluator {death.how}. {said}. Weights not yet evaluated are kept for when the run resumes"
            )
        lost = ". Its current evaluation starts over" if self._order and not self._answer else ""
        self._news.append(f"the evaluator {death.how}. {said}{lost}")

    def _owed(self) -> tuple[str, float]:
        """The work whose answer the evaluator owes, and its time limit; empty if it may be silent."""
        if not self.is_there:
            return "starting", START_LIMIT_S
        if self._order is None or self._answer is not None:
            return "", 0.0
        if self._judges:
            return f"judging evaluation {self._order.publication}", JUDGE_LIMIT_S
        return f"decoding evaluation {self._order.publication}", SILENCE_LIMIT_S
