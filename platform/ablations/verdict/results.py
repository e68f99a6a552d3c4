"""What a sweep has found so far: run logs made into curves, fits and the comparison with the reference.

A run that cannot be fitted has a reason instead of a fit, so that one bad run hides no other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ablations.errors import AblationsError
from ablations.fit.asymptote import AsymptoteEstimate
from ablations.fit.curve import Curve
from ablations.fit.curve_file import read_curves
from ablations.fit.cutoff import CutoffRow
from ablations.fit.doubt import cutoff_table
from ablations.fit.fitting import fit_with
from ablations.fit.options import FitSettings
from ablations.fit.result import Fit
from ablations.fit.words import in_words
from ablations.home.allocation import Allocation
from ablations.home.home import find_home
from ablations.home.plan import Plan, PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.home.stops import Stopped
from ablations.verdict.compare import Comparison, VariantResult, compare
from ablations.verdict.differences import mean_ceiling
from ablations.verdict.hours import Hours
from ablations.verdict.task_curves import curve_of, with_task
from scalerl.run.log_fault import log_fault
from scalerl.run.metrics import read_rows
from scalerl.run.run_folder import RunFolder

FIT_FIELDS = (
    "A",
    "A_lo",
    "A_hi",
    "B",
    "C_mid",
    "R_0",
    "level",
    "delta_level",
    "delta_level_lo",
    "delta_level_hi",
    "delta_A",
    "delta_A_lo",
    "delta_A_hi",
    "compute_ratio",
    "num_seeds",
)

FIT_KEYS = ("curve", "A", "A_lo", "A_hi", "B", "C_mid", "R_0", "verdict", "points", "window")
"""What every line of `platform fit --json` has, null where there is no number."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedCurve:
    """A curve and its fit, or the reason why it has no fit.

    FittedCurve(name="loo-loss-s0", curve=curve, fit=None, reason="... a fit needs at least 6 beyond step 0")
    """

    name: str
    curve: Curve | None
    fit: Fit | None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: the fit, or the curve's name and the reason."""
        if self.fit is None:
            return dict.fromkeys(FIT_KEYS) | {"curve": self.name, "verdict": "no fit", "reason": self.reason}
        return self.fit.to_json() | {"reason": ""}

    def explained(self) -> dict[str, Any]:
        """`to_json()` with the fit in words and A against the cut-off; no words and no cut-offs without a fit."""
        if self.fit is None:
            return self.to_json() | {"words": "", "cutoffs": []}
        return self.to_json() | {"words": in_words(self.fit), "cutoffs": [*map(_shown_row, cutoff_table(self.fit))]}


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRun(FittedCurve):
    """The same for one run of a sweep."""

    variant: str
    seed: int
    id: str
    cost_gpu_hours: float
    """Compute spent so far."""
    code_versions: tuple[str, ...]
    """Of all its attempts, in order."""
    warnings: tuple[str, ...] = ()
    """What its trainer last said of its health and its files."""
    hours: Hours | None = None
    """Where its hours went; None if its log does not say."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedVariant:
    """The runs of one variant, one per seed."""

    name: str
    overrides: dict[str, Any]
    runs: tuple[FittedRun, ...]

    @property
    def fits(self) -> list[Fit]:
        """The fits of those runs that have one."""
        return [run.fit for run in self.runs if run.fit is not None]

    @property
    def cost_gpu_hours(self) -> float:
        """Compute spent by all seeds together."""
        return sum(run.cost_gpu_hours for run in self.runs)

    @property
    def hours(self) -> Hours | None:
        """Where the hours of all seeds went, as far as their logs say."""
        return Hours.of_runs([run.hours for run in self.runs if run.hours is not None])

    @property
    def reasons(self) -> list[str]:
        """Why runs have no fit, one sentence per run."""
        return [f"{self.name}, seed {run.seed}: {run.reason}" for run in self.runs if run.reason]

    @property
    def asymptote(self) -> AsymptoteEstimate | None:
        """The mean A of all seeds as it may be shown; None without a fit. It rises only if every seed does."""
        if not self.fits:
            return None
        ceiling = mean_ceiling(self.fits)
        assert ceiling.lo is not None  # every fit bounds A from below
        rises = all(fit.rises for fit in self.fits)
        return AsymptoteEstimate(A=ceiling.estimate, lo=ceiling.lo, hi=ceiling.hi, rises=rises)


@dataclass(frozen=True, kw_only=True, eq=False)
class Results:
    """All variants of a sweep, in the plan's order, and the comparison of those that have a fit."""

    sweep: StartedSweep
    variants: tuple[FittedVariant, ...]
    comparison: Comparison | None
    """None while the reference has no fit."""
    stops: Mapping[str, Stopped] = field(default_factory=dict)
    """Runs that a rule of the sweep has stopped or flagged, by id."""
    allocation: Allocation | None = None
    """How a total is shared out."""
    notes: tuple[str, ...] = ()
    """What could not be read of runs that other trainers have left."""

    @property
    def plan(self) -> Plan:
        """The sweep's plan."""
        return self.sweep.plan

    @property
    def runs(self) -> list[FittedRun]:
        """The runs of all variants."""
        return [run for variant in self.variants for run in variant.runs]

    @property
    def stopped(self) -> dict[str, Stopped]:
        """Runs that a rule has ended before the budget, and that no other sweep has trained on since, by id."""
        short = {run.id for run in self.runs if run.cost_gpu_hours < self.plan.budget_gpu_hours}
        return {run_id: stop for run_id, stop in self.stops.items() if stop.ends_run and run_id in short}

    @property
    def reasons(self) -> list[str]:
        """Why runs have no fit, or are not there."""
        return [*self.notes, *(reason for variant in self.variants for reason in variant.reasons)]

    @property
    def code_versions(self) -> list[str]:
        """Versions of the code that the runs were trained with; more than one may mean more than one trainer."""
        return sorted({version for run in self.runs for version in run.code_versions})

    def variant(self, name: str) -> FittedVariant:
        """The variant of this name."""
        return next(variant for variant in self.variants if variant.name == name)

    def compared(self, name: str) -> VariantResult | None:
        """The variant's line of the comparison; None when it or the reference has no fit."""
        lines = self.comparison.variants if self.comparison else ()
        return next((line for line in lines if line.curve == name), None)

    def verdict(self, name: str) -> str:
        """What is known of a variant in few words: "weak; level down; ceiling down; cannot tell", or "no fit"."""
        line = self.compared(name)
        said = f"{line.verdict}; {line.level_difference}; {line.difference}; {line.efficiency}" if line else "no fit"
        return f"{said}; stopped" if any(stop.variant == name for stop in self.stopped.values()) else said

    def fit_numbers(self, name: str) -> dict[str, float]:
        """The numbers of a variant that the comparison has, its cost and where that went; no A without an upper end."""
        line = self.compared(name)
        shown = shown_numbers(line) if line else {}
        numbers = {field: float(shown[field]) for field in FIT_FIELDS if shown.get(field) is not None}
        variant = self.variant(name)
        spent = variant.hours.numbers() if variant.hours else {}
        return numbers | {"cost_gpu_hours": variant.cost_gpu_hours} | spent

    def _line(self, variant: FittedVariant) -> dict[str, Any]:
        line = self.compared(variant.name)
        empty = dict.fromkeys(VariantResult.__dataclass_fields__)
        known = {
            "curve": variant.name,
            "cost": variant.cost_gpu_hours,
            "hours": variant.hours and variant.hours.to_json(),
            "reason": " ".join(variant.reasons),
        }
        return empty | (line.to_json() | shown_numbers(line) if line else {"verdict": "no fit"}) | known

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: a line per variant, null for a missing number, every fit, and the reasons."""
        return {
            "sweep": self.plan.sweep,
            "reference": self.plan.reference,
            "run_to_run": self.comparison and self.comparison.spreads.to_json(),
            "task": self.plan.fit_settings.task,
            "variants": [self._line(variant) for variant in self.variants],
            "runs": [
                {"variant": run.variant, "seed": run.seed, "id": run.id, "cost_gpu_hours": run.cost_gpu_hours}
                | run.to_json()
                for run in self.runs
            ],
            "reasons": self.reasons,
            "stops": [asdict(stop) for stop in self.stops.values()],
            "code_versions": self.code_versions,
        }


def shown_numbers(line: VariantResult) -> dict[str, Any]:
    """The line of a comparison as plain data, None where a number means nothing by itself.

    These are A, its upper end, B and C_mid of a variant whose A has no upper end or that does not rise, and A under
    eq. 1, its upper end and C_mid where that has none.
    """
    numbers = asdict(line) | {"window": list(line.window)}
    if not line.asymptote.is_bounded:
        numbers |= dict.fromkeys(("A", "A_hi", "B", "C_mid"))
    if not line.asymptote_under_eq1.is_bounded:
        numbers |= dict.fromkeys(("A_eq1", "A_eq1_hi", "C_mid"))
    return numbers


def _shown_row(row: CutoffRow) -> dict[str, Any]:
    return asdict(row) | ({} if row.asymptote.is_bounded else dict.fromkeys(("A", "A_hi")))


def open_sweep(sweep: str | None = None, home: Path | str | None = None, *, task: str | None = None) -> Results:
    """Curves, fits and comparison of a sweep as it stands; by default the one last started.

    `home` is the home folder, else ABLATIONS_HOME, else ./ablation-runs. `task` is the task whose curves are fitted,
    else the only one, or all of a mix.
    """
    folder = find_home(None if home is None else Path(home))
    return read_results(with_task(read_sweep(folder, folder.find_sweep(sweep)), task))


def read_results(sweep: StartedSweep) -> Results:
    """The runs of a sweep as they are, fitted in the plan's window and compared."""
    return compared(sweep, tuple(_read_variant(sweep, variant) for variant in sweep.plan.variants))


def compared(sweep: StartedSweep, variants: tuple[FittedVariant, ...]) -> Results:
    """Fitted variants of a sweep beside each other, with what the sweep decided of them."""
    return Results(
        sweep=sweep,
        variants=variants,
        comparison=compare_variants(variants, sweep.plan.reference),
        stops=sweep.read_stops(),
        allocation=sweep.read_allocation(),
    )


def fit_file(path: Path, settings: FitSettings) -> list[FittedCurve]:
    """A fit of every curve of a CSV file; AblationsError when the file cannot be used."""
    fitted = []
    for curve in read_curves(path):
        fit, reason = try_fit(curve, settings)
        fitted.append(FittedCurve(name=curve.name, curve=curve, fit=fit, reason=reason))
    return fitted


def fit_sweep(sweep: StartedSweep, **changes: Any) -> list[FittedRun]:
    """A fit of every run of a sweep, with the plan's settings or those of `FitSettings` that are given."""
    plan = with_task(sweep, changes.get("task")).plan
    settings = replace(plan.fit_settings, **changes)
    return [
        _read_run(sweep.run(run.id), variant.name, run, settings) for variant in plan.variants for run in variant.runs
    ]


def _read_variant(sweep: StartedSweep, variant: PlannedVariant) -> FittedVariant:
    settings = sweep.plan.fit_settings
    runs = tuple(_read_run(sweep.run(run.id), variant.name, run, settings) for run in variant.runs)
    return FittedVariant(name=variant.name, overrides=variant.overrides, runs=runs)


def _read_run(folder: RunFolder, variant: str, run: PlannedRun, settings: FitSettings) -> FittedRun:
    name = f"{variant}-s{run.seed}"
    rows: list[dict[str, Any]] = []
    curve, fit = None, None
    try:
        for row in read_rows(folder.metrics):
            rows.append(row)
        if fault := log_fault(folder):
            raise ValueError(f"{fault}; restore it, or delete {folder.path} and start the sweep again")
        curve = curve_of(rows, name, settings.task)
        if curve is None:
            reason = _why_empty(folder)
        else:
            fit, reason = try_fit(curve, replace(settings, fit_to=_reading_at(curve, settings.fit_to)))
    except ValueError as error:
        reason = str(error)
    status = folder.read_status()
    return FittedRun(
        name=name,
        curve=curve,
        fit=fit,
        reason=reason,
        variant=variant,
        seed=run.seed,
        id=run.id,
        # The row of an evaluation may come after those of later steps.
        cost_gpu_hours=max((row["compute_gpu_hours"] for row in rows), default=0.0),
        code_versions=status.code_versions,
        warnings=status.warnings,
        hours=Hours.of_rows(rows),
    )


def _reading_at(curve: Curve, compute: float) -> float:
    """Compute of the reading that is due at `compute`: it is taken at the first step that reaches its point."""
    due = curve.compute[curve.compute >= compute]
    return float(due[0]) if due.size else compute


def try_fit(curve: Curve, settings: FitSettings) -> tuple[Fit | None, str]:
    """The fit, or why the curve has none."""
    try:
        return fit_with(curve, settings), ""
    except AblationsError as error:
        return None, str(error)


def _why_empty(folder: RunFolder) -> str:
    status = folder.read_status()
    if not status.has_started:
        return f"not started ({status.message})" if status.message else "not started"
    because = f" ({status.message})" if status.message else ""
    return f"{status.state}{because}, without an evaluation so far"


def compare_variants(variants: Sequence[FittedVariant], reference: str) -> Comparison | None:
    """Those that have a fit against the reference; None while the reference has none."""
    fitted = {variant.name: variant.fits for variant in variants if variant.fits}
    if reference not in fitted:
        return None
    return compare(fitted, {variant.name: variant.cost_gpu_hours for variant in variants}, reference)
