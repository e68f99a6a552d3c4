"""The wall clock of a run, and the time that each device has spent on each activity."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalerl.cluster.cluster import Clock
from scalerl.cluster.device_seconds import Activity, Role
from scalerl.processes.time_sheet import ReportedAccount, TimeSheet

TRAINER_WORKS: tuple[Activity, ...] = ("forward_backward", "coordinate")
GENERATOR_WORKS: tuple[Activity, ...] = ("decode", "sync")
"""Activities that count as busy."""


class Accounts:
    """The coordinator's time sheet, which is the clock, and the accounts of generators and trainer ranks.

    If the coordinator trains, its time sheet is also the trainer's account.
    """

    def __init__(
        self, num_generators: int, ranks: Sequence[ReportedAccount] = (), *, has_evaluator: bool = False
    ) -> None:
        """`ranks` are the training processes, if the coordinator does not train itself."""
        self.sheet = TimeSheet()
        self.generators = [ReportedAccount() for _ in range(num_generators)]
        self.ranks = ranks
        self.evaluator = ReportedAccount(doing="wait_weights") if has_evaluator else None
        self._before = 0.0
        """Reading of the clock at a resume."""
        self._more_s = 0.0
        """Device-seconds before the resume in excess of what the present devices would have spent."""
        self._earlier: Mapping[Activity, float] = {}
        """Time of the trainers before a resume."""
        self._trainer: dict[Activity, float] = {}
        """Time of the trainers at the last reading of the clock."""

    @property
    def num_devices(self) -> int:
        """Number of devices charged as compute: those of generators and trainers."""
        return len(self.generators) + max(1, len(self.ranks))

    def device_s(self, moment: float) -> float:
        """Device-seconds up to a moment of this attempt; earlier attempts may have had another number of ranks."""
        return self.num_devices * moment + self._more_s

    def now(self) -> float:
        """Seconds on the clock."""
        return self._before + self.sheet.elapsed()

    def bring_up(self, clock: Clock) -> None:
        """Read the time sheets and set the clock."""
        own = self.sheet.seconds()
        elapsed = sum(own.values())
        for account, now in (
            *((one, elapsed) for one in self.ranks),
            *((one, self._before + elapsed) for one in self.generators),
        ):
            account.fit_in(now)
        trainers = [rank.at(elapsed) for rank in self.ranks] or [own]
        self._trainer = _sum([self._earlier, *trainers])
        clock.now = self._before + elapsed
        clock.trainer_busy = sum(self._trainer.get(name, 0.0) for name in TRAINER_WORKS)
        generators = self.by_role(clock.now)["generator"]
        clock.generator_busy = sum(generators.get(name, 0.0) for name in GENERATOR_WORKS)

    def by_role(self, now: float) -> dict[Role, dict[Activity, float]]:
        """Device-seconds up to the last reading of the clock, `now`."""
        spent: dict[Role, dict[Activity, float]] = {
            "generator": _sum(account.at(now) for account in self.generators),
            "trainer": self._trainer,
        }
        return {**spent, "evaluator": self.evaluator.at(now)} if self.evaluator else spent

    def state_dict(self, now: float) -> dict[str, Any]:
        """Seconds of each device up to the last reading of the clock, `now`."""
        return {
            "generators": [account.at(now) for account in self.generators],
            "trainer": self._trainer,
            "evaluator": self.evaluator.at(now) if self.evaluator else {},
            "num_devices": self.num_devices,
            "more_s": self._more_s,
        }

    def load_state_dict(self, saved: dict[str, Any], clock: Clock) -> None:
        """Continue from a checkpoint."""
        self._before, self._earlier = clock.now, saved["trainer"]
        self._more_s = saved["more_s"] + (saved["num_devices"] - self.num_devices) * clock.now
        self.generators = [ReportedAccount(earlier=seconds) for seconds in saved["generators"]]
        if self.evaluator:
            self.evaluator = ReportedAccount(earlier=saved["evaluator"], doing="wait_weights")


def _sum(accounts: Iterable[Mapping[Activity, float]]) -> dict[Activity, float]:
    sums: Counter[Any] = Counter()
    for seconds in accounts:
        sums.update(seconds)
    return dict(sums)
