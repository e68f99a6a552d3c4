"""Shows the runs and costs of a sweep before anything is trained."""

from dataclasses import replace

from ablations.cli.output import console, print_json
from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep, plans_of
from ablations.home.state import read_state
from ablations.pools.placed import refuse_idle_devices, threads_of_node
from ablations.report.documents.blocks import Column, Table, Text, cells
from ablations.report.writers.terminal import print_document
from ablations.running.reconcile import num_missing
from ablations.search.loop import resume
from ablations.search.tables import space_table, to_come_text
from ablations.slurm import commands
from ablations.slurm.cost import SubmissionPlan
from ablations.slurm.limits import check_on_cluster
from ablations.status.progress import run_rows
from ablations.status.rows import left_to_train
from ablations.status.time_left import seconds_for, time_left_text
from ablations.study.expand import Study
from ablations.study.pairs import balance_text, pair_names
from ablations.terminal.short_names import legend
from ablations.text import MINUTE_S, at_scale, changes_text, counted, four_digits, settings_json
from scalerl.recipe import ResolvedRecipe


def show_plan(study: Study, sweep: StartedSweep, as_json: bool) -> None:
    """Print the runs of a sweep with their current states."""
    search = None
    if study.space is not None:
        resumed = resume(study, sweep)
        sweep, search = resumed.sweep, resumed.record
    plan, rows = sweep.plan, run_rows(sweep)
    num_to_come = search.num_to_come * len(study.sweep.seeds) if search else 0
    left = left_to_train(plan, rows) + num_to_come * plan.budget_gpu_hours
    variants = {variant.name: variant for variant in plan.variants}
    if as_json:
        runs = [
            {
                "variant": row.variant,
                "seed": row.seed,
                "id": row.id,
                "overrides": settings_json(variants[row.variant].overrides),
                "state": row.state.state,
                "compute_gpu_hours": row.state.compute_gpu_hours,
            }
            for row in rows
        ]
        print_json(
            {
                "sweep": plan.sweep,
                "budget_gpu_hours": plan.budget_gpu_hours,
                "left_gpu_hours": left,
                "compute_name": plan.compute_name,
                "stop": plan.stop,
                "search": search and search.to_json(),
                "runs": runs,
            }
        )
        return

    names = (Column(heading=name) for name in ("variant", "seed", "run", "state"))
    columns = (*names, Column(heading="changes", kind="prose"))
    shown = [
        cells(row.variant, str(row.seed), row.id, row.state.state, variants[row.variant].changes or "the reference")
        for row in rows
    ]
    out = console()
    print_document([Table(name="runs", columns=columns, rows=tuple(shown), notes=tuple(legend(plan.axes)))], out)
    if search is not None:
        to_come = to_come_text(search, len(study.sweep.seeds), plan.compute_name)
        print_document([space_table(search), Text(text=to_come)], out)
    rules = f"; {stop_text(plan)}" if plan.stop is not None else ""
    out.say(
        f"{counted(len(rows), 'run')}{at_scale(study.scale)}, {plan.budget_gpu_hours:g} {plan.compute_name} each"
        f"{rules}; {four_digits(left)} left to train{spent_here_text(sweep, left)}"
    )
    if study.pairs:
        out.say(f"{balance_text(study.pairs, study.possible_pairs)}: {pair_names(study.pairs)}")
    if search is None:  # a search says itself what its trials cost
        out.say(seeds_text(plan, len(study.sweep.seeds)))


def made_text(study: Study) -> str:
    """`bench-size4: model.heads = 4, model.hidden = 128, ...; 340,608 parameters`, for a scale derived from another."""
    from scalerl.memory.shape import shape_of

    recipe = study.reference.recipe
    assert isinstance(recipe, ResolvedRecipe), "a program has no scale"
    return f"{study.scale}: {changes_text(study.made)}; {shape_of(recipe.model).parameters:,} parameters"


def spent_here_text(sweep: StartedSweep, compute_gpu_hours: float) -> str:
    """`, about 12 min one after the other`, at the speed of earlier runs of the scale here; empty if none has
    trained."""
    plans = [sweep.plan, *plans_of(sweep.home, sweep.plan.scale)]
    runs = dict.fromkeys(run.id for plan in plans for run in plan.runs)
    seconds = seconds_for(compute_gpu_hours, [read_state(sweep.home.run(run), 0.0) for run in runs])
    if not seconds:
        return ""
    about = "less than 1 min" if seconds < MINUTE_S else f"about {time_left_text(seconds)}"
    return f", {about} one after the other"


def seeds_text(plan: Plan, num_seeds: int) -> str:
    """The cost of the seeds: `3 seeds per variant; one would cost 18900 modelled GPU-hours and be provisional`."""
    of_one = len(plan.runs) / num_seeds * plan.budget_gpu_hours
    if num_seeds > 1:
        return (
            f"{num_seeds} seeds per variant; one would cost {four_digits(of_one)} {plan.compute_name} and be "
            "provisional"
        )
    return (
        f"one seed per variant: verdicts stay provisional unless other sweeps of the scale have repeated runs; "
        f"three seeds cost {four_digits(3 * of_one)} {plan.compute_name}"
    )


def stop_text(plan: Plan) -> str:
    """The stop rules as text: `stops a run whose gain stays below 0.01 (P > 0.9); flags a collapse`."""
    assert plan.stop is not None
    stop, rules = plan.stop, []
    if (least := stop["gain_below"]) is not None:
        rules.append(f"whose expected gain up to the budget stays below {least} (P > {stop['probability']})")
    if stop["dominated"] is not None:
        rules.append(f"that would end below {plan.reference} (P > {stop['dominated']})")
    collapse = f"that collapses or truncates over {stop['truncation_above']:.0%} of its answers"
    if stop["collapse"] == "stop":
        return f"stops a run {' or '.join([*rules, collapse])}"
    stops = f"stops a run {' or '.join(rules)}, " if rules else ""
    return f"{stops}flags a run {collapse}"


def show_cost(study: Study, sweep: StartedSweep, jobs: int | None) -> None:
    """Print the maximum cost of the jobs for missing runs and future trials."""
    num_to_come = 0
    if study.space is not None:
        resumed = resume(study, sweep)
        sweep, num_to_come = resumed.sweep, resumed.record.num_to_come * len(study.sweep.seeds)
    console().say(replace(checked_submission(study, jobs), num_jobs=num_missing(sweep) + num_to_come).text())


def checked_submission(study: Study, jobs: int | None) -> SubmissionPlan:
    """A submission without jobs yet; raises AblationsError if the cluster would not run the jobs."""
    threads = threads_of_node(study.reference.recipe, study.resources)
    partition = check_on_cluster(study.asked, threads=threads)
    refuse_idle_devices(study.asked, study.reference.recipe)
    return SubmissionPlan(
        num_jobs=0,
        resources=study.resources if jobs is None else study.resources.model_copy(update={"at_once": jobs}),
        threads=threads,
        partition=partition,
        max_array_size=int(commands.settings()["MaxArraySize"]),
    )
