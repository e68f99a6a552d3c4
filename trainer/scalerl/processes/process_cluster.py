"""The wall cluster: generator processes decode for the schedule while this process or trainer ranks train.

Times are measured. The clock stands still while the cluster is paused and runs at all other times, busy or idle.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from scalerl.cluster.cluster import Cluster, TrainedStep
from scalerl.cluster.device_seconds import Activity, Role
from scalerl.cluster.engine_agreement import WeightProbe, refuse_to_disagree
from scalerl.cluster.peak_rate import peak_rates
from scalerl.cluster.placement import PlacedUnit, UnitState
from scalerl.errors import Cancelled
from scalerl.generator.generator import Generator
from scalerl.generator.request import Request
from scalerl.learner.learner import Learner, Update
from scalerl.processes.accounts import Accounts
from scalerl.processes.evaluator_process import EvaluatorWork
from scalerl.processes.generator_fleet import GeneratorFleet
from scalerl.processes.generator_process import GeneratorWork
from scalerl.processes.launch import Launcher
from scalerl.processes.line import Death
from scalerl.processes.messages import GeneratorState, Paused, Refused, Report
from scalerl.processes.remote_evaluator import RemoteEvaluator
from scalerl.processes.remote_learner import LOOK_S, RemoteLearner
from scalerl.processes.running_clock import running_s
from scalerl.prompts.mixed_pool import AnyPool
from scalerl.recipe import ResolvedRecipe, Wall
from scalerl.rollout import Group
from scalerl.tasks import Task

LATE_S = 60.0
"""Time to wait at the start for processes that are later than the others."""


class WallCluster(Cluster):
    """Generator processes beside this process, which trains or has its ranks train; the cluster starts paused."""

    def __init__(
        self,
        *,
        recipe: ResolvedRecipe,
        launcher: Launcher,
        units: Sequence[PlacedUnit],
        work: GeneratorWork,
        evaluator: EvaluatorWork | None = None,
        learner: Learner,
        pool: AnyPool,
        task: Task,
        rng: np.random.Generator,
        off_clock: Generator,
    ) -> None:
        """Start the generators among the placed `units`, each executing `work`, and the evaluator if there is one."""
        super().__init__(recipe=recipe, learner=learner, pool=pool, task=task, rng=rng, off_clock=off_clock)
        assert isinstance(recipe.cluster, Wall)
        self.processes, self.store = recipe.cluster, work.store
        self._waited: dict[Activity, float] = {}
        """Seconds of this process by the end of the last optimiser step."""
        self._spent: dict[Role, dict[Activity, float]] = {}
        """Device-seconds by the end of the last optimiser step."""
        self.peak_flops_per_s = peak_rates(
            recipe, {"generator": self.processes.generator_threads, "trainer": recipe.threads}
        )
        self._has_started = self._is_running = False
        generators = tuple(unit for unit in units if unit.role == "generator")
        self.ranks = learner if isinstance(learner, RemoteLearner) else None
        """The trainer's processes, unless this process trains."""
        unit = next((unit for unit in units if unit.role == "evaluator"), None)
        self.accounts = Accounts(
            len(generators), self.ranks.accounts if self.ranks else (), has_evaluator=unit is not None
        )
        self._trainers = [(unit.name, launcher.node_name(unit.node)) for unit in units if unit.role == "trainer"]
        """Names of the trainer units, and of their nodes."""
        self.evaluator: RemoteEvaluator | None = None
        """The process that evaluates; None if this process does."""
        if unit is not None:
            assert evaluator is not None, "the units have an evaluator"
            self.evaluator = RemoteEvaluator(launcher, unit, evaluator, self.accounts, self.news)
        self.generators = GeneratorFleet(launcher, generators, work, self.accounts, self.news)
        self.records, self.fleet = self.generators.records, self.generators.fleet

    # --- generators -------------------------------------------------------------------------------------------------

    @property
    def generator_version(self) -> int:
        return self.generators.version

    @property
    def has_room(self) -> bool:
        """True if less than one step's rollouts wait for a slot, since generators run unattended during a step."""
        ahead = self.recipe.batch.prompts * self.recipe.batch.generations
        return self._missing() < len(self.generators.at_work) * self.processes.slots + ahead

    @property
    def is_generating(self) -> bool:
        return self._missing() > 0

    def submit(self, requests: list[Request]) -> None:
        self.generators.submit(requests)

    def catch_up(self) -> None:
        self._take_in(wait=False)
        self._publish_again_if_refused()

    def advance(self) -> None:
        """Wait for the next report, for a moment at most, unless the run is to stop."""
        self.check_stop()
        assert self.is_generating or not self.generators.all_have_taken, "generators have nothing to do"
        self._take_in(wait=True)
        self._publish_again_if_refused()

    def push_weights(self) -> None:
        """Publish the trainer's weights, once no generator reads the last publication but one."""
        number = self.generators.newest.publication + 1
        self._until(lambda: self.generators.may_write(number), waiting="sync")
        self.learner.publish(self.store, number)
        self.generators.published(number, self.learner.version, self.probe())

    def synchronise(self) -> None:
        """Publish, and wait until all generators that accept groups, and at least one, have the weights."""
        self.push_weights()
        while not (self.generators.at_work and self.generators.all_have_taken):
            self._take_in(wait=True, waiting="sync")
            self._publish_again_if_refused()

    def _missing(self) -> int:
        """Number of rollouts requested and unfinished."""
        return self.generators.missing(self.recipe.batch.generations)

    # --- what generators say ----------------------------------------------------------------------------------------

    def _until(self, is_so: Callable[[], bool], waiting: Activity = "wait_rollouts") -> None:
        while not is_so():
            self._take_in(wait=True, waiting=waiting)

    def _take_in(self, *, wait: bool, waiting: Activity = "wait_rollouts") -> None:
        """Note all messages from generators; the time until the first, a moment at most, is booked as `waiting`.

        If all that could end the wait are missing, the clock stands still until one is back.
        """
        if wait and self._is_running and (missing_s := self._missing_s(waiting)):
            self._wait_off_the_clock(waiting, missing_s)
        sheet = self.accounts.sheet
        activity = sheet.activity
        if wait and activity != "off":
            sheet.switch(waiting)
        for number, answer in self.fleet.answers(wait_s=LOOK_S if wait else 0.0):
            sheet.switch(activity)
            record = self.records[number]
            match answer:
                case Report():
                    self._note(number, answer)
                case Refused():
                    self.generators.note_refusal(number, answer)
                case Paused():
                    record.is_awake = record.is_to_pause = False
                    if record.stage == "starting":
                        self._admit_generator(number)
                case GeneratorState():
                    record.state, record.is_to_tell_state = answer.state, False
                case Death():
                    self._generate_again(self.generators.note_death(number, answer))
        sheet.switch(activity)
        self.generators.end_silent()
        if self.ranks:
            self.ranks.refuse_dead()
        if self.evaluator:
            self.evaluator.look()
        self.accounts.bring_up(self.clock)

    def _missing_s(self, waiting: Activity) -> float:
        """Seconds since anything that could end a wait was last alive, if all of it is missing; else 0."""
        if waiting == "wait_evaluator":
            assert self.evaluator is not None
            return self.evaluator.missing_s()
        return self.generators.missing_s(of_readers=waiting == "sync")

    def _wait_off_the_clock(self, waiting: Activity, missing_s: float) -> None:
        """Pause until what is missing is there or the run is to stop: waiting for a dead or silent process is no work.

        The time since it was last alive is taken back, as far as it was waited for since the last step.
        """
        sheet, began = self.accounts.sheet, running_s()
        waited = sheet.seconds().get(waiting, 0.0) - self._waited.get(waiting, 0.0)
        sheet.forget(waiting, min(missing_s, waited))
        before = sheet.switch("off")
        if self.ranks:
            self.ranks.book("off")
        with self.paused():
            self._until(lambda: self._is_asked_to_stop() or not self._missing_s(waiting))
        if self.ranks and waiting == "wait_evaluator":
            self.ranks.book(waiting)
        sheet.switch(before)
        for_whom = "the evaluator" if waiting == "wait_evaluator" else "its generators"
        self.news.append(
            f"training waited {running_s() - began + min(missing_s, waited):.0f} s for {for_whom}, dead or silent, "
            "which is not counted as compute"
        )

    def _is_asked_to_stop(self) -> bool:
        try:
            self.check_stop()
        except Cancelled:
            return True
        return False

    def probe_of_present(self) -> WeightProbe | None:
        """Probe of the learner's current weights, as published.

        Without one, a new probe is made while nothing runs, since the weights may be published for it; None otherwise.
        """
        newest = self.generators.newest
        if newest.publication > 0 and newest.version == self.learner.version:
            return newest.probe
        return None if self._is_running else self.probe()

    def await_evaluator(self, is_so: Callable[[], bool]) -> None:
        """Wait until `is_so()`, with the cluster at work or paused; trainers count as waiting for the evaluator."""
        if is_so():
            return
        if not self._is_running:
            self._until(is_so)
            return
        before = self.accounts.sheet.switch("wait_evaluator")
        if self.ranks:
            self.ranks.book("wait_evaluator")
        self._until(is_so, waiting="wait_evaluator")
        if self.ranks:
            self.ranks.book("wait_rollouts")
        self.accounts.sheet.switch(before)

    def _note(self, number: int, report: Report) -> None:
        if report.probe_gap is not None:
            refuse_to_disagree(self.recipe, report.probe_gap, report.version)
        self.generators.note(number, report)
        self.count_decoded(report.work)
        record = self.records[number]
        if report.first_waiting is not None:
            for group in record.groups:
                if group >= report.first_waiting:
                    self.assembling[group].start_version = report.version
        for one in report.finished:
            self._collect(one)
        if record.stage == "catching up" and record.taken:
            self._put_to_work(number)

    def _admit_generator(self, number: int) -> None:
        if self.generators.admit(number):
            self._put_to_work(number)
        elif self.generators.newest.publication == 0:
            self.push_weights()

    def _put_to_work(self, number: int) -> None:
        self._generate_again(self.generators.put_to_work(number, is_running=self._is_running))

    def _generate_again(self, groups: Sequence[int]) -> None:
        """Generate whole groups again, with finished rollouts: the others are long, and a group must not mix both."""
        for group in groups:
            assembly = self.assembling[group]
            assembly.rollouts = [None] * len(assembly.rollouts)
            assembly.start_version = self.generator_version
            self.submit(self._requests(group, assembly.prompt))

    def _publish_again_if_refused(self) -> None:
        """Publish rejected weights again: a generator never takes a publication it has seen and rejected."""
        if self.generators.refused_by_some:
            self.push_weights()

    # --- the clock --------------------------------------------------------------------------------------------------

    def train(self, groups: list[Group], start: float) -> TrainedStep:
        """Train as every cluster does; the time of the step is measured."""
        self.accounts.sheet.switch("forward_backward")
        step = super().train(groups, start)
        self.accounts.sheet.switch("coordinate")
        return step

    def trained(self, update: Update, start: float) -> None:
        self.accounts.bring_up(self.clock)
        self.clock.trainer_free = self.clock.now
        self._spent = self.accounts.by_role(self.clock.now)
        self._waited = self.accounts.sheet.seconds()

    @property
    def compute_gpu_hours(self) -> float:
        """Device-hours up to the end of the last optimiser step, including those of ranks that earlier attempts had."""
        return self.accounts.device_s(self.elapsed_s) / 3600

    def device_seconds(self) -> dict[Role, dict[Activity, float]]:
        """Device-seconds as measured by the coordinator, if it trains, and as reported by the other processes."""
        return self._spent

    def model_flops_utilisation(self) -> dict[Role, float]:
        """Share of the rate that the devices reached in large matrix products at the start of the run."""
        clock = self.clock
        flops: dict[Role, int] = {"generator": clock.flops - clock.trainer_flops, "trainer": clock.trainer_flops}
        return {
            role: flops[role] / (sum(self._spent[role].values()) * peak) for role, peak in self.peak_flops_per_s.items()
        }

    def units(self) -> tuple[UnitState, ...]:
        """State of the trainer (this process, or the ranks that train for it), the evaluator and the generators."""
        generators = self.generators.units()
        if not self._is_running:
            generators = [replace(unit, doing="paused") if unit.doing else unit for unit in generators]
        doing = self.accounts.sheet.activity
        if self.ranks and doing == "coordinate":
            doing = "wait_rollouts"
        state, doing = "at work", "paused" if doing == "off" else doing
        if self.ranks and not self.ranks.is_there:
            state, doing = "starting", ""
        trainers = [UnitState(unit=name, node=node, state=state, doing=doing) for name, node in self._trainers]
        return *trainers, *([self.evaluator.unit_state()] if self.evaluator else []), *generators

    def idle_shares(self) -> tuple[float, float]:
        self.accounts.bring_up(self.clock)
        clock = self.clock
        if clock.now == 0.0:
            return 0.0, 0.0
        trainers = sum(self.accounts.by_role(clock.now)["trainer"].values())
        busy = clock.generator_busy / self.processes.generators / clock.now, clock.trainer_busy / trainers
        return max(0.0, 1 - busy[0]), 1 - busy[1]

    # --- start, pause, checkpoint, end ------------------------------------------------------------------------------

    def start(self) -> None:
        """Let generators decode and the clock run; the first time, wait until the processes have started."""
        if not self._has_started:
            self._until_there()
            self._has_started = True
        self._is_running = True
        self.accounts.sheet.switch("coordinate")  # first, or a generator could be ahead of the clock
        if self.ranks:
            self.ranks.book("wait_rollouts")
        self.generators.wake_all()

    def _until_there(self) -> None:
        """Wait for the processes to start; a late one is awaited only a while, and joins when it is ready."""
        if self.ranks:
            self.ranks.wait_until_there()
        late = time.monotonic() + LATE_S
        while self.generators.some_come or (self.evaluator and not self.evaluator.is_there):
            if self.generators.at_work and time.monotonic() > late:
                break
            self._take_in(wait=True)
            self._publish_again_if_refused()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop generators between two decode steps and stop the clock; afterwards both continue if they were
        running."""
        if not self._is_running:
            yield
            return
        self._is_running = False
        self.generators.ask_to_pause()
        self._until(lambda: not self.generators.some_awake)
        if self.ranks:
            self.ranks.book("off")
        self.accounts.sheet.switch("off")
        yield
        self.start()

    def close(self) -> None:
        """End the evaluator, the generators and the trainer's processes, and close the weight store."""
        if self.evaluator:
            self.evaluator.close()
        self.fleet.close()
        self.off_clock.close()
        self.learner.close()
        self.store.close()

    def state_dict(self) -> dict[str, Any]:
        """State, including that of every generator at work; only while paused."""
        assert not self._is_running, "a state is taken only while the cluster is paused"
        if not self._has_started:
            self._until_there()
        deaths = -1
        while deaths != (deaths := sum(self.fleet.deaths)):  # groups of the dead move on
            self.generators.ask_for_states()
            self._until(lambda: not self.generators.some_owe_state)
        return {
            **super().state_dict(),
            **self.generators.state_dict(),
            "accounts": self.accounts.state_dict(self.clock.now),
            "peak_flops_per_s": self.peak_flops_per_s,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        assert not self._has_started, "a state is loaded only before the start"
        super().load_state_dict(state)
        self.accounts.load_state_dict(state["accounts"], self.clock)
        self.peak_flops_per_s = state["peak_flops_per_s"]
        self.generators.load_state_dict(state, unfinished=self.assembling)
