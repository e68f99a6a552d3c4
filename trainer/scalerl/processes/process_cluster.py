"""The wall cluster: what schedules ask for, done by generator processes while this process trains.

Times are measured. The clock stands still while the cluster is paused and moves at all other times, whether or not
anybody has something to do.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from scalerl.cluster.cluster import Clock, Cluster, TrainedStep
from scalerl.cluster.device_seconds import Activity, Role, unsplit
from scalerl.cluster.peak_rate import peak_flops_per_s
from scalerl.cluster.probe import WeightProbe, refuse_to_disagree
from scalerl.generator.generator import Generator
from scalerl.generator.request import Request
from scalerl.learner.learner import Learner, Update
from scalerl.model.build import precision_of
from scalerl.model.device import device_of
from scalerl.processes.fleet import Fleet
from scalerl.processes.launch import Launcher
from scalerl.processes.line import Death
from scalerl.processes.member import Member
from scalerl.processes.messages import (
    HandOver,
    NewRequests,
    NewWeights,
    Pause,
    Paused,
    Refused,
    Report,
    Resume,
    State,
    TakeOver,
)
from scalerl.processes.time_sheet import ReportedAccount, TimeSheet
from scalerl.prompts.mixed_pool import AnyPool
from scalerl.recipe import ResolvedRecipe, Wall
from scalerl.rollout import Group
from scalerl.tasks import Task
from scalerl.weights.store import WeightStore

TRAINER_WORKS: tuple[Activity, ...] = ("forward_backward", "coordinate")
GENERATOR_WORKS: tuple[Activity, ...] = ("decode", "sync")
"""The activities in which a device is not idle."""
LOOK_S = 1.0
"""The longest wait for an answer before limits are looked at again."""
LATE_S = 60.0
"""A process that takes longer to start than the others by more than this does not hold them up."""
START_LIMIT_S = 900.0
"""For a process to start: an engine may load and compile a large model."""
SILENCE_LIMIT_S = 300.0
"""For a process to say something while it owes something; at work it does so every few seconds."""
MOST_STARTS_AGAIN = 3
"""Of a generator, in one attempt of a run."""
MOST_REFUSALS = 3
"""Publications in a row that a generator may refuse; each is published again at once."""


class GeneratorDied(RuntimeError):
    """No generator process is left, or one ended itself before it began; the run can be resumed from its last
    checkpoint."""


class WeightsRefused(RuntimeError):
    """A generator could not use what was published; the run can be resumed from its last checkpoint."""


class WallCluster(Cluster):
    """Generator processes beside this one, which trains; it starts paused."""

    def __init__(
        self,
        *,
        recipe: ResolvedRecipe,
        launcher: Launcher,
        store: WeightStore,
        learner: Learner,
        pool: AnyPool,
        task: Task,
        rng: np.random.Generator,
        off_clock: Generator,
    ) -> None:
        """`launcher` starts generators of version 0 that fetch from `store`."""
        super().__init__(recipe=recipe, learner=learner, pool=pool, task=task, rng=rng, off_clock=off_clock)
        assert isinstance(recipe.cluster, Wall)
        self.processes = recipe.cluster
        self.sheet = TimeSheet()
        self.store = store
        self.publication = 0
        """Sets of weights published so far."""
        self.published_version = 0
        """Version of the last of them, or of the weights the generators began with."""
        self._probe: WeightProbe | None = None
        """Of the last publication."""
        self.members = [Member() for _ in range(recipe.cluster.generators)]
        """What is known of each generator."""
        self._homeless: list[int] = []
        """Groups that no generator could be given yet."""
        self.hours = [ReportedAccount() for _ in self.members]
        """How each generator has spent its time."""
        self._before = Clock()
        self._earlier: Mapping[Activity, float] = {}
        """The trainer's time before a resume."""
        self._trainer_s: dict[Activity, float] = {}
        """The trainer's time, at the last look at the clock."""
        self._spent: dict[Role, dict[Activity, float]] = {}
        """By the end of the last optimiser step."""
        self.peak_flops_per_s = self._measure_peak()
        self._has_started = self._is_running = False
        self.fleet = Fleet(launcher, recipe.cluster.generators)

    # --- generators -------------------------------------------------------------------------------------------------

    @property
    def generator_version(self) -> int:
        """The oldest weights that a generator was last known to decode with, of those that may be given groups."""
        return min((self.members[number].version for number in self._at_work()), default=self.published_version)

    @property
    def has_room(self) -> bool:
        """Whether less than one optimiser step's rollouts wait for a slot: generators are on their own during one."""
        ahead = self.recipe.batch.prompts * self.recipe.batch.generations
        return self._missing() < len(self._at_work()) * self.processes.slots + ahead

    @property
    def is_generating(self) -> bool:
        """Whether rollouts are missing."""
        return self._missing() > 0

    def submit(self, requests: list[Request]) -> None:
        """The group goes to the generator with the fewest rollouts to do, as soon as there is one."""
        group, candidates = requests[0].group, self._at_work()
        if not candidates:
            self._homeless.append(group)
            return
        number = min(candidates, key=lambda each: self.members[each].missing)
        self.members[number].groups[group] = len(requests)
        if self.hours[number].doing == "wait_prompts":
            self.hours[number].switch("decode", self._now())
        self.fleet.send(number, NewRequests(requests=requests))

    def catch_up(self) -> None:
        """Take in what generators have reported."""
        self._take_in(wait=False)
        self._publish_again_if_refused()

    def advance(self) -> None:
        """Wait for the next report, for a moment at most."""
        assert self.is_generating or not self._all_have_taken(), "generators have nothing to do"
        self._take_in(wait=True)
        self._publish_again_if_refused()

    def push_weights(self) -> None:
        """Publish the trainer's weights; should a generator still read the last but one, wait for that."""
        number = self.publication + 1
        self._until(lambda: all(each.seen >= number - 2 for each in self.members if each.reads), waiting="sync")
        self.publication = number  # only now: whoever joins meanwhile is told of the last
        self.published_version = self.learner.version
        self._probe = self.probe()
        self.store.publish(self.publication, self.learner.version, self.learner.weights())
        for number, member in enumerate(self.members):
            if member.reads:
                self._tell_newest(number)

    def synchronise(self) -> None:
        """Publish, and wait until every generator that may be given groups has taken it, and one may."""
        self.push_weights()
        while not (self._at_work() and self._all_have_taken()):
            self._take_in(wait=True, waiting="sync")
            self._publish_again_if_refused()

    def _at_work(self) -> list[int]:
        """Those that may be given groups."""
        return [number for number, member in enumerate(self.members) if member.stage == "at work"]

    def _all_have_taken(self) -> bool:
        return all(self.members[number].taken >= self.publication for number in self._at_work())

    def _missing(self) -> int:
        """Rollouts asked for and not finished."""
        homeless = len(self._homeless) * self.recipe.batch.generations
        return homeless + sum(member.missing for member in self.members)

    def _tell_newest(self, number: int) -> None:
        self.members[number].told = self.publication
        self.fleet.send(
            number, NewWeights(publication=self.publication, version=self.published_version, probe=self._probe)
        )

    # --- what generators say ----------------------------------------------------------------------------------------

    def _until(self, is_so: Callable[[], bool], waiting: Activity = "wait_rollouts") -> None:
        while not is_so():
            self._take_in(wait=True, waiting=waiting)

    def _take_in(self, *, wait: bool, waiting: Activity = "wait_rollouts") -> None:
        """Note all that generators have said; the time until they say something, a moment at most, is spent
        `waiting`."""
        activity = self.sheet.activity
        if wait and activity != "off":
            self.sheet.switch(waiting)
        for number, answer in self.fleet.answers(wait_s=LOOK_S if wait else 0.0):
            self.sheet.switch(activity)
            member = self.members[number]
            match answer:
                case Report():
                    self._note(number, answer)
                case Refused():
                    self._note_refusal(number, answer)
                case Paused():
                    member.is_awake = member.is_to_pause = False
                    if member.stage == "starting":
                        self._admit_generator(number)
                case State():
                    member.state, member.is_to_tell_state = answer.state, False
                case Death():
                    self._note_death(number, answer)
        self.sheet.switch(activity)
        self._end_silent()
        self._tick()

    def _note(self, number: int, report: Report) -> None:
        member = self.members[number]
        if report.probe_gap is not None:
            refuse_to_disagree(self.recipe, report.probe_gap, report.version)
        if report.publication > member.taken:
            member.refusals = 0
        member.version, member.taken = report.version, report.publication
        member.seen = max(member.seen, report.publication)
        self.hours[number].report(report.seconds, report.doing)
        self.count_decoded(report.work)
        if report.first_waiting is not None:
            for group in member.groups:
                if group >= report.first_waiting:
                    self.assembling[group].start_version = report.version
        for one in report.finished:
            group = one.request.group
            member.groups[group] -= 1
            if member.groups[group] == 0:
                del member.groups[group]
            self._collect(one)
        if member.stage == "catching up" and member.taken:
            self._put_to_work(number)

    def _note_refusal(self, number: int, refused: Refused) -> None:
        member = self.members[number]
        member.seen = refused.publication
        member.refusals += 1
        self.news.append(
            f"generator {number} refused new weights and went on with version {member.version}: {refused.reason}"
        )
        if member.refusals == MOST_REFUSALS:
            raise WeightsRefused(f"generator {number} refused {MOST_REFUSALS} publications in a row: {refused.reason}")

    def _publish_again_if_refused(self) -> None:
        """What a generator has seen and not taken it will not take: it gets the same weights as a new publication."""
        if any(member.reads and member.taken < member.seen == self.publication for member in self.members):
            self.push_weights()

    # --- generators that come and go --------------------------------------------------------------------------------

    def _admit_generator(self, number: int) -> None:
        """A process has said its first word: it is given groups at once, or, if others have newer weights, after it has
        taken them."""
        member = self.members[number]
        if member.deaths:
            self.hours[number].replaced(self._now())
        if member.version == self.published_version and not member.deaths:
            self._put_to_work(number)
            return
        member.stage = "catching up"
        if self.publication == 0:
            self.push_weights()
        else:
            # The last but one may be overwritten, whatever this one has not read.
            member.seen = self.publication - 1
            self._tell_newest(number)

    def _put_to_work(self, number: int) -> None:
        member = self.members[number]
        member.stage, member.has_begun = "at work", True
        if self._is_running:
            self.hours[number].replaced(self._now())
            self._wake(number)
        homeless, self._homeless = self._homeless, []
        for group in homeless:
            self._generate_again(group)

    def _wake(self, number: int) -> None:
        self.members[number].is_awake = True
        self.fleet.send(number, Resume())

    def _note_death(self, number: int, death: Death) -> None:
        """Its unfinished groups are generated again elsewhere, and it is started again unless it dies too often."""
        member = self.members[number]
        if death.by_itself and not member.has_begun:
            raise GeneratorDied(f"generator process {number} {death.how}; it had not begun")
        groups = list(member.groups)
        self.hours[number].switch("dead", self._now())
        member.deaths += 1
        self.members[number] = member.successor()
        if member.deaths <= MOST_STARTS_AGAIN:
            self.fleet.start_again(number)
            then = f"it is started again ({member.deaths} of {MOST_STARTS_AGAIN} times)"
        else:
            self.members[number].stage = "gone"
            then = "it is not started again"
        lost = f"its {len(groups)} unfinished groups are generated again"
        self.news.append(f"generator process {number} {death.how}; {lost}, and {then}")
        if all(each.stage == "gone" for each in self.members):
            raise GeneratorDied(f"generator process {number} {death.how}; no generator is left")
        for group in groups:
            self._generate_again(group)

    def _generate_again(self, group: int) -> None:
        """All rollouts of a group from their start, also those that were finished: those that were not are the long
        ones, and a group is of one kind."""
        assembly = self.assembling[group]
        assembly.rollouts = [None] * len(assembly.rollouts)
        assembly.start_version = self.generator_version
        self.submit(self._requests(group, assembly.prompt))

    def _end_silent(self) -> None:
        """Kill whoever owes something and has said nothing for too long; then it is dead, and treated so."""
        now = time.monotonic()
        for number, member in enumerate(self.members):
            if not member.owes:
                member.patient_since = now
                continue
            silent = now - max(member.patient_since, self.fleet.heard(number))
            if silent > (START_LIMIT_S if member.stage == "starting" else SILENCE_LIMIT_S):
                self.fleet.kill(number, f"was ended: it said nothing for {silent:.0f} s while it {member.owes}")
                member.patient_since = now

    # --- the clock --------------------------------------------------------------------------------------------------

    def train(self, groups: list[Group], start: float) -> TrainedStep:
        """As in every cluster; the time of the step is measured."""
        self.sheet.switch("forward_backward")
        step = super().train(groups, start)
        self.sheet.switch("coordinate")
        return step

    def trained(self, update: Update, start: float) -> None:
        """The step has just ended."""
        self._tick()
        self.clock.trainer_free = self.clock.now
        generators = [hours.at(self.clock.now) for hours in self.hours]
        self._spent = {"generator": _sum(generators), "trainer": self._trainer_s}

    def _now(self) -> float:
        return self._before.now + self.sheet.elapsed()

    def _tick(self) -> None:
        """Bring the clock up to the time sheets."""
        before, clock, trainer = self._before, self.clock, self.sheet.seconds()
        self._trainer_s = _sum([self._earlier, trainer])
        clock.now = before.now + sum(trainer.values())
        clock.trainer_busy = before.trainer_busy + sum(trainer.get(name, 0.0) for name in TRAINER_WORKS)
        generators = _sum([hours.at(clock.now) for hours in self.hours])
        clock.generator_busy = sum(generators.get(name, 0.0) for name in GENERATOR_WORKS)

    def device_seconds(self) -> dict[Role, dict[Activity, float]]:
        """As the trainer's process measured, and as generators have reported."""
        return self._spent

    def model_flops_utilisation(self) -> dict[Role, float] | None:
        """Of what the devices reached in large matrix products when the run began."""
        if any("unsplit" in seconds for seconds in self._spent.values()):
            return None
        clock, devices = self.clock, self.num_devices
        flops: dict[Role, int] = {"generator": clock.flops - clock.trainer_flops, "trainer": clock.trainer_flops}
        return {
            role: flops[role] / (devices[role] * self.elapsed_s * peak) for role, peak in self.peak_flops_per_s.items()
        }

    def _measure_peak(self) -> dict[Role, float]:
        device, dtype = device_of(self.recipe), precision_of(self.recipe).products
        threads: dict[Role, int] = {"generator": self.processes.generator_threads, "trainer": self.recipe.threads}
        rates = {number: peak_flops_per_s(number, device, dtype) for number in set(threads.values())}
        return {role: rates[number] for role, number in threads.items()}

    def idle_shares(self) -> tuple[float, float]:
        """Shares of the generators' and of the trainer's time so far in which they waited for work."""
        self._tick()
        clock = self.clock
        if clock.now == 0.0:
            return 0.0, 0.0
        busy = clock.generator_busy / self.processes.generators / clock.now, clock.trainer_busy / clock.now
        return max(0.0, 1 - busy[0]), 1 - busy[1]

    # --- start, pause, checkpoint, end ------------------------------------------------------------------------------

    def start(self) -> None:
        """Let generators generate and the clock run; the first time once the processes are there."""
        if not self._has_started:
            self._until_there()
            self._has_started = True
        self._is_running = True
        self.sheet.switch("coordinate")  # first, or a generator could be ahead of the clock
        for number in self._at_work():
            self._wake(number)

    def _until_there(self) -> None:
        """Wait for the processes to start; for one that is late only a while, it joins the others when it is ready."""
        late = time.monotonic() + LATE_S
        while any(member.stage in ("starting", "catching up") for member in self.members):
            if self._at_work() and time.monotonic() > late:
                break
            self._take_in(wait=True)
            self._publish_again_if_refused()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Generators stand between two decode steps and the clock stands; both go on afterwards if they were going."""
        if not self._is_running:
            yield
            return
        self._is_running = False
        for number, member in enumerate(self.members):
            if member.is_awake:
                member.is_to_pause = True
                self.fleet.send(number, Pause())
        self._until(lambda: not any(member.is_awake for member in self.members))
        self.sheet.switch("off")
        yield
        self.start()

    def close(self) -> None:
        """End the generator processes and what carried weights to them."""
        self.fleet.close()
        self.store.close()

    def state_dict(self) -> dict[str, Any]:
        """With every generator's own, but of those that are not at work; only while paused."""
        assert not self._is_running, "a state is taken only while the cluster is paused"
        if not self._has_started:
            self._until_there()
        deaths = -1
        while deaths != (deaths := sum(member.deaths for member in self.members)):  # the dead leave groups to others
            for number, member in enumerate(self.members):
                member.state = None
                if member.stage == "at work":
                    member.is_to_tell_state = True
                    self.fleet.send(number, HandOver())
            self._until(lambda: not any(member.is_to_tell_state for member in self.members))
        return {
            **super().state_dict(),
            "generators": [member.state for member in self.members],
            "groups_of": [dict(member.groups) if member.state is not None else {} for member in self.members],
            "published_version": self.published_version,
            "accounts": {
                "generators": [hours.at(self.clock.now) for hours in self.hours],
                "trainer": self._trainer_s,
            },
            "peak_flops_per_s": self.peak_flops_per_s,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken; only before the start."""
        assert not self._has_started, "a state is loaded only before the start"
        super().load_state_dict(state)
        self._before = replace(self.clock)
        self._take_accounts(state.get("accounts"))
        self.peak_flops_per_s = state.get("peak_flops_per_s", self.peak_flops_per_s)
        self.published_version = state["published_version"]
        for number, (generator, groups) in enumerate(zip(state["generators"], state["groups_of"], strict=True)):
            if generator is not None:
                self.members[number].version = generator["version"]
                self.members[number].groups = dict(groups)
                self.fleet.send(number, TakeOver(state=generator))
        held = {group for member in self.members for group in member.groups}
        self._homeless = [group for group in self.assembling if group not in held]

    def _take_accounts(self, saved: dict[str, Any] | None) -> None:
        """Those of a checkpoint; an earlier version kept none, but how long devices were busy."""
        clock, number = self.clock, len(self.hours)
        if saved is None:
            busy = min(clock.generator_busy / number, clock.now)
            generator = unsplit(until=clock.now, busy=busy, activity="decode").seconds
            trainer = unsplit(until=clock.now, busy=clock.trainer_busy, activity="forward_backward").seconds
            saved = {"generators": [generator] * number, "trainer": trainer}
        self._earlier = saved["trainer"]
        self.hours = [ReportedAccount(earlier=seconds) for seconds in saved["generators"]]


def _sum(accounts: Sequence[Mapping[Activity, float]]) -> dict[Activity, float]:
    sums: Counter[Any] = Counter()
    for seconds in accounts:
        sums.update(seconds)
    return dict(sums)
