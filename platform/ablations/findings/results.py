"""The results of a sweep so far: curves from run logs, fits, and the comparison with the reference.

A run that cannot be fitted has a reason instead of a fit, so that one bad run does not hide the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ablations.answers.answer import Question
from ablations.answers.compare import PLAIN_KEYS, Comparison, VariantResult
from ablations.answers.footing import NEARLY
from ablations.answers.interactions import Interaction, interactions
from ablations.answers.level import last_compute
from ablations.answers.questions import QUESTIONS
from ablations.errors import AblationsError
from ablations.findings.fitted_variant import NO_FIT, FittedVariant, on_one_footing
from ablations.findings.grid import Grid, grid_of
from ablations.findings.remark import ON_CURVES, Remark, by_weight, cells_on
from ablations.findings.remarks import remarks_of, warnings_of_run
from ablations.findings.repeated_runs import some_recipe
from ablations.findings.run_ends import once_per_run, remarks_on_ends
from ablations.findings.summary import Summary, grouped
from ablations.findings.variant_comparison import compare_variants
from ablations.fit.asymptote import AsymptoteEstimate
from ablations.fit.result import Fit
from ablations.home.home import find_home
from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.home.state import State
from ablations.home.stops import Stopped, read_stops
from ablations.nearest_name import did_you_mean
from ablations.readings.fitted_run import FittedRun, fitted_runs
from ablations.readings.readings_together import Done
from ablations.readings.task_curves import with_task
from ablations.study.recipe_differences import recipe_settings
from ablations.text import at_scale, changes_text, compute_text, settings_json

if TYPE_CHECKING:
    from pandas import DataFrame

_Entry = TypeVar("_Entry")


@dataclass(frozen=True, kw_only=True, eq=False)
class Results:
    """All variants of a sweep, in the plan's order, and the comparison of those with a fit."""

    plan: Plan
    sweep: StartedSweep
    variants: tuple[FittedVariant, ...]
    comparison: Comparison | None
    """None while the reference has no fit."""
    stops: Mapping[str, Stopped] = field(default_factory=dict)
    """Runs that a rule of the sweep has stopped or flagged, by id."""
    notes: tuple[str, ...] = ()
    """Notes of the import, for runs of other trainers."""
    chosen_from: "Results | None" = None
    """The results that these variants were chosen from, for a page; None for a whole sweep."""

    def __post_init__(self) -> None:
        lines = {} if self.comparison is None else {line.name: line.asymptote for line in self.comparison.variants}
        variants = tuple(replace(one, compared=lines.get(one.name)) for one in self.variants)
        object.__setattr__(self, "variants", variants)

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of the sweeps compared with this one."""
        return self.sweep.beside

    @property
    def report_folder(self) -> Path:
        """The folder for its reports."""
        return self.sweep.report_folder

    @property
    def title(self) -> str:
        """The name of the sweep, followed by the sweeps beside it."""
        return self.sweep.title

    @property
    def runs(self) -> list[FittedRun]:
        """The runs of all variants."""
        return [run for variant in self.variants for run in variant.runs]

    @property
    def stopped(self) -> dict[str, Stopped]:
        """Runs that a rule ended before the budget and that no other sweep has resumed, by id."""
        return _ended_by_a_rule(self.runs, self.stops, self.plan)

    @cached_property
    def remarks(self) -> tuple[Remark, ...]:
        """Remarks to read before the numbers, the most serious first."""
        found = remarks_of(self.plan, self.runs, comparison=self.comparison, stops=self.stops, stopped=self.stopped)
        if self.comparison is None:
            return found
        short = frozenset(name for variant in self.variants for name in variant.short)
        on_ends = remarks_on_ends(self.plan, self.runs, comparison=self.comparison, short=short, due=self.due)
        return by_weight([*found, *on_ends])

    @property
    def notes_on_curves(self) -> tuple[str, ...]:
        """The notes of an import, and remarks on curves that may not be what they seem."""
        kinds = (*ON_CURVES, "health") if self.plan.imported else ON_CURVES
        said = [one.text for one in self.remarks if one.kind in kinds and one.weight == "warning"]
        return (*self.notes, *said)

    @property
    def due(self) -> float:
        """The compute at which levels would be read if all runs had finished: the end of the fitted window, or the
        budget; for another trainer, the last compute of any run.
        """
        if not self.plan.imported:
            return min(self.plan.budget_gpu_hours, self.plan.fit_to_gpu_hours)
        return max((last_compute(run.fit) for run in self.runs if run.fit is not None), default=0.0)

    @property
    def read_early(self) -> float | None:
        """The compute of the comparison, if it is less than planned."""
        at = self.comparison and self.comparison.footing.compute
        return at if at and at * NEARLY < self.due else None

    @property
    def at_compute(self) -> str:
        """Where levels are read: `at equal compute`, or `at 422 of 1,875 modelled GPU-hours` if that is early."""
        if self.read_early is None:
            return "at equal compute"
        return f"at {compute_text(self.read_early)} of {compute_text(self.due)} {self.plan.compute_name}"

    def heading(self, question: Question) -> str:
        """The heading of a question's numbers, with their compute if it is less than planned."""
        early = self.read_early if question.is_up_to_a_compute else None
        at = "" if early is None else f" at {compute_text(early)}"
        return f"{question.heading.format(reference=self.plan.reference)}{at}"

    @property
    def reasons(self) -> list[str]:
        """Reasons why runs have no fit, or are missing."""
        return [reason for variant in self.variants for reason in variant.reasons]

    @property
    def code_versions(self) -> list[str]:
        """Code versions of the runs; more than one may mean more than one trainer."""
        return sorted({version for run in self.runs for version in run.code_versions})

    @cached_property
    def own_settings(self) -> Mapping[str, str]:
        """The settings of the sweep's own reference as text, by dotted path; empty if no run of it can be read."""
        recipe = some_recipe(self.sweep)
        return {} if recipe is None else recipe_settings(recipe)

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions of the comparison."""
        return QUESTIONS

    @cached_property
    def grid(self) -> Grid | None:
        """The grid that the variants are cells of, with its main effects; None if no two axes are crossed."""
        return self.comparison and grid_of(self.plan.axes, self._comparable_fits, self.comparison)

    @property
    def _comparable_fits(self) -> dict[str, list[Fit]]:
        """The fits of the variants that are read at the compute of the comparison."""
        lines = self.comparison.on_one_footing if self.comparison else ()
        return {line.name: self.variant(line.name).fits for line in lines}

    @cached_property
    def interactions(self) -> tuple[Interaction, ...]:
        """Interactions of pairs of changes; empty without a variant `a+b`."""
        if self.comparison is None:
            return ()
        alone = {line.name: line.answers for line in self.comparison.variants}
        spreads, compute = self.comparison.spreads, self.comparison.footing.compute
        return tuple(interactions(self._comparable_fits, self.plan.reference, alone, spreads, compute))

    def variant(self, name: str) -> FittedVariant:
        """The variant of this name; AblationsError names the variants if there is none."""
        return _named(name, {variant.name: variant for variant in self.variants}, "variant", self.title)

    def run(self, name: str) -> FittedRun:
        """The run of this curve name, `loo-loss-s0`, or id; AblationsError names the runs if there is none."""
        by_id = {run.id: run for run in self.runs}
        return by_id.get(name) or _named(name, {run.name: run for run in self.runs}, "run", self.title)

    def changes(self, name: str) -> str:
        """The changes of a variant: `loss.type = dapo instead of cispo`; empty for the reference."""
        return changes_text(self.variant(name).overrides, self.own_settings)

    def compared(self, name: str) -> VariantResult | None:
        """The variant's result in the comparison; None if it or the reference has no fit."""
        lines = self.comparison.variants if self.comparison else ()
        return next((line for line in lines if line.name == name), None)

    def asymptote(self, variant: FittedVariant) -> AsymptoteEstimate | None:
        """The mean A of its seeds; in a comparison, with the run-to-run spread from all seeds of the sweep."""
        line = self.compared(variant.name)
        return line.asymptote if line else variant.asymptote

    def verdicts(self, name: str) -> str:
        """The verdicts on a variant: "resolved; level down; ceiling: cannot tell; more compute", or "no fit"."""
        line = self.compared(name)
        verdicts = dict.fromkeys(one.verdict_named for one in line.answers.values()) if line else {}
        said = "; ".join(filter(None, [self.fit_verdict(name), *verdicts]))
        return f"{said}; stopped" if any(stop.variant == name for stop in self.stopped.values()) else said

    def fit_verdict(self, name: str) -> str:
        """The verdict on a variant's fits, with its errors counted: "roughly known", "collapsed 1 of 3", "no fit"."""
        line, errors = self.compared(name), cells_on(once_per_run(self.remarks), name)
        verdict = line.fit_verdict if line else NO_FIT
        return "; ".join([*errors, *([] if verdict in ("collapsed", "fell") and errors else [verdict])])

    def fit_numbers(self, name: str) -> dict[str, float]:
        """The numbers of a variant in the comparison, its cost and its device time; no A without an upper end."""
        line = self.compared(name)
        shown = line.to_json() if line else {}
        wanted = ("A", "A_lo", "A_hi", "B", "C_mid", "R_0", "level", "level_compute", "num_seeds")
        keys = [*wanted, *(key for question in self.questions for key in question.keys[:3])]
        numbers = {key: float(shown[key]) for key in keys if shown.get(key) is not None}
        variant = self.variant(name)
        spent = variant.hours.numbers() if variant.hours else {}
        return numbers | {"cost_gpu_hours": variant.cost_gpu_hours} | spent

    def _line(self, variant: FittedVariant) -> dict[str, Any]:
        line = self.compared(variant.name)
        empty = dict.fromkeys([*PLAIN_KEYS, *(key for question in self.questions for key in question.keys)])
        known = {
            "curve": variant.name,
            "num_counting": variant.num_counting,
            "num_runs": len(variant.runs),
            "overrides": settings_json(variant.overrides),
            "cost": variant.cost_gpu_hours,
            "hours": variant.hours and variant.hours.to_json(),
            "reason": " ".join(variant.reasons),
        }
        return empty | (line.to_json() if line else {"fit_verdict": NO_FIT}) | known

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: a line per variant, null for a missing number, every fit, the reasons and the notes."""
        return {
            "sweep": self.plan.sweep,
            "together_with": list(self.beside),
            "reference": self.plan.reference,
            "run_to_run": self.comparison and self.comparison.run_to_run_json(),
            "level_compute": self.comparison and self.comparison.footing.compute,
            "leader": self.comparison and self.comparison.leader and self.comparison.leader.to_json(),
            "unlike": [one.to_json() for one in self.comparison.unlike] if self.comparison else [],
            "task": self.plan.fit_settings.task,
            "grid": self.grid and self.grid.to_json(),
            "interactions": [one.to_json() for one in self.interactions],
            "variants": [self._line(variant) for variant in self.variants],
            "runs": [
                {"variant": run.variant, "seed": run.seed, "id": run.id, "cost_gpu_hours": run.cost_gpu_hours}
                | {"counts": run.fit is not None and run.name not in variant.short}
                | {"warnings": list(warnings_of_run(run, self.plan.hours_name))}
                | run.to_json()
                for variant in self.variants
                for run in variant.runs
            ],
            "reasons": [*(one.text for one in self.remarks if one.weight == "error"), *self.reasons],
            "notes": list(self.notes),
            "remarks": [one.to_json() for one in self.remarks],
            "stops": [asdict(stop) for stop in self.stops.values()],
            "code_versions": self.code_versions,
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row per variant for a CSV file or data frame: its changes, then the numbers and verdicts of `to_json`.

        A number that the comparison does not support is None. The window of the fit has two columns.
        """
        return [_row(line) for line in self.to_json()["variants"]]

    def to_frame(self) -> "DataFrame":
        """A pandas DataFrame with a row per variant and the columns of `comparison.csv`; a missing number is NaN."""
        from pandas import DataFrame

        rows = self.rows()
        empty = [name for name in rows[0] if all(row[name] is None for row in rows)]
        return DataFrame(rows).astype(dict.fromkeys(empty, float))

    def summary(self, questions: Sequence[Question] = ()) -> Summary:
        """Level, A and verdicts of each variant, its difference for each of these questions, and a closing line."""
        reference = self.plan.reference
        groups: dict[str, list[str]] = {}
        rows = []
        for variant in self.variants:
            line, asymptote = self.compared(variant.name), self.asymptote(variant)
            if variant.name != reference:
                verdict = line.answers[self.questions[0].name].verdict_said if line else NO_FIT
                groups.setdefault(verdict, []).append(variant.name)
            rows.append(
                (
                    variant.name,
                    f"{variant.num_counting} of {len(variant.runs)}",
                    "" if line is None or line.level is None else f"{line.level:.3f}{line.level_at}",
                    asymptote.cell() if asymptote else NO_FIT,
                    *(
                        "" if line is None or variant.name == reference else line.answers[q.name].cell
                        for q in questions
                    ),
                    self.verdicts(variant.name),
                )
            )
        no_fit = "" if self.comparison else f"no comparison, since {reference} has no fit; "
        return Summary(
            title=f"{self.title}{at_scale(self.plan.scale)}, against {reference}",
            headings=(
                *("variant", "seeds", "level", "A"),
                *(self.heading(one) for one in questions),
                "verdicts",
            ),
            rows=rows,
            closing=f"A{self.at_compute[1:]}: {no_fit}{grouped(groups) or 'no other variant'}",
        )

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        """The table with the answers to every question, for Jupyter and other notebooks."""
        return self.summary(self.questions).html()


def _named(name: str, by_name: Mapping[str, _Entry], kind: str, where: str) -> _Entry:
    """The entry of this name; AblationsError with the nearest one and all names if there is none."""
    if name not in by_name:
        raise AblationsError(f"unknown {kind} {name!r} in {where}; {did_you_mean(name, by_name, f'{kind}s')}")
    return by_name[name]


def _row(line: Mapping[str, Any]) -> dict[str, Any]:
    first, last = line["window"] or (None, None)
    plain = {key: value for key, value in line.items() if key not in ("curve", "overrides", "window", "hours")}
    head = {"variant": line["curve"], "changes": changes_text(line["overrides"])}
    return head | plain | {"window_from": first, "window_to": last}


def sweeps(home: Path | str | None = None) -> list[str]:
    """Names of the sweeps of a home folder, the most recent first: `["loo", "turns"]`.

    `home` is the home folder, else ABLATIONS_HOME, else ./ablation-runs. AblationsError if there is no such folder.
    """
    folder = find_home(None if home is None else Path(home))
    if not folder.path.is_dir():
        raise AblationsError(f"home folder {folder.path}: no such folder; name one in which `platform sweep` has run")
    return folder.sweep_names()


def open_sweep(
    sweep: str | None = None, home: Path | str | None = None, *, task: str | None = None, alone: bool = False
) -> Results:
    """Curves, fits and comparison of a sweep in its current state; by default the last started sweep.

    `home` is the home folder, else ABLATIONS_HOME, else ./ablation-runs. `task` selects the task to fit, else the only
    task, or all tasks of a mix. `alone` estimates the run-to-run spread from this sweep only.
    """
    folder = find_home(None if home is None else Path(home))
    return read_results(with_task(read_sweep(folder, folder.find_sweep(sweep)), task), alone=alone)


def read_results(sweep: StartedSweep, *, alone: bool = False, done: Done | None = None) -> Results:
    """The runs of a sweep in their current state, fitted in the plan's window and compared.

    `alone` estimates the run-to-run spread from this sweep only. `done` receives the number of fitted runs and the
    number to fit.
    """
    runs = iter(fitted_runs(sweep, sweep.plan.fit_settings, done))
    variants = (
        FittedVariant(name=variant.name, overrides=variant.overrides, runs=tuple(islice(runs, len(variant.runs))))
        for variant in sweep.plan.variants
    )
    return compared(sweep, tuple(variants), alone=alone)


def compared(sweep: StartedSweep, variants: tuple[FittedVariant, ...], *, alone: bool = False) -> Results:
    """Results of a sweep from its fitted variants, with their comparison and the sweep's stops."""
    stops = read_stops(sweep)
    stopped = _ended_by_a_rule([run for one in variants for run in one.runs], stops, sweep.plan)
    marked = [
        replace(one, runs=tuple(replace(run, state=State.STOPPED) if run.id in stopped else run for run in one.runs))
        for one in variants
    ]
    variants, footing = on_one_footing(marked, sweep.plan.reference)
    return Results(
        plan=sweep.plan,
        sweep=sweep,
        variants=variants,
        comparison=compare_variants(sweep, variants, footing, alone=alone),
        stops=stops,
        notes=sweep.plan.notes,
    )


def _ended_by_a_rule(runs: Sequence[FittedRun], stops: Mapping[str, Stopped], plan: Plan) -> dict[str, Stopped]:
    """The runs that a rule ended before the budget, by id; their own folders say that they were cancelled."""
    short = [run.id for run in runs if run.cost_gpu_hours < plan.budget_gpu_hours]
    return {run_id: stop for run_id in short if (stop := stops.get(run_id)) is not None and stop.ends_run}
