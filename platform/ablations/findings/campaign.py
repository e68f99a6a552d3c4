"""A campaign: proposals one after the other against the best so far, each kept, discarded or run again.

    campaigns/night/ledger.jsonl
    {"line": 1, "kind": "campaign", "promise": "at_most_one", "proposals": 200, "margin": null, "ceiling": 1.0, ...}
    {"line": 2, "kind": "proposal", "name": "start", "identity": "81d2...", "says": ""}
    {"line": 3, "kind": "run", "of": "start", "score": 0.413, "source": "", "compute": null, "conditions": {...}, ...}
    {"line": 9, "kind": "decision", "of": "wider", "word": "keep", "level": 0.0046, "gain": 0.021, ...}

`told` adds what was not said of a proposal at first, and `withdrawal` takes back a score that was mistyped.
The first proposal is where the campaign starts, and its best until another is kept. Everything else follows from the
lines (`ablations.home.ledger`): each run of the best is one of the campaign's latest, and after a keep the new best is
measured afresh, since the runs by which it was chosen flatter it.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from ablations.answers.interval import Interval
from ablations.answers.keep import JUDGED_AT, LEAST_OF_BEST, WINDOW, Judged, Look, judge
from ablations.answers.promise import Promise, keep_level
from ablations.answers.repeats import Repeats
from ablations.answers.run_to_run import RunToRun, run_to_run
from ablations.answers.student import interval_of
from ablations.errors import AblationsError
from ablations.findings.fair_runs import NewRun, refuse_unfair
from ablations.home.home import Home, check_sweep_name
from ablations.home.ledger import Ledger
from ablations.nearest_name import did_you_mean
from ablations.text import cut_message

BEST_SO_FAR = "best"
"""Name by which the best so far is measured again, whichever it is."""


@dataclass(frozen=True, kw_only=True)
class CampaignTerms:
    """What a campaign promises and refuses: `CampaignTerms(promise="at_most_one", proposals=200)`."""

    promise: Promise = "at_most_one"
    proposals: int = 200
    """Number of proposals that the promise is made for."""
    margin: float | None = None
    """Smallest gain in score worth having; None for one run-to-run standard deviation."""
    ceiling: float | None = None
    """Highest possible score; None if there is none."""
    evaluation: str = ""
    """File of evaluation prompts, with which the prompts that a proposal trains on are compared."""


@dataclass(frozen=True, kw_only=True)
class CampaignRun(NewRun):
    """A run in the ledger: `CampaignRun(line=3, score=0.413)`."""

    line: int


@dataclass(kw_only=True)
class Candidate:
    """A proposal, or the start, with its runs so far."""

    name: str
    number: int
    """0 for the start."""
    line: int
    identity: str
    says: str
    runs: list[CampaignRun] = field(default_factory=list)
    decision: dict[str, Any] | None = None
    """The line of its decision; None while it is open, and for the start."""

    @property
    def crowned(self) -> int | None:
        """The line from which it was the best; None if it never was."""
        if self.number == 0:
            return 0
        return self.decision["line"] if self.decision and self.decision["word"] == "keep" else None

    @property
    def fresh(self) -> list[CampaignRun]:
        """Runs since it was the best."""
        return [run for run in self.runs if self.crowned is not None and run.line > self.crowned]


@dataclass(frozen=True, kw_only=True)
class NextStep(Judged):
    """What the runs of a proposal say, and the runs that are needed before it is judged again."""

    name: str
    level: float
    own_runs: int
    """Further runs of the proposal."""
    best_runs: int
    """Further runs of the best."""


@dataclass(kw_only=True)
class Campaign:
    """The state of a campaign, from the lines of its ledger."""

    name: str
    ledger: Ledger
    lines: list[dict[str, Any]]
    terms: CampaignTerms = CampaignTerms()
    candidates: dict[str, Candidate] = field(default_factory=dict)
    num_withdrawn: int = 0

    @property
    def home(self) -> Home:
        """The home folder that keeps the campaign."""
        return Home(self.ledger.path.parents[2])

    def __post_init__(self) -> None:
        known, self.lines = self.lines, []
        self._take(known)

    def _take(self, lines: Sequence[dict[str, Any]]) -> None:
        for line in lines:
            self.lines.append(line)
            match line["kind"]:
                case "campaign":
                    self.terms = CampaignTerms(**{name: line[name] for name in asdict(self.terms)})
                case "proposal":
                    said = {name: line[name] for name in ("name", "line", "identity", "says")}
                    self.candidates[line["name"]] = Candidate(number=len(self.candidates), **said)
                case "told":
                    self.candidates[line["of"]].identity = line["identity"]
                    self.candidates[line["of"]].says = line["says"]
                case "run":
                    names = ("line", "score", "source", "compute", "conditions")
                    self.candidates[line["of"]].runs.append(CampaignRun(**{name: line[name] for name in names}))
                case "withdrawal":
                    one = self.candidates[line["of"]]
                    one.runs = [run for run in one.runs if run.line != line["run"]]
                    one.decision = one.decision if one.crowned else None
                    self.num_withdrawn += 1
                case _:
                    self.candidates[line["of"]].decision = line
        self.__dict__.pop("spread", None)

    @property
    def bests(self) -> list[Candidate]:
        """The start and every kept proposal, in order."""
        crowned = [one for one in self.candidates.values() if one.crowned is not None]
        return sorted(crowned, key=lambda one: one.crowned or 0)

    @property
    def best(self) -> Candidate | None:
        """The best so far; None before the first proposal."""
        return next(reversed(self.bests), None)

    @property
    def is_measured(self) -> bool:
        """True if proposals can be judged: the best has its first runs."""
        return self.best is not None and len(self.best.fresh) >= LEAST_OF_BEST

    @property
    def kept(self) -> list[int]:
        """Numbers of the kept proposals."""
        return [one.number for one in self.bests if one.number]

    @property
    def runs(self) -> list[CampaignRun]:
        """All runs."""
        return [run for one in self.candidates.values() for run in one.runs]

    @property
    def compute(self) -> float:
        """Compute of all runs whose compute is known."""
        return sum(run.compute or 0.0 for run in self.runs)

    @property
    def expected_false(self) -> float:
        """Keeps expected to be false: at most the sum of the levels at which proposals were decided."""
        levels = [one.decision["level"] for one in self.candidates.values() if one.decision]
        return min(sum(levels), float(len(self.kept)))

    def groups(self, until: int) -> tuple[tuple[float, ...], ...]:
        """Scores up to a line that differ by chance alone; long series of a best in parts, since a machine drifts."""
        found: list[tuple[float, ...]] = []
        for one in self.candidates.values():
            runs = [run for run in one.runs if run.line <= until]
            crowned = math.inf if one.crowned is None else one.crowned
            fresh = [run.score for run in runs if run.line > crowned]
            found.append(tuple(run.score for run in runs if run.line < crowned))
            found += [tuple(fresh[at : at + WINDOW]) for at in range(0, len(fresh), WINDOW)]
        return tuple(one for one in found if one)

    @cached_property
    def spread(self) -> RunToRun:
        """The run-to-run spread of the campaign."""
        return run_to_run([Repeats.of(one, [0.0] * len(one)) for one in self.groups(len(self.lines))])

    @property
    def unsteady(self) -> list[str]:
        """Names of the candidates whose runs scatter more than those of the others, by an F test."""
        repeats = {one.name: [run.score for run in one.runs][-WINDOW:] for one in self.candidates.values()}
        return [name for name, one in repeats.items() if self.spread.stands_out(Repeats.of(one, [0.0] * len(one)))]

    def step(self, proposal: Candidate) -> NextStep:
        """What the runs of an open proposal say, and what is to be run next."""
        best = self.best
        assert best is not None
        looks, own_runs, best_runs = self._looks(proposal, best)
        level = keep_level(self.terms.promise, proposal.number, self.kept, proposals=self.terms.proposals)
        found = judge(looks, level=level, margin=self.terms.margin)
        if found.word != "again":
            own_runs = best_runs = 0
        return NextStep(**vars(found), name=proposal.name, level=level, own_runs=own_runs, best_runs=best_runs)

    def _looks(self, proposal: Candidate, best: Candidate) -> tuple[list[Look], int, int]:
        """The looks that the runs allow, and the runs of the proposal and of the best that the next one lacks.

        After n runs of the proposal the best must have n of its own beside them, since the decision before.
        """
        first = proposal.runs[0].line if proposal.runs else len(self.lines) + 1
        decided = [one.decision["line"] for one in self.candidates.values() if one.decision]
        since = max((line for line in decided if line < first), default=0)
        fresh = best.fresh
        beside = [run for run in fresh if run.line > since]
        looks: list[Look] = []
        for num in JUDGED_AT:
            lacks_own, lacks_beside = num - len(proposal.runs), num - len(beside)
            lacks_best = max(lacks_beside, LEAST_OF_BEST - len(fresh))
            if lacks_own > 0 or lacks_best > 0:
                return looks, max(lacks_own, 0), max(lacks_best, 0)
            at = max(proposal.runs[num - 1].line, beside[num - 1].line, fresh[LEAST_OF_BEST - 1].line)
            of_best = [run.score for run in fresh if run.line <= at][-WINDOW:]
            seen = tuple(run.score for run in proposal.runs[:num])
            looks.append(Look(proposal=seen, best=tuple(of_best), groups=self.groups(at)))
        return looks, 0, 0

    def named(self, name: str) -> Candidate | None:
        """The candidate of this name, or the best so far; None if there is none."""
        return self.best if name == BEST_SO_FAR else self.candidates.get(name)

    def same_as(self, name: str, identity: str) -> Candidate | None:
        """The candidate with the code and settings of a proposal that told none so far; None if there is none."""
        known = self.named(name)
        if not identity or (known is not None and known.identity):
            return None
        return next((one for one in self.candidates.values() if one.identity == identity), None)

    def add(self, name: str, runs: Sequence[NewRun], *, identity: str = "", says: str = "") -> Candidate:
        """Record runs of a proposal, which begins with its first; within `opened`. Runs that are known are left out."""
        known = self.named(name)
        if known is None:
            self._check_new(name)
        elif identity and known.identity not in ("", identity):
            raise AblationsError(
                f"proposal '{known.name}': its code or settings differ from those of its first run; give what has "
                "changed another name"
            )
        of = name if known is None else known.name
        recorded = {run.source: one.name for one in self.candidates.values() for run in one.runs if run.source}
        if others := [run for run in runs if recorded.get(run.source, of) != of]:
            raise AblationsError(
                f"run {others[0].source}: was recorded as one of {recorded[others[0].source]}, not {of}"
            )
        new = [run for run in runs if run.source not in recorded]
        if known is not None and new:
            self._check_open(known)
        refuse_unfair(new, self.runs, self.terms.ceiling)
        head = {"kind": "proposal", "name": name} if known is None else {"kind": "told", "of": of}
        had = {} if known is None else {"identity": known.identity, "says": known.says}
        said = {"identity": identity, "says": cut_message(says, 300)}
        said = {key: value or had.get(key, "") for key, value in said.items()}
        heads = [] if said == had else [head | said]
        self._write([*heads, *({"kind": "run", "of": of, **asdict(run)} for run in new)])
        return self.candidates[of]

    def _check_new(self, name: str) -> None:
        check_sweep_name(name, "proposal")
        if name == BEST_SO_FAR:
            raise AblationsError(
                f"'{BEST_SO_FAR}' stands for the best so far, and the campaign has none yet; name its start"
            )
        if self.terms.promise == "at_most_one" and len(self.candidates) > self.terms.proposals:
            raise AblationsError(
                f"campaign '{self.name}' has had its {self.terms.proposals} proposals, for which its promise is made; "
                "start another from its best"
            )

    def _check_open(self, known: Candidate) -> None:
        """Raise AblationsError if runs of a candidate no longer count."""
        if known is self.best or (known.number and known.decision is None):
            return
        was = f"was decided ({known.decision['word']})" if known.decision else "was where the campaign started"
        raise AblationsError(
            f"proposal '{known.name}' {was}; propose it again under another name if there is a reason to"
        )

    def withdraw(self, name: str, score: float, says: str) -> Candidate:
        """Take back the last run of a proposal with this score, which was mistyped, and a discard; within `opened`."""
        known = self.named(name)
        if known is None:
            names = did_you_mean(name, self.candidates, "proposals")
            raise AblationsError(f"unknown proposal '{name}' of campaign '{self.name}'; {names}")
        if known.decision is None or known.crowned:
            self._check_open(known)
        found = [run for run in known.runs if run.score == score and not run.source]
        if not found:
            scores = ", ".join(f"{run.score!r}" for run in known.runs if not run.source) or "none"
            raise AblationsError(
                f"--withdraw {score!r}: no such score of '{known.name}'; its typed scores are {scores}"
            )
        self._write([{"kind": "withdrawal", "of": known.name, "run": found[-1].line, "says": cut_message(says, 300)}])
        return known

    def _write(self, lines: Sequence[dict[str, Any]]) -> None:
        if lines:
            self._take(self.ledger.add(self.lines, lines))

    def decide(self, proposal: Candidate) -> NextStep:
        """Judge a proposal, and record a decision; within `opened`."""
        found = self.step(proposal)
        if found.word != "again":
            gain = found.gain
            told = {"gain": gain and gain.estimate, "lo": gain and gain.lo, "hi": gain and gain.hi}
            decided = {"kind": "decision", "of": proposal.name, "word": found.word, "level": found.level}
            self._write([decided | told | {"runs": found.num_runs}])
        return found

    def gain_afresh(self, kept: Candidate) -> Interval | None:
        """The gain of a kept proposal over the best before it, by runs that did not choose it; None before there are
        any."""
        before = self.bests[self.bests.index(kept) - 1]
        sides = [[run.score for run in one.fresh][:WINDOW] for one in (kept, before)]
        spread = self.spread
        if not all(sides) or not spread.is_known:
            return None
        one, other = (Repeats.of(side, [0.0] * len(side)) for side in sides)
        found = spread.of_difference(one, other)
        return interval_of([found], found.estimate)


def read_campaign(home: Home, name: str) -> Campaign:
    """A campaign of the home folder; AblationsError lists them if there is none of this name."""
    ledger = _known_ledger(home, name)
    return Campaign(name=name, ledger=ledger, lines=ledger.read())


@contextmanager
def opened(home: Home, name: str) -> Iterator[Campaign]:
    """A campaign that no other process writes meanwhile."""
    ledger = _known_ledger(home, name)
    home.require_writable()
    with ledger.locked() as lines:
        yield Campaign(name=name, ledger=ledger, lines=lines)


def new_campaign(home: Home, name: str, terms: CampaignTerms) -> Campaign:
    """Start a campaign; AblationsError if it exists."""
    check_sweep_name(name, "campaign")
    home.require_writable()
    ledger = _ledger(home, name)
    with ledger.locked() as lines:
        if lines:
            raise AblationsError(f"campaign '{name}' exists in {home.path}; its terms are fixed; choose another name")
        return Campaign(name=name, ledger=ledger, lines=ledger.add(lines, [{"kind": "campaign", **asdict(terms)}]))


def campaign_names(home: Home) -> list[str]:
    """Names of the campaigns, the most recently used first."""
    found = sorted(home.campaigns.glob("*/ledger.jsonl"), key=lambda one: one.stat().st_mtime, reverse=True)
    return [one.parent.name for one in found]


def _ledger(home: Home, name: str) -> Ledger:
    return Ledger(home.campaigns / name / "ledger.jsonl")


def _known_ledger(home: Home, name: str) -> Ledger:
    ledger = _ledger(home, name)
    if not ledger.path.exists():
        raise AblationsError(
            f"unknown campaign '{name}' in {home.path}; {did_you_mean(name, campaign_names(home), 'campaigns')}; "
            f"to start it, run `platform campaign {name} --proposals 200{home.end_of_command}`; one of another folder "
            "needs its --home"
        )
    return ledger
