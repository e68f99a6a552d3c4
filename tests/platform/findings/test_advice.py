"""What would tell where a comparison cannot, by hand."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from fixtures_answers import with_line
from fixtures_home import TRUTH, changed, collapse, make_home, planned_run, set_scores, write_run

from ablations.findings.advice import advice_for, design_hint, next_steps
from ablations.findings.results import Results, read_results
from ablations.findings.several_sweeps import together
from ablations.home.home import Home
from ablations.home.plan import PlannedRun, PlannedVariant


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    return read_results(make_home(tmp_path_factory.mktemp("home"), seeds=(0, 1)))


def told_but(results: Results, **changes) -> Results:
    """The reference, and one variant of which everything is told but what is changed."""
    reference, other, _ = results.comparison.variants
    told = {"level": "level down", "ceiling": "ceiling down", "compute": "less compute"}
    answers = {name: {"verdict": verdict} | changes.get(name, {}) for name, verdict in told.items()}
    assert results.comparison is not None
    pair = replace(
        results, variants=results.variants[:2], comparison=replace(results.comparison, variants=(reference, other))
    )
    return with_line(pair, other.name, answers=answers)


def again(folder: Home | Path, file: str = "sweeps/loo.yaml", more: str = "") -> str:
    """The command for this home folder, which is not the one that it finds by itself."""
    home = folder if isinstance(folder, Home) else Home(folder)
    return f"`platform sweep {file}{more} --home {home.path}`"


def with_seeds(home: Home | Path, *seeds: int) -> str:
    return f"`seeds: {[*seeds]}` in the sweep file, then {again(home)}."


def test_where_every_verdict_tells_only_a_forecast_is_left(results):
    said = [f"`platform forecast loo --home {results.sweep.home.path}` looks beyond this budget."]
    assert next_steps(told_but(results)) == said
    assert next_steps(told_but(results, level={"verdict": "no difference seen"})) == said
    assert design_hint(told_but(results)) == ""


def test_seeds_shrink_an_interval_to_the_widest_that_tells(results):
    # Half-widths .036 and .025: two seeds times (.036 / .025)^2 are 4.1, so five. Six more runs of 2,000 GPU-hours.
    changed = told_but(results, level={"verdict": "cannot tell", "lo": -0.03, "hi": 0.042})
    name = changed.comparison.variants[1].name
    assert next_steps(changed) == [
        f"5 seeds instead of 2 of {name} and scalerl would settle the level, for 12,000 more GPU-hours: "
        f"{with_seeds(results.sweep.home, 0, 1, 2, 3, 4)}"
    ]
    assert design_hint(changed) == (
        f"`platform design sweeps/loo.yaml --home {results.sweep.home.path}` shows what each design could detect."
    )


def test_an_interval_without_an_end_needs_compute(results):
    changed = told_but(
        results,
        ceiling={"verdict": "cannot tell", "hi": None},
        # A factor of 1.69; 1.5 is the widest: 2 x (ln 1.69 / ln 1.5)^2 = 3.3.
        compute={"verdict": "cannot tell", "lo": 0.8, "hi": 1.35},
    )
    name = changed.comparison.variants[1].name
    assert next_steps(changed) == [
        f"4 seeds instead of 2 of {name} and scalerl would settle the compute, for 8,000 more GPU-hours: "
        f"{with_seeds(results.sweep.home, 0, 1, 2, 3)}",
        f"At least twice the budget of {name} and scalerl would settle the ceiling, for 8,000 more GPU-hours: "
        f"{again(results.sweep.home, more=' --budget 4000h')}.",
    ]


def test_the_longer_budget_takes_the_place_of_the_one_given(results):
    changed = told_but(results, ceiling={"verdict": "cannot tell", "hi": None})
    for given in ("--budget 1x --jobs 2", "--budget=1x --jobs 2", "--jobs 2"):
        command = f"platform sweep loo.yaml {given}"
        plan = replace(changed.plan, command=command)
        (said,) = next_steps(replace(changed, sweep=replace(changed.sweep, plan=plan), plan=plan))
        assert said.endswith(f": {again(results.sweep.home, 'loo.yaml', ' --jobs 2 --budget 4000h')}.")


def test_more_than_ten_seeds_are_not_proposed(results):
    changed = told_but(results, ceiling={"verdict": "cannot tell", "lo": -0.1, "hi": 0.1})  # 12.5
    (said,) = next_steps(changed)
    assert said.startswith("At least twice the budget of ")


def test_imported_runs_have_no_sweep_file_to_name(results):
    changed = told_but(results, level={"verdict": "cannot tell", "lo": -0.03, "hi": 0.042})
    name = changed.comparison.variants[1].name
    assert next_steps(replace(changed, plan=replace(changed.plan, imported=True))) == [
        f"5 seeds instead of 2 of {name} and scalerl would settle the level, for 12,000 more GPU-hours."
    ]


def test_a_collapsed_seed_needs_company_or_a_mend_at_the_price_of_its_variant(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    collapse(sweep, planned_run("loo-loss", 1).id, after=1200.0, to=0.3)
    found = read_results(sweep)
    # Three more runs of 2,000 GPU-hours, and three of each of the three variants.
    assert next_steps(found)[0] == (
        "1 of 3 seeds of loo-loss collapsed: fix the collapse, or train more seeds, 6,000 more GPU-hours for 3 of it, "
        f"18,000 for 3 of every variant: {with_seeds(tmp_path, 0, 1, 2, 3, 4, 5)}"
    )
    assert "twice the budget" not in " ".join(next_steps(found))
    assert advice_for(found, "loo-loss").startswith("level: 1 of 3 seeds collapsed")
    assert advice_for(found, "loo-curriculum") == ""


def test_a_spoiled_seed_of_the_reference_is_why_nothing_is_decided_against_it(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    collapse(sweep, planned_run("scalerl", 0).id, after=1200.0, to=0.3)
    found = read_results(sweep)
    said = "1 of 3 seeds of scalerl collapsed: fix the collapse, or train more seeds, 6,000 more GPU-hours for 3 of it"
    assert said in " ".join(next_steps(found))
    assert "level: 1 of 3 seeds of scalerl collapsed" in advice_for(found, "loo-loss")


def test_if_every_seed_of_a_variant_fell_nothing_is_to_be_spent(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1), fraction=0.25)
    for seed, last in ((0, 0.25), (1, 0.05)):
        scores = [0.31 - (0.31 - last) * place / 10 for place in range(11)]
        set_scores(sweep, planned_run("loo-loss", seed).id, scores)
    found = read_results(changed(sweep, budget_gpu_hours=500.0))
    assert next_steps(found)[0] == "2 of 2 seeds of loo-loss fell: fix the fall first."
    assert "loo-loss" not in " ".join(next_steps(found)[1:])


def test_a_curve_that_does_not_rise_has_no_ceiling_that_money_could_find(results):
    flat = {"ceiling": {"verdict": "cannot tell", "lo": None, "hi": None}}
    changed_line = told_but(results, **flat, compute={"verdict": "cannot tell", "lo": None, "hi": None})
    name = changed_line.comparison.variants[1].name
    changed_line = with_line(changed_line, name, fit_verdict="no rise")
    assert next_steps(changed_line) == [
        f"{name} does not rise, so neither seeds nor budget will decide the ceiling and the compute."
    ]
    assert advice_for(changed_line, name) == f"ceiling: {name} does not rise; compute: {name} does not rise"


def test_seeds_that_differ_by_half_are_to_be_looked_at_and_no_budget_is_proposed(results):
    # Two seeds times (.25 / .025)^2 are 200.
    far = told_but(results, level={"verdict": "cannot tell", "lo": -0.3, "hi": 0.2})
    name = far.comparison.variants[1].name
    assert next_steps(far) == [
        f"The seeds of {name} lie too far apart: its level would take about 200. Look for what sets them apart."
    ]


def test_what_decides_is_priced_for_the_variants_in_question_and_the_reference(results):
    # Five seeds instead of two of two variants of 2,000 GPU-hours a run; the study has three variants.
    assert results.comparison is not None
    answers = {"level": {"verdict": "cannot tell", "lo": -0.03, "hi": 0.042}}
    found = with_line(results, "loo-loss", answers=answers)
    decided = {name: {"verdict": "no difference seen"} for name in ("level", "ceiling", "compute")}
    found = with_line(found, "loo-curriculum", answers=decided)
    found = with_line(found, "loo-loss", answers={name: decided[name] for name in ("ceiling", "compute")})
    assert next_steps(found) == [
        "5 seeds instead of 2 of loo-loss and scalerl would settle the level, for 12,000 more GPU-hours "
        f"(18,000 with all variants): {with_seeds(results.sweep.home, 0, 1, 2, 3, 4)}"
    ]


def test_seeds_that_the_reference_has_are_not_priced_again(results):
    # Five seeds of each: three more of loo-loss and none of the reference, at 2,000 GPU-hours a run.
    found = told_but(results, level={"verdict": "cannot tell", "lo": -0.03, "hi": 0.042})
    found = with_line(found, found.plan.reference, num_seeds=5)
    assert next_steps(found) == [
        "5 seeds instead of 2 of loo-loss and scalerl would settle the level, for 6,000 more GPU-hours: "
        f"{with_seeds(results.sweep.home, 0, 1, 2, 3, 4)}"
    ]


def test_seeds_that_the_file_has_are_not_proposed_again(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    for variant in sweep.plan.variants:
        for run in variant.runs[1:]:
            shutil.rmtree(sweep.run(run.id).path)
            write_run(sweep.home, run.id, TRUTH[variant.name], seed=run.seed, fraction=0.05, state="failed")
    found = read_results(sweep)
    assert next_steps(found) == [f"{again(tmp_path)} continues 6 runs, which failed."]


def test_one_seed_needs_two_more_at_the_price_of_every_variant(tmp_path):
    found = read_results(make_home(tmp_path))  # two more runs of 2,000 GPU-hours for each of three variants
    assert next_steps(found) == [
        "One seed cannot separate variants; three can, for 12,000 more GPU-hours: " + with_seeds(tmp_path, 0, 1, 2)
    ]


def test_seeds_that_cannot_be_compared_are_counted_by_their_reason(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    # A reading every 50 of 2,000 GPU-hours, so four up to 200; a fit needs six.
    for name in TRUTH:
        left_at(sweep, name, 0, state="stopped", fraction=0.1)
        left_at(sweep, name, 1, state="stopped", fraction=0.1)
    sweep.run(planned_run("loo-loss", 1).id).metrics.write_text("")
    said = next_steps(read_results(sweep))
    assert said == [
        "One seed cannot separate variants; variants have up to 3 seeds, but no variant has two that can be compared: "
        "of 9 runs, 5 had fewer than 6 evaluations beyond step 0, 1 had no evaluation that can be read."
    ]
    for name in TRUTH:  # 1,050 to 1,200 are four readings beyond 1,000
        left_at(sweep, name, 1, state="stopped", fraction=0.6)
    plan = replace(sweep.plan, fit_from_gpu_hours=1000.0)
    (said,) = next_steps(read_results(replace(sweep, plan=plan)))
    assert said.endswith(
        "of 9 runs, 3 had fewer than 6 evaluations beyond step 0, "
        "3 had fewer than 6 evaluations in the fitted range (1,000 to 2,000 modelled GPU-hours)."
    )


def test_a_failed_run_is_named_with_the_command_that_continues_it_and_others_are_waited_for(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    for name, state in (("loo-loss", "failed"), ("loo-curriculum", "running"), ("scalerl", "cancelled")):
        run = planned_run(name, 2)
        shutil.rmtree(sweep.run(run.id).path)
        write_run(sweep.home, run.id, TRUTH[name], seed=2, fraction=0.3, state=state)
    said = next_steps(read_results(sweep))
    assert said == [
        "Wait: 1 of 9 runs still trains.",
        f"{again(tmp_path)} trains scalerl-s2 and loo-loss-s2 up to the budget.",
    ]
    shutil.rmtree(sweep.run(planned_run("scalerl", 2).id).path)
    write_run(sweep.home, planned_run("scalerl", 2).id, TRUTH["scalerl"], seed=2)
    assert f"{again(tmp_path)} continues loo-loss-s2, which failed." in next_steps(read_results(sweep))


def test_a_run_of_a_second_sweep_is_continued_by_the_command_of_that_sweep(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1))
    more = PlannedVariant(name="more", overrides={"logits": "bf16"}, runs=(PlannedRun(seed=0, id="0000aa000000"),))
    write_run(sweep.home, more.runs[0].id, TRUTH["scalerl"], fraction=0.3, state="failed")
    other = changed(sweep, sweep="other", command="platform sweep more.yaml", variants=(sweep.plan.variants[0], more))
    other.write_plan()
    said = next_steps(read_results(together(sweep, [other])))
    assert said[0] == f"{again(tmp_path, 'more.yaml')} continues more (other)-s0, which failed."


def left_at(sweep, name: str, seed: int, *, state: str, fraction: float = 0.5) -> None:
    """Train a run to a fraction of its budget only."""
    run = planned_run(name, seed)
    shutil.rmtree(sweep.run(run.id).path)
    write_run(sweep.home, run.id, TRUTH[name], seed=seed, fraction=fraction, state=state)


def test_while_a_sweep_is_at_work_no_second_command_for_it_is_proposed(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1))
    left_at(sweep, "scalerl", 1, state="running")
    left_at(sweep, "loo-curriculum", 1, state="failed")
    shutil.rmtree(sweep.run(planned_run("loo-loss", 1).id).path)
    with FileLock(sweep.lock):
        assert next_steps(read_results(sweep)) == [
            "Wait: 1 of 6 runs still trains and 1 of 6 runs is due.",
            f"Once the `platform sweep` at work on loo has ended, {again(tmp_path)} continues loo-curriculum-s1, "
            "which failed.",
        ]
    assert (
        next_steps(read_results(sweep))[1]
        == f"{again(tmp_path)} trains loo-loss-s1 and loo-curriculum-s1 up to the budget."
    )


@pytest.mark.parametrize("option", ["--executor slurm", "--executor=slurm"])
def test_runs_whose_slurm_jobs_may_wait_are_not_to_be_started_again(tmp_path, option):
    sweep = changed(make_home(tmp_path, seeds=(0, 1)), command=f"platform sweep loo.yaml {option}")
    shutil.rmtree(sweep.run(planned_run("loo-loss", 1).id).path)
    left_at(sweep, "loo-curriculum", 1, state="preempted")
    left_at(sweep, "scalerl", 1, state="failed")
    assert next_steps(read_results(sweep)) == [
        f"`platform status loo --home {tmp_path}` shows the Slurm jobs of loo-loss-s1 and loo-curriculum-s1.",
        f"{again(tmp_path, 'loo.yaml', f' {option}')} continues scalerl-s1, which failed.",
    ]


def test_runs_that_ended_as_told_do_not_withhold_what_is_left_to_do(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    left_at(sweep, "loo-loss", 2, state="stopped", fraction=0.75)  # by its curriculum: no rule of the sweep
    assert next_steps(read_results(sweep)) != []


def test_not_every_question_is_decided_while_a_variant_cannot_be_read(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    for seed in (0, 1, 2):
        left_at(sweep, "loo-loss", seed, state="stopped", fraction=0.02)
    found = read_results(sweep)
    assert found.compared("loo-loss") is None
    assert next_steps(found) == []


def test_a_search_is_only_continued(tmp_path):
    sweep = make_home(tmp_path)
    assert next_steps(read_results(changed(sweep, search=True))) == []
    left_at(sweep, "loo-loss", 0, state="failed")
    assert next_steps(read_results(changed(sweep, search=True))) == [
        f"{again(tmp_path)} continues loo-loss-s0, which failed."
    ]


def test_seeds_that_do_not_count_stay_in_the_file(results):
    # Two of two seeds count, and five would decide; the file has four, of which two do not count.
    found = told_but(results, level={"verdict": "cannot tell", "lo": -0.03, "hi": 0.042})
    more = tuple(
        replace(one, runs=(*one.runs, *(PlannedRun(seed=seed, id=f"{seed:012x}") for seed in (2, 3))))
        for one in found.plan.variants
    )
    (said,) = next_steps(replace(found, plan=replace(found.plan, variants=more)))
    assert said.endswith(with_seeds(results.sweep.home, 0, 1, 2, 3, 4, 5, 6))


def test_seeds_of_a_second_sweep_are_added_to_its_own_file(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    more = PlannedVariant(
        name="more", overrides={"logits": "bf16"}, runs=tuple(PlannedRun(seed=s, id=f"0000aa00000{s}") for s in (0, 1))
    )
    for run in more.runs:
        write_run(sweep.home, run.id, TRUTH["scalerl"], seed=run.seed)
    reference = sweep.plan.variants[0]
    variants = (replace(reference, runs=reference.runs[:2]), more)
    other = changed(sweep, sweep="other", command="platform sweep more.yaml", variants=variants)
    other.write_plan()
    found = read_results(together(sweep, [other]))
    decided = {name: {"verdict": "no difference seen"} for name in ("level", "ceiling", "compute")}
    for name in ("loo-loss", "loo-curriculum", "more (other)"):
        found = with_line(found, name, answers=decided)
    # Half-widths .036 and .025: two seeds times (.036 / .025)^2 are 4.1, so five.
    open_ = {"level": {"verdict": "cannot tell", "lo": -0.03, "hi": 0.042}}
    (said,) = next_steps(with_line(found, "more (other)", answers=open_))
    assert said.endswith(
        f": `seeds: [0, 1, 2, 3, 4]` in the file of loo, then {again(tmp_path)}; "
        f"`seeds: [0, 1, 2, 3, 4]` in the file of other, then {again(tmp_path, 'more.yaml')}."
    )
    longer = {"ceiling": {"verdict": "cannot tell", "hi": None}}
    (said,) = next_steps(with_line(found, "more (other)", answers=longer))
    assert said.endswith(
        f": {again(tmp_path, more=' --budget 4000h')} and {again(tmp_path, 'more.yaml', ' --budget 4000h')}."
    )
