"""The wall cluster: what schedules ask for, done by generator processes while this process trains.

Times are measured. The clock stands still while the cluster is paused and moves at all other times, whether or not
anybody has something to do.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from scalerl.cluster.cluster import Clock, Cluster
from scalerl.generator.generator import Generator
from scalerl.generator.request import Request
from scalerl.learner.learner import Learner, Update
from scalerl.processes.fleet import Fleet
from scalerl.processes.messages import HandOver, NewRequests, NewWeights, Pause, Paused, Report, Resume, State, TakeOver
from scalerl.processes.time_sheet import TimeSheet
from scalerl.prompts.mixed_pool import AnyPool
from scalerl.recipe import ResolvedRecipe, Wall
from scalerl.tasks import Task
from scalerl.weights.channel import WeightChannel


class WallCluster(Cluster):
    """Generator processes beside this one, which trains; it starts paused."""

    def __init__(
        self,
        *,
        recipe: ResolvedRecipe,
        generators: Sequence[Generator],
        channel: WeightChannel,
        learner: Learner,
        pool: AnyPool,
        task: Task,
        rng: np.random.Generator,
        off_clock: Generator,
    ) -> None:
        """`generators` hold the first weights; each becomes a process of its own, which has the channel too."""
        super().__init__(recipe=recipe, learner=learner, pool=pool, task=task, rng=rng, off_clock=off_clock)
        assert isinstance(recipe.cluster, Wall)
        self.processes = recipe.cluster
        self.sheet = TimeSheet()
        self.channel = channel
        self.publication = 0
        """Sets of weights published so far."""
        self.published_version = 0
        """Version of the last of them, or of the weights the generators began with."""
        self.versions = [generator.version for generator in generators]
        """Weights each generator was last known to decode with."""
        self.taken = [0] * len(generators)
        """The last publication each was known to have."""
        self.groups_of: list[dict[int, int]] = [{} for _ in generators]
        """For each generator its groups that are not finished, with the rollouts missing."""
        self._before = Clock()
        self._awake: set[int] = set()
        """Generators that are not paused."""
        self._states: dict[int, dict[str, Any]] = {}
        self._silent = set(range(len(generators)))
        """Processes that are still starting."""
        self.fleet = Fleet(generators, channel, recipe.cluster.generator_threads)

    # --- generators -------------------------------------------------------------------------------------------------

    @property
    def generator_version(self) -> int:
        """The oldest weights that a generator was last known to decode with."""
        return min(self.versions)

    @property
    def has_room(self) -> bool:
        """Whether less than one optimiser step's rollouts wait for a slot: generators are on their own during one."""
        ahead = self.recipe.batch.prompts * self.recipe.batch.generations
        return self._missing() < self.processes.generators * self.processes.slots + ahead

    @property
    def is_generating(self) -> bool:
        """Whether rollouts are missing."""
        return any(self.groups_of)

    def submit(self, requests: list[Request]) -> None:
        """The group goes to the generator with the fewest rollouts to do."""
        loads = [sum(groups.values()) for groups in self.groups_of]
        number = loads.index(min(loads))
        self.groups_of[number][requests[0].group] = len(requests)
        self.fleet.send(number, NewRequests(requests=requests))

    def catch_up(self) -> None:
        """Take in what generators have reported."""
        self._take_in(wait=False)

    def advance(self) -> None:
        """Wait for the next report."""
        assert self.is_generating or min(self.taken) < self.publication, "generators have nothing to do"
        self._take_in(wait=True)

    def push_weights(self) -> None:
        """Publish the trainer's weights; should a generator not have taken the last but one yet, wait for that."""
        self.publication += 1
        self._until(lambda: min(self.taken) >= self.publication - 2)
        self.published_version = self.learner.version
        self.channel.publish(self.publication, self.learner.version, self.learner.weights())
        self.fleet.send_all(NewWeights(publication=self.publication))

    def synchronise(self) -> None:
        """Publish, and wait until every generator has taken it."""
        self.push_weights()
        self._until(lambda: min(self.taken) == self.publication)

    def _missing(self) -> int:
        """Rollouts asked for and not finished."""
        return sum(sum(groups.values()) for groups in self.groups_of)

    def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self._take_in(wait=True)

    def _take_in(self, *, wait: bool) -> None:
        """Note all that generators have said; what is waited for counts as idle time."""
        activity = self.sheet.activity
        if wait and activity == "busy":
            self.sheet.switch("idle")
        for number, answer in self.fleet.answers(wait=wait):
            self.sheet.switch(activity)
            match answer:
                case Report():
                    self._note(number, answer)
                case Paused():
                    self._awake.discard(number)
                    self._silent.discard(number)
                case State():
                    self._states[number] = answer.state
        self._tick()

    def _note(self, number: int, report: Report) -> None:
        self.versions[number], self.taken[number] = report.version, report.publication
        self.count_decoded(report.work)
        groups = self.groups_of[number]
        if report.first_waiting is not None:
            for group in groups:
                if group >= report.first_waiting:
                    self.assembling[group].start_version = report.version
        for one in report.finished:
            group = one.request.group
            groups[group] -= 1
            if groups[group] == 0:
                del groups[group]
            self._collect(one)

    # --- the clock --------------------------------------------------------------------------------------------------

    def trained(self, update: Update, start: float) -> None:
        """The step has just ended."""
        self._tick()
        self.clock.trainer_free = self.clock.now

    def _tick(self) -> None:
        """Bring the clock up to the time sheets."""
        before, clock = self._before, self.clock
        clock.now = before.now + self.sheet.seconds("busy", "idle")
        clock.trainer_busy = before.trainer_busy + self.sheet.seconds("busy")
        clock.generator_busy = before.generator_busy + float(self.fleet.seconds[:, 0].sum())

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
        """Let generators generate and the clock run, once all processes are there."""
        self._until(lambda: not self._silent)
        self._awake = set(range(len(self.fleet)))
        self.fleet.send_all(Resume())
        self.sheet.switch("busy")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Generators stand between two decode steps and the clock stands; both go on afterwards if they were going."""
        if not self._awake:
            yield
            return
        self.fleet.send_all(Pause())
        self._until(lambda: not self._awake)
        self.sheet.switch("off")
        yield
        self.start()

    def close(self) -> None:
        """End the generator processes and the channel to them."""
        self.fleet.close()
        self.channel.close()

    def state_dict(self) -> dict[str, Any]:
        """With every generator's own; only while paused."""
        assert not self._awake, "a state is taken only while the cluster is paused"
        self._until(lambda: not self._silent)
        self._states = {}
        self.fleet.send_all(HandOver())
        self._until(lambda: len(self._states) == len(self.fleet))
        return {
            **super().state_dict(),
            "generators": [self._states[number] for number in range(len(self.fleet))],
            "groups_of": [dict(groups) for groups in self.groups_of],
            "published_version": self.published_version,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken; only before the start."""
        assert not self._awake, "a state is loaded only while the cluster is paused"
        super().load_state_dict(state)
        self._before = replace(self.clock)
        self.groups_of = [dict(groups) for groups in state["groups_of"]]
        self.published_version = state["published_version"]
        for number, generator in enumerate(state["generators"]):
            self.versions[number] = generator["version"]
            self.fleet.send(number, TakeOver(state=generator))
        if self.published_version == self.learner.version > self.generator_version:
            self.push_weights()  # what had been published, but not been taken by all
