"""The coordinator's side of the evaluator: one order at a time, with restarts."""

import atexit
import pickle
import queue
import time

from scalerl.cluster.placement import PlacedUnit
from scalerl.cluster.unit_state import UnitState
from scalerl.errors import Interrupted
from scalerl.processes.accounts import Accounts
from scalerl.processes.crew import MOST_STARTS_AGAIN, SILENCE_LIMIT_S, START_LIMIT_S
from scalerl.processes.evaluator_account import EvaluatorAccount
from scalerl.processes.evaluator_process import EvaluatorWork
from scalerl.processes.launch import Launcher
from scalerl.processes.line import Death, UnitLine
from scalerl.processes.messages import CannotMeasure, Measure, MeasuredWeights, Measuring, Paused, Refused
from scalerl.prompts.judge import VerifierFailed

JUDGE_LIMIT_S = 3600.0
"""Time limit for judging the answers of one evaluation, or scoring them by the start's weights."""


class RemoteEvaluator:
    """The evaluator's process, started on construction."""

    def __init__(
        self, launcher: Launcher, unit: PlacedUnit, work: EvaluatorWork, accounts: Accounts, news: list[str]
    ) -> None:
        """Start the evaluator; its events are added to `news`."""
        assert accounts.evaluator is not None
        self.store = work.store
        self._launcher, self._unit, self._work = launcher, unit, pickle.dumps(work)
        self._accounts, self._news = accounts, news
        self._order: Measure | None = None
        self._answer: MeasuredWeights | Refused | None = None
        self.is_there = self._has_begun = False
        """True if its process has sent its first message."""
        self._judges = False
        self._deaths = 0
        self._patient_since = time.monotonic()
        self._inbox: queue.SimpleQueue[UnitLine] = queue.SimpleQueue()
        atexit.register(self.close)
        self._line = self._start()

    @property
    def process_id(self) -> int:
        """Process id of the evaluator."""
        return self._line.body.process_id

    @property
    def is_free(self) -> bool:
        """True if the evaluator accepts an order: the last answer has been taken."""
        return self._order is None

    def ask(self, order: Measure) -> None:
        """Order an evaluation, sent once the process is there; an answer always follows, even after a death."""
        assert self.is_free, "the evaluator is asked one thing at a time"
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
        while True:
            try:
                line = self._inbox.get_nowait()
            except queue.Empty:
                break
            said = line.hear()
            if line is self._line:  # else from a process that has been replaced
                self._take_in(said)
        self._end_silent()

    def unit_state(self) -> UnitState:
        """Node and last known activity of the evaluator."""
        return UnitState(
            unit=self._unit.name,
            node=self._launcher.node_name(self._unit),
            state="at work" if self.is_there else "starting",
            doing=self._account.doing if self.is_there else "",
            deaths=self._deaths,
        )

    def close(self) -> None:
        """End the process; an unfinished evaluation is measured again."""
        atexit.unregister(self.close)
        self._line.kill()
        self._line.close()

    @property
    def _account(self) -> EvaluatorAccount:
        assert self._accounts.evaluator is not None
        return self._accounts.evaluator

    def _start(self) -> UnitLine:
        self._patient_since = time.monotonic()
        return UnitLine(self._unit, self._launcher.start(self._unit, self._work), self._inbox)

    def _send(self) -> None:
        assert self._order is not None
        self._judges, self._patient_since = False, time.monotonic()
        self._account.switch("evaluate", self._accounts.now())
        self._line.send(self._order)

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
                raise AssertionError(f"{type(said).__name__} is no answer of an evaluator")

    def _note_death(self, death: Death) -> None:
        name = self._unit.name
        if death.by_itself and not self._has_begun:
            raise Interrupted(f"the {name}'s process {death.how}; it had not begun")
        self._deaths += 1
        self.is_there = False
        self._account.switch("dead", self._accounts.now())
        if self._deaths > MOST_STARTS_AGAIN or not self._launcher.reaches(self._unit):
            why = "too often" if self._deaths > MOST_STARTS_AGAIN else "with its node"
            raise Interrupted(f"the {name}'s process {death.how}, {why}; what was not measured is kept")
        lost = "; what it was measuring is measured again from the start" if self._order and not self._answer else ""
        self._news.append(
            f"the {name}'s process {death.how}{lost}; it is started again ({self._deaths} of {MOST_STARTS_AGAIN} times)"
        )
        self._line.kill()
        self._line.close()
        self._line = self._start()

    def _end_silent(self) -> None:
        """Kill the process if it owes an answer but has been silent too long; it is then handled as dead."""
        owes, limit = self._owed()
        silent = time.monotonic() - max(self._patient_since, self._line.heard)
        if owes and silent > limit:
            self._line.kill(f"was ended: it said nothing for {silent:.0f} s while it {owes}")
            self._patient_since = time.monotonic()

    def _owed(self) -> tuple[str, float]:
        """The answer that the evaluator owes and its time limit; empty if it may be silent."""
        if not self.is_there:
            return "was starting", START_LIMIT_S
        if self._order is None or self._answer is not None:
            return "", 0.0
        if self._judges:
            return f"judged evaluation {self._order.publication}", JUDGE_LIMIT_S
        return f"decoded evaluation {self._order.publication}", SILENCE_LIMIT_S
