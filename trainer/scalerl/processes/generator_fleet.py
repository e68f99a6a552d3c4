"""The coordinator's records of its generators: their stages, groups and weights.

Orders go out from here, and answers are noted. Prompts and rollouts are left to the cluster, which is told the groups
to generate again.
"""

import pickle
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from scalerl.cluster.engine_agreement import WeightProbe
from scalerl.cluster.placement import PlacedUnit, UnitState
from scalerl.errors import Interrupted
from scalerl.generator.request import Request
from scalerl.processes.accounts import Accounts
from scalerl.processes.fleet import SILENCE_LIMIT_S, START_LIMIT_S, Fleet
from scalerl.processes.generator_process import GeneratorWork
from scalerl.processes.launch import Launcher
from scalerl.processes.line import Death
from scalerl.processes.messages import (
    HandOver,
    NewRequests,
    NewWeights,
    Pause,
    Refused,
    Report,
    Resume,
    TakeOver,
)
from scalerl.quantities import counted

MOST_REFUSALS = 3
"""Number of consecutive publications that a generator may reject; each is published again at once."""

Stage = Literal["starting", "catching up", "at work", "gone"]
"""Stages in order: silent so far; taking the newest weights; accepting groups; dead and not to be restarted."""


@dataclass(kw_only=True)
class GeneratorRecord:
    """A generator's record: `GeneratorRecord(stage="at work", version=12, told=12, seen=12, groups={331: 16})`."""

    stage: Stage = "starting"
    version: int = 0
    """Weights last known to be in use for decoding."""
    told: int = 0
    """Last publication announced to the generator."""
    seen: int = 0
    """Last publication known to be taken or rejected; the generator no longer reads earlier ones."""
    taken: int = 0
    """Last publication known to be taken."""
    refusals: int = 0
    """Number of consecutive rejections."""
    groups: dict[int, int] = field(default_factory=dict)
    """Unfinished groups, with the number of missing rollouts."""
    is_awake: bool = False
    is_to_pause: bool = False
    is_to_tell_state: bool = False
    state: dict[str, Any] | None = None
    """Last state received."""
    has_begun: bool = False
    """True if this generator or a predecessor was ever at work."""

    @property
    def missing(self) -> int:
        """Number of rollouts requested and unfinished."""
        return sum(self.groups.values())

    @property
    def reads(self) -> bool:
        """True if the generator may be reading an announced publication."""
        return self.stage in ("catching up", "at work")

    @property
    def owed(self) -> str:
        """The work whose answer the generator owes; empty if it may be silent."""
        if self.stage == "gone":
            return ""
        if self.stage == "starting":
            return "starting"
        if self.seen < self.told:
            return f"taking publication {self.told}"
        if self.is_to_pause:
            return "pausing"
        if self.is_to_tell_state:
            return "sending its state"
        return f"decoding {counted(self.missing, 'rollout')}" if self.groups and self.is_awake else ""


class GeneratorFleet:
    """The generators of a run, started on construction; none is at work yet."""

    def __init__(
        self, launcher: Launcher, units: Sequence[PlacedUnit], work: GeneratorWork, accounts: Accounts, news: list[str]
    ) -> None:
        """Start generators that execute `work`; events of theirs are added to `news`."""
        self.accounts, self.news, self.store = accounts, news, work.store
        self.records = [GeneratorRecord() for _ in units]
        self.homeless: list[int] = []
        """Groups waiting for a generator."""
        self.newest = NewWeights(publication=0, version=0)
        """Last publication, or the weights that the generators began with."""
        self.fleet = Fleet(launcher, units, [pickle.dumps(work)] * len(units))

    @property
    def at_work(self) -> list[int]:
        """Numbers of the generators that accept groups."""
        return [number for number, record in enumerate(self.records) if record.stage == "at work"]

    @property
    def version(self) -> int:
        """Oldest weights last known to be in use by a generator that accepts groups."""
        return min((self.records[number].version for number in self.at_work), default=self.newest.version)

    def missing_s(self, *, of_readers: bool) -> float:
        """Seconds since any generator that owes an answer was last alive, if all of them are missing; else 0.

        With `of_readers`, only generators count that are to take weights.
        """
        owing = [
            number
            for number, record in enumerate(self.records)
            if record.owed and not (of_readers and record.stage == "at work" and record.seen >= record.told)
        ]
        return min((self.fleet.missing_s(number) for number in owing), default=0.0)

    @property
    def all_have_taken(self) -> bool:
        """True if all generators that accept groups have the last publication."""
        return all(self.records[number].taken >= self.newest.publication for number in self.at_work)

    @property
    def some_come(self) -> bool:
        """True if a generator has yet to start or to take its first weights."""
        return any(record.stage in ("starting", "catching up") for record in self.records)

    @property
    def some_awake(self) -> bool:
        """True if a generator may be decoding."""
        return any(record.is_awake for record in self.records)

    @property
    def some_owe_state(self) -> bool:
        """True if a generator has yet to send the state it was asked for."""
        return any(record.is_to_tell_state for record in self.records)

    @property
    def refused_by_some(self) -> bool:
        """True if a generator saw the last publication without taking it; it will not take that one later."""
        newest = self.newest.publication
        return any(record.reads and record.taken < record.seen == newest for record in self.records)

    def may_write(self, publication: int) -> bool:
        """True if the last publication has reached its nodes, and nobody still reads the one that `publication`
        overwrites."""
        are_done = (record.seen >= publication - 2 for record in self.records if record.reads)
        return not self.store.is_broadcasting and all(are_done)

    def missing(self, generations: int) -> int:
        """Number of rollouts requested and unfinished; a group has `generations` of them."""
        return len(self.homeless) * generations + sum(record.missing for record in self.records)

    def units(self) -> list[UnitState]:
        """Last known activity of each generator."""
        return [
            UnitState(
                unit=f"generator {number}",
                node=self.fleet.node_name(number),
                state="silent" if record.stage == "at work" and self.fleet.missing_s(number) else record.stage,
                doing=self.accounts.generators[number].doing if record.stage == "at work" else "",
                deaths=self.fleet.deaths[number],
            )
            for number, record in enumerate(self.records)
        ]

    # --- orders -----------------------------------------------------------------------------------------------------

    def submit(self, requests: list[Request]) -> None:
        """Give the group to the generator with the fewest rollouts left, as soon as there is one."""
        group, candidates = requests[0].group, self.at_work
        if not candidates:
            self.homeless.append(group)
            return
        number = min(candidates, key=lambda each: self.records[each].missing)
        self.records[number].groups[group] = len(requests)
        if self.accounts.generators[number].doing == "wait_prompts":
            self.accounts.generators[number].switch("decode", self.accounts.now())
        self.fleet.send(number, NewRequests(requests=requests))

    def published(self, publication: int, version: int, probe: WeightProbe | None) -> None:
        """Bring a publication to every node, and announce it to every generator that reads weights."""
        self.newest = NewWeights(publication=publication, version=version, probe=probe)
        self.store.broadcast(publication, version)
        for number, record in enumerate(self.records):
            if record.reads:
                self._tell_newest(number)

    def wake(self, number: int) -> None:
        """Tell a waiting generator to continue."""
        self.records[number].is_awake = True
        self.fleet.send(number, Resume())

    def wake_all(self) -> None:
        """Tell all generators that accept groups to continue."""
        for number in self.at_work:
            self.wake(number)

    def ask_to_pause(self) -> None:
        """Tell all generators that may be decoding to pause."""
        for number, record in enumerate(self.records):
            if record.is_awake:
                record.is_to_pause = True
                self.fleet.send(number, Pause())

    def ask_for_states(self) -> None:
        """Tell all generators that accept groups to send their state; earlier ones are forgotten."""
        for number, record in enumerate(self.records):
            record.state = None
            if record.stage == "at work":
                record.is_to_tell_state = True
                self.fleet.send(number, HandOver())

    def _tell_newest(self, number: int) -> None:
        """Tell a generator of the newest weights once they are on its node."""
        record, line, newest = self.records[number], self.fleet.line(number), self.newest

        def tell() -> None:
            record.told = newest.publication
            line.send(newest)

        self.store.when_at(line.unit.node, tell)

    # --- answers ----------------------------------------------------------------------------------------------------

    def note(self, number: int, report: Report) -> None:
        """Note a generator's report; afterwards call `put_to_work` if it was catching up and has taken weights."""
        record = self.records[number]
        if report.publication > record.taken:
            record.refusals = 0
        record.version, record.taken = report.version, report.publication
        record.seen = max(record.seen, report.publication)
        self.accounts.generators[number].report(report.seconds, report.doing)
        for one in report.finished:
            record.groups[one.request.group] -= 1
        record.groups = {group: missing for group, missing in record.groups.items() if missing}

    def note_refusal(self, number: int, refused: Refused) -> None:
        """Note a rejected publication; raises Interrupted if that happens too often."""
        record = self.records[number]
        record.seen = refused.publication
        record.refusals += 1
        self.news.append(
            f"generator {number} rejected the new weights and kept version {record.version}: {refused.reason}"
        )
        if record.refusals == MOST_REFUSALS:
            raise Interrupted(f"generator {number} rejected {MOST_REFUSALS} publications in a row: {refused.reason}")

    def note_death(self, number: int, death: Death) -> list[int]:
        """Restart a dead generator unless it has died too often; return its groups, which must be generated again."""
        record = self.records[number]
        if death.by_itself and not record.has_begun:
            raise Interrupted(f"generator {number} {death.how} while starting")
        groups = list(record.groups)
        self.accounts.generators[number].switch("dead", self.accounts.now())
        is_restarted, said = self.fleet.restart(number)
        self.records[number] = GeneratorRecord(stage="starting" if is_restarted else "gone", has_begun=record.has_begun)
        lost = f". Its {counted(len(groups), 'unfinished group')} will be generated again" if groups else ""
        self.news.append(f"generator {number} {death.how}. {said}{lost}")
        if all(each.stage == "gone" for each in self.records):
            raise Interrupted(f"generator {number} {death.how}, and no other generator is left")
        return groups

    def admit(self, number: int) -> bool:
        """Note a process's first message; return True if it accepts groups at once.

        If others have newer weights, it takes those first. If nothing was published, it waits for the next publication.
        """
        record, is_restarted = self.records[number], self.fleet.deaths[number] > 0
        if is_restarted:
            self.accounts.generators[number].replaced(self.accounts.now())
        elif record.version == self.newest.version:
            return True
        record.stage = "catching up"
        if self.newest.publication:
            # The last publication but one may be overwritten, whatever this generator has not read.
            record.seen = self.newest.publication - 1
            self._tell_newest(number)
        return False

    def put_to_work(self, number: int, *, is_running: bool) -> list[int]:
        """Let a generator accept groups; return the groups waiting for one."""
        record = self.records[number]
        record.stage, record.has_begun = "at work", True
        if is_running:
            self.accounts.generators[number].replaced(self.accounts.now())
            self.wake(number)
        homeless, self.homeless = self.homeless, []
        return homeless

    def end_silent(self) -> None:
        """Kill each generator that owes an answer but has been silent too long; it is then handled as dead."""
        for number, record in enumerate(self.records):
            limit_s = START_LIMIT_S if record.stage == "starting" else SILENCE_LIMIT_S
            self.fleet.kill_if_silent(number, record.owed, limit_s)

    # --- state ------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The states received after `ask_for_states`, with the groups of each, and the version last published."""
        return {
            "generators": [record.state for record in self.records],
            "groups_of": [dict(record.groups) if record.state is not None else {} for record in self.records],
            "published_version": self.newest.version,
        }

    def load_state_dict(self, state: Mapping[str, Any], unfinished: Collection[int]) -> None:
        """Hand the states to generators that have not begun; `unfinished` groups without one wait for a generator."""
        self.newest = NewWeights(publication=0, version=state["published_version"])
        for number, (generator, groups) in enumerate(zip(state["generators"], state["groups_of"], strict=True)):
            if generator is not None:
                self.records[number].version = generator["version"]
                self.records[number].groups = dict(groups)
                self.fleet.send(number, TakeOver(state=generator))
        held = {group for record in self.records for group in record.groups}
        self.homeless = [group for group in unfinished if group not in held]
