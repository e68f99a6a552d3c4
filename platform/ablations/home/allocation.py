"""How a total of compute has been shared out so far: every round with its reasons, `allocation.json`.

A round is written before it is trained, so a sweep killed at any moment resumes with the same decisions. Who gets more
is decided by `ablations.steering.allocation`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from scalerl.run.run_folder import write_atomically

ALLOCATION_FILE = "allocation.json"


@dataclass(frozen=True, kw_only=True)
class Extension:
    """One run's part of a round.

    Extension(run="81d2f0a95c3b", name="loo-loss, seed 0", start=4260.0, to=8520.0, why="rank open, ...")
    """

    run: str
    name: str
    """Kept, since the run may have left the sweep file."""
    start: float
    """GPU-hours it had."""
    to: float
    """GPU-hours it trains to."""
    why: str


@dataclass(frozen=True, kw_only=True)
class Round:
    """What was decided at once: who trains on, and how every candidate stood, by run."""

    extensions: tuple[Extension, ...]
    standings: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """All rounds so far: `Allocation(total_gpu_hours=80000.0, rounds=(Round(...),), finished="")`."""

    total_gpu_hours: float
    rounds: tuple[Round, ...] = ()
    finished: str = ""
    """Why no further round follows; empty while one may."""
    closing: dict[str, str] = field(default_factory=dict)
    """How every candidate stood when the last round was over."""

    @property
    def allotted(self) -> dict[str, float]:
        """GPU-hours that each run is trained to."""
        return {one.run: one.to for round_ in self.rounds for one in round_.extensions}

    @property
    def bought(self) -> dict[str, float]:
        """GPU-hours that each run got from the total."""
        spent: dict[str, float] = {}
        for round_ in self.rounds:
            for one in round_.extensions:
                spent[one.run] = spent.get(one.run, 0.0) + one.to - one.start
        return spent

    def left(self, unused: float = 0.0) -> float:
        """GPU-hours of the total not given out, `unused` being those that stopped runs gave back."""
        # Sums of slices are off by rounding errors, which must not read as compute.
        return max(0.0, round(self.total_gpu_hours - sum(self.bought.values()) + unused, 9))

    def with_round(self, extensions: Sequence[Extension], standings: Mapping[str, str]) -> "Allocation":
        """One round more, with how the candidates stood when it was decided, by run."""
        round_ = Round(extensions=tuple(extensions), standings=dict(standings))
        return replace(self, rounds=(*self.rounds, round_), finished="", closing={})

    def closed(self, why: str, standings: Mapping[str, str]) -> "Allocation":
        """No round more: why not, and how the candidates stand, by run."""
        return replace(self, finished=why, closing=dict(standings))

    def last_word(self, run: str) -> str:
        """The last reason written down for a run."""
        written = (*(one.standings for one in self.rounds), self.closing)
        return next((standings[run] for standings in reversed(written) if run in standings), "first share")


_WRITTEN = TypeAdapter(Allocation)


def read_allocation(folder: Path, total_gpu_hours: float) -> Allocation:
    """The rounds of a sweep with the total as it now is; none before the first."""
    path = folder / ALLOCATION_FILE
    try:
        content = json.loads(path.read_bytes())
        rounds = tuple(
            Round(
                extensions=tuple(
                    Extension(run=one["run"], name=one["name"], start=one["from"], to=one["to"], why=one["why"])
                    for one in round_["extensions"]
                ),
                standings=dict(round_["standings"]),
            )
            for round_ in content["rounds"]
        )
        written = Allocation(
            total_gpu_hours=content["total_gpu_hours"],
            rounds=rounds,
            finished=content["finished"],
            closing=content["closing"],
        )
        checked(asdict(written), _WRITTEN)
    except FileNotFoundError:
        return Allocation(total_gpu_hours=total_gpu_hours)
    except (ValueError, KeyError, TypeError) as error:
        raise AblationsError(
            f"{path}: not a list of rounds ({error}); delete it, and `platform sweep` shares the whole total out "
            "again, on top of what is trained"
        ) from error
    if written.total_gpu_hours == total_gpu_hours:
        return written
    return replace(written, total_gpu_hours=total_gpu_hours, finished="", closing={})


def write_allocation(folder: Path, allocation: Allocation) -> None:
    """Replace the file in one step."""
    rounds = [
        {
            "round": number,
            "extensions": [
                {"run": one.run, "name": one.name, "from": one.start, "to": one.to, "why": one.why}
                for one in round_.extensions
            ],
            "standings": round_.standings,
        }
        for number, round_ in enumerate(allocation.rounds)
    ]
    content = {
        "total_gpu_hours": allocation.total_gpu_hours,
        "finished": allocation.finished,
        "closing": allocation.closing,
        "rounds": rounds,
    }
    write_atomically(folder / ALLOCATION_FILE, json.dumps(content, indent=1).encode())
