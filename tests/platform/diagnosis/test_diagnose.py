"""Findings about runs: rows with one thing wrong, healthy rows, and what the command prints.

benchmarks/doctor_planted.py asks the same of real runs with a planted cause.
"""

import gc
import json
import random
import shutil
import time

import pytest
from fixtures_home import make_home, planned_run, write_run
from imported import history_of_log
from typer.testing import CliRunner

from ablations.cli import app
from ablations.diagnosis.diagnose import diagnose
from ablations.diagnosis.held_out_rules import HELD_OUT_RULES, standard_error
from ablations.diagnosis.history import Course, History
from ablations.diagnosis.reward_rules import _mastered
from ablations.diagnosis.training_rules import _gone_at_once, _most_clipped, _sum_of_rates, _worst_mismatch
from ablations.errors import AblationsError

HEALTHY = {
    "pass_rate": 0.4, "reward_mean": -0.2, "zero_variance": 0.2, "entropy": 0.6, "mismatch": 0.03,
    "mismatch_lag_0": 0.001, "ess": 0.98, "ratio_clipped": 0.0, "grad_norm": 0.5, "truncated": 0.04,
    "mean_tokens": 20.0, "loss": 0.1, "generator_idle": 0.2, "trainer_idle": 0.3, "retired": 10, "epoch": 2,
    "skipped": False, "outcomes": {"right": 50, "wrong": 45, "unparsable": 5}, "staleness": {"0": 10, "4": 90},
}  # fmt: skip


def rows(num=200, change_at=100, **changed):
    """Train rows that learn slowly; from `change_at` on with these columns, or functions of the step."""
    found = []
    for step in range(1, num + 1):
        row = {**HEALTHY, "step": step, "compute_gpu_hours": float(step), "pass_rate": 0.3 + 0.3 * step / num}
        if step > change_at:
            row |= {name: value(step) if callable(value) else value for name, value in changed.items()}
        found.append(row)
    return found


ENDS = {
    "won": 0.4, "lost": 0.3, "rules_broken": 0.1, "too_many_turns": 0.2, "too_long": 0.0, "timed_out": 0.0,
    "error": 0.0,
}  # fmt: skip
OF_EPISODES = {
    "environment fails": {"ends": {**ENDS, "lost": 0.0, "timed_out": 0.3}},
    "rules broken": {"ends": {**ENDS, "lost": 0.0, "rules_broken": 0.6, "too_many_turns": 0.0}},
    "reward without wins": {"earned": 0.7},
    "episodes cut": {"ends": {**ENDS, "lost": 0.0, "too_long": 0.3}},
    "environment slow": {"device_s": lambda step: {"generator": {"decode": 1000.0, "wait_environment": 10.0 * step}}},
}
WRONG = {
    "verifier fails": {"outcomes": {"right": 40, "wrong": 50, "timed_out": 10}},
    "steps skipped": {"skipped": True, "loss": None},
    "learning rate too high": {"pass_rate": 0.05, "grad_norm": 40.0},
    "reward pays something else": {"reward_mean": 0.9, "pass_rate": 0.1},
    "entropy explodes": {"entropy": 2.5},
    "empty answers": {"mean_tokens": 1.5, "pass_rate": 0.02},
    "unreadable answers": {"outcomes": {"right": 10, "wrong": 10, "unparsable": 80}},
    "mismatch grows": {"mismatch": 0.4, "mismatch_lag_0": 0.001},
    "few effective tokens": {"ess": 0.1},
    "truncation grows": {"truncated": 0.5},
    "longer, not better": {"mean_tokens": 40.0, "pass_rate": 0.25},
    "entropy gone": {"entropy": 0.001},
    "score falls": {"pass_rate": 0.2},
    "score gone at once": {"pass_rate": 0.05},
    "starved": {"generator_idle": 0.97},
}


def test_healthy_rows_have_no_finding():
    assert diagnose(History(name="healthy", steps=rows())) == []


@pytest.mark.parametrize("rule", list(WRONG))
def test_what_is_wrong_is_named_first_or_second_since_it_began(rule):
    found = diagnose(History(name="ill", steps=rows(**WRONG[rule])))
    assert rule in [one.rule for one in found[:2]]
    one = next(one for one in found if one.rule == rule)
    # A window of 20 steps with some ill ones is the first to show it.
    assert one.since_step is not None
    assert 80 <= one.since_step <= 106
    assert one.how_sure == "sure"
    assert one.cost_share == pytest.approx(1 - one.since_step / 200)


def of_episodes(**changed):
    """Train rows of episodes; the environment's faults and broken rules are outcomes too."""
    steady = {"ends": ENDS, "earned": 0.2, "turns": 3.0, "device_s": {"generator": {"decode": 1000.0}}}
    outcomes = {"right": 40, "wrong": 30, "unparsable": 40, "timed_out": 10}
    return [{**steady, **row} for row in rows(pass_rate=0.4, outcomes=outcomes, **changed)]


def test_healthy_episodes_have_no_finding():
    assert diagnose(History(name="healthy", steps=of_episodes())) == []


@pytest.mark.parametrize("rule", list(OF_EPISODES))
def test_what_is_wrong_with_episodes_is_the_only_finding(rule):
    (found,) = diagnose(History(name="ill", steps=of_episodes(**OF_EPISODES[rule])))
    assert found.rule == rule
    assert found.since_step is not None
    assert 80 <= found.since_step <= 116


def test_a_run_that_never_learned_is_told_apart_by_its_groups_and_its_weights():
    hard = [{**row, "pass_rate": 0.02, "zero_variance": 0.9} for row in rows()]
    assert [one.rule for one in diagnose(History(name="hard", steps=hard))] == ["no signal"]
    easy = [{**row, "pass_rate": 0.97, "zero_variance": 0.9} for row in rows()]
    (found,) = diagnose(History(name="easy", steps=easy))
    assert (found.rule, "too easy" in found.text) == ("no signal", True)
    still = [{**row, "pass_rate": 0.3, "mismatch": 1e-5} for row in rows()]
    assert [one.rule for one in diagnose(History(name="still", steps=still))] == ["learning rate too low"]


def test_a_run_that_has_learned_its_task_is_healthy_although_its_groups_are_all_right():
    steps = [{**row, "pass_rate": 0.3 + 0.65 * min(1, row["step"] / 150), "zero_variance": 0.9} for row in rows()]
    assert diagnose(History(name="done", steps=steps)) == []


def test_one_damaged_log_hides_no_other_run_and_a_seed_that_is_not_there_is_refused(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1))
    broken, torn = (sweep.run(planned_run("scalerl", seed).id).metrics for seed in (0, 1))
    broken.write_text(broken.read_text() + '{"kind": "train", broken}\n')
    torn.write_text('{"step": 1}\n')
    runs = json.loads(doctor(tmp_path, "loo", "--json").output)["runs"]
    unjudged = {run["run"]: run["unjudged"] for run in runs}
    assert "metrics.jsonl:122: not a metrics row" in unjudged["scalerl-s0"]
    assert "a row without kind or step" in unjudged["scalerl-s1"]
    assert [unjudged[name] for name in ("loo-loss-s0", "loo-loss-s1")] == ["", ""]
    assert "loo-loss-s0, 80 steps: nothing found" in doctor(tmp_path, "loo").output
    assert "sweep 'loo' has no seed 9; seeds are: 0, 1" in str(doctor(tmp_path, "loo", "--seed", "9").exception)


def doctor(home, *arguments):
    return CliRunner().invoke(app, ["doctor", *arguments, "--home", str(home)])


def evaluations(*rates, prompts=400):
    return [
        {"step": 20 * number, "pass_rate": rate, "num_prompts": prompts, "num_samples": 4 * prompts}
        for number, rate in enumerate(rates)
    ]


def test_prompts_learned_by_heart():
    steps = rows(change_at=0, pass_rate=0.95)
    found = diagnose(History(name="heart", steps=steps, evaluations=evaluations(0.3, 0.5, 0.6, 0.55, 0.45)))
    assert [(one.rule, one.since_step) for one in found] == [("learned by heart", 20)]
    assert "0.95 on training prompts and 0.45 on held-out ones" in found[0].text
    alike = diagnose(History(name="alike", steps=steps, evaluations=evaluations(0.3, 0.9, 0.9, 0.95, 0.94)))
    assert alike == []


def kept(step, *texts):
    return [
        {"kind": "held_out", "step": step, "prompt_id": f"{step}-{number}", "answer": [{"text": text, "tokens": 1}]}
        for number, text in enumerate(texts)
    ]


def test_one_answer_for_everything():
    rollouts = [*kept(0, *"abcd"), *kept(20, *"efgh"), *kept(40, *"xxxx"), *kept(60, *"xxxx"), *kept(80, *"xxxy")]
    (found,) = diagnose(History(name="one", steps=rows(), rollouts=rollouts))
    assert (found.rule, found.since_step) == ("one answer for everything", 80)
    assert "11 of 12" in found.text
    assert diagnose(History(name="many", steps=rows(), rollouts=rollouts[:12])) == []


def test_prompts_run_out():
    said = "all 24 training prompts are retired: the policy solves each at a rate of at least 0.9"
    (found,) = diagnose(History(name="out", steps=rows(), message=said))
    assert (found.rule, found.text) == ("prompts run out", "all 24 training prompts are retired")
    anew = rows(retired=0)
    assert [one.rule for one in diagnose(History(name="anew", steps=anew))] == ["prompts run out"]


def test_a_held_out_score_that_fell_is_said_first_also_of_a_run_too_short_for_rules_about_steps():
    fallen = evaluations(0.96, 0.95, 0.77, 0.59, 0.42, 0.37)
    (found,) = diagnose(History(name="short", steps=rows(30), evaluations=fallen))
    assert (found.rule, found.since_step) == ("held-out score fell", 0)
    assert found.text == "the held-out score fell from 0.960 at step 0 to 0.370 at step 100: the model got worse"
    longer = diagnose(History(name="longer", steps=rows(**WRONG["longer, not better"]), evaluations=fallen))
    assert [one.rule for one in longer] == ["held-out score fell", "longer, not better"]
    assert "the held-out score went from 0.96 to 0.46" in longer[1].text
    by_task = [{**row, "task": task} for row in fallen for task in ("easy", "hard")]
    (found,) = diagnose(History(name="tasks", steps=rows(30), evaluations=by_task))
    assert found.rule == "held-out score fell"


def test_what_stays_or_recovers_on_held_out_prompts_has_not_fallen():
    for rates in ([0.6, 0.61, 0.59, 0.6, 0.6], [0.6, 0.4, 0.3, 0.5, 0.6, 0.61], [0.6, 0.6, 0.6, 0.6, 0.0], [0.6, 0.3]):
        assert diagnose(History(name="well", steps=rows(), evaluations=evaluations(*rates))) == []


def test_longer_answers_that_score_better_on_held_out_prompts_are_no_finding():
    # The training reward stays, as that of a curriculum of ever harder prompts does.
    steps = rows(mean_tokens=40.0, change_at=60)
    steps = [{**row, "pass_rate": 0.4} for row in steps]
    better = evaluations(0.30, 0.35, 0.42, 0.5, 0.55, 0.6, 0.63, 0.65, 0.65, 0.66, 0.66)
    assert diagnose(History(name="better", steps=steps, evaluations=better)) == []
    (found,) = diagnose(History(name="unknown", steps=steps))
    assert found.text == "answers grew from 20 to 40 tokens, and the training reward went from 0.40 to 0.40"
    (found,) = diagnose(History(name="same", steps=steps, evaluations=evaluations(*[0.4] * 6)))
    assert found.text == "answers grew from 20 to 40 tokens, and the held-out score went from 0.40 to 0.40"


def test_a_second_task_that_is_evaluated_late_is_no_fall():
    """A task at .8 and, from the sixth evaluation on, a harder one at .2: the mean of both is .5."""
    easy = [row | {"task": "easy"} for row in evaluations(*[0.8] * 12)]
    hard = [row | {"task": "hard"} for row in evaluations(*[0.2] * 12)]
    late = [row for row in hard if row["step"] > hard[5]["step"]]
    found = diagnose(History(name="late", steps=rows(), evaluations=[*easy, *late]))
    assert "held-out score fell" not in [one.rule for one in found]


def test_a_small_evaluation_is_said_to_be_noisy():
    (found,) = diagnose(History(name="noisy", steps=rows(), evaluations=evaluations(0.5, 0.5, 0.5, prompts=25)))
    assert found.rule == "noisy evaluation"
    assert standard_error({"pass_rate": 0.5, "num_prompts": 25}) == pytest.approx(0.1)
    assert "0.28 are noise" in found.text
    assert set(HELD_OUT_RULES) == {
        "held-out score fell", "verifier contradicted", "one answer for everything", "learned by heart",
        "prompts run out", "noisy evaluation",
    }  # fmt: skip


def test_a_seed_unlike_its_siblings_is_named_in_a_sweep_and_not_alone(tmp_path):
    sweep = make_home(tmp_path / "home", seeds=(0, 1, 2, 3))
    odd = planned_run("loo-loss", 2)
    shutil.rmtree(sweep.home.run(odd.id).path)
    write_run(sweep.home, odd.id, (0.42, 1.9, 320.0), seed=2)  # an asymptote of .42 for its siblings' .55 or so
    asked = ["doctor", "loo", "--home", str(tmp_path / "home")]
    runs = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)["runs"]
    found = {one["run"]: [each["rule"] for each in one["findings"]] for one in runs}
    assert [name for name, rules in found.items() if "unlike its siblings" in rules] == ["loo-loss-s2"]
    (finding,) = (one for run in runs for one in run["findings"] if one["rule"] == "unlike its siblings")
    assert "below that of the other seeds of loo-loss" in finding["text"]
    assert 0.5 < finding["cost_share"] <= 1.0
    assert "unlike its siblings" not in CliRunner().invoke(app, ["doctor", odd.id, *asked[2:]]).stdout


def trl_log(path, *, reward, evaluated, **columns):
    """A log of 200 steps as TRL writes it: a reward by step, a held-out one every 20 steps."""
    history = []
    for step in range(1, 201):
        given = {name: value(step) if callable(value) else value for name, value in columns.items()}
        shown = {"frac_reward_zero_std": 0.2, "learning_rate": 1e-4, "entropy": 0.6, "completions/mean_length": 20.0}
        history.append({"step": step, "reward": reward(step), **shown, **given})
        if step % 20 == 0:
            history.append({"step": step, "eval_reward": evaluated(step)})
    state = path / "trainer_state.json"
    state.write_text(json.dumps({"log_history": history, "global_step": 200}))
    return [(one.rule, one.text, one.change) for one in diagnose(history_of_log(state, "trl"))]


def test_a_log_of_trl_whose_rewards_lie_between_0_and_1_has_pass_rates(tmp_path):
    by_heart = trl_log(tmp_path, reward=lambda step: step / 210, evaluated=lambda step: 0.1 + step / 9000)
    assert [rule for rule, _, _ in by_heart] == ["learned by heart"]
    paid_more = trl_log(tmp_path, reward=lambda step: step / 100, evaluated=lambda step: 0.1 + step / 9000)
    assert paid_more == []  # a reward of 2 is no pass rate
    ((rule, text, _),) = trl_log(
        tmp_path, reward=lambda _: 0.0, evaluated=lambda _: 0.0, frac_reward_zero_std=1.0, learning_rate=1e-3
    )
    assert (rule, "too hard" in text) == ("no signal", True)


def test_several_held_out_data_sets_of_a_log_may_be_judged_by_their_mean(tmp_path):
    scores = {10: (0.2, 0.4), 20: (0.3, None), 30: (0.5, 0.1)}
    lines = []
    for step, values in scores.items():
        sets = {f"val-core/{name}/acc/mean@8": value for name, value in zip(("gsm8k", "aime"), values, strict=True)}
        data = {"actor/lr": 1e-6} | {name: value for name, value in sets.items() if value is not None}
        lines.append(json.dumps({"step": step, "data": data}))
    (tmp_path / "verl.jsonl").write_text("\n".join(lines))
    mean = "(val-core/gsm8k/acc/mean@8 + val-core/aime/acc/mean@8) / 2"
    history = history_of_log(tmp_path / "verl.jsonl", "verl", score=mean)
    assert [row["step"] for row in history.evaluations] == [10, 30]
    assert [row["pass_rate"] for row in history.evaluations] == pytest.approx([0.3, 0.3])


def test_a_log_of_two_runs_is_not_diagnosed_as_one(tmp_path):
    rows = [json.dumps({"step": step, "data": {"actor/lr": 1e-6}}) for step in (1, 2, 3, 1, 2)]
    (path := tmp_path / "verl.jsonl").write_text("\n".join(rows))
    with pytest.raises(AblationsError, match="the steps begin again at 1 after 3, and end at 2: two runs"):
        history_of_log(path, "verl")
    path.write_text("\n".join([*rows, rows[2]]))
    assert [row["step"] for row in history_of_log(path, "verl").steps] == [1, 2, 3]


def test_a_learning_rate_that_moves_no_weight_is_too_low_although_no_old_weights_are_logged(tmp_path):
    ((rule, text, _),) = trl_log(
        tmp_path, reward=lambda _: 0.3, evaluated=lambda step: 0.3 + step / 9000, learning_rate=5e-8
    )
    assert rule == "learning rate too low"
    assert "by more than about 1e-05" in text  # 200 steps
    assert trl_log(tmp_path, reward=lambda _: 0.3, evaluated=lambda step: 0.3 + step / 9000, learning_rate=1e-6) == []


def test_a_score_that_is_gone_within_some_steps_means_no_reward_for_empty_answers(tmp_path):
    found = trl_log(
        tmp_path,
        reward=lambda step: 0.4 if step < 12 else 0.0,
        evaluated=lambda _: 0.0,
        **{"completions/mean_length": lambda step: 20.0 if step < 12 else 1.0},
    )
    assert [rule for rule, _, _ in found] == ["score gone at once", "empty answers"]
    assert "nearly all of it within 15 steps" in found[0][1]
    assert "lower optimiser.learning_rate first" in found[0][2]
    assert "the reward does not pay for this" in found[1][2]
    paid = trl_log(
        tmp_path,
        reward=lambda step: min(0.4 + step / 1000, 0.55),
        evaluated=lambda step: 0.4 + step / 9000,
        **{"completions/mean_length": lambda step: 20.0 if step < 12 else 1.0},
    )
    assert "the reward pays for short or empty answers" in paid[0][2]


def test_entropy_is_judged_by_its_start_if_the_score_has_not_risen(tmp_path):
    def with_entropy(now, learned):
        return trl_log(
            tmp_path,
            reward=lambda step: 0.2 + learned * step / 200,
            evaluated=lambda step: 0.2 + learned * step / 200 + step / 9000,
            entropy=lambda step: 1.6 if step < 60 else now,
        )

    ((rule, text, _),) = with_entropy(1.95, learned=0.0)
    assert (rule, "from 1.60 to 1.95" in text) == ("entropy explodes", True)
    ((rule, text, _),) = with_entropy(0.1, learned=0.0)
    assert (rule, "from 1.60 to 0.10" in text) == ("entropy gone", True)
    assert with_entropy(1.95, learned=0.4) == with_entropy(0.1, learned=0.4) == []
    assert with_entropy(1.75, learned=0.0) == with_entropy(0.3, learned=0.0) == []


def test_the_time_of_a_diagnosis_grows_with_the_steps_and_not_with_their_square():
    def seconds(num: int) -> float:
        steps = [{"step": n, "compute_gpu_hours": n / 10, "pass_rate": 0.5, "mean_tokens": 1.0} for n in range(num)]
        evaluations = [{"step": n, "pass_rate": 0.4 + 0.1 * (n % 2), "num_prompts": 500} for n in range(num)]
        history = History(name="long", steps=steps, evaluations=evaluations)
        begun = time.thread_time()  # what other tests left running has threads of its own
        assert [one.rule for one in diagnose(history)] == ["empty answers"]  # a rule that holds at every window
        return time.thread_time() - begun

    seconds(100)
    # One full collection of what two thousand tests have left takes a second.
    gc.collect()
    gc.freeze()
    try:
        small, large = (min(seconds(num) for _ in range(3)) for num in (2000, 20_000))
    finally:
        gc.unfreeze()
    assert large < 30 * small


@pytest.mark.parametrize("seed", range(3))
def test_figures_so_far_are_those_of_all_steps_up_to_the_end(seed):
    draw = random.Random(seed)
    steps = []
    for step in range(130):
        logged = {
            "ratio_clipped": draw.random(),
            "learning_rate": 1e-7 * draw.random(),
            "mismatch": draw.choice([0.1, 0.2, draw.random()]),
            "zero_variance": draw.choice([0.5, 0.8]),
            "pass_rate": draw.choice([0.02, 0.5, 0.95]),
        }
        steps.append({"step": step} | {name: one for name, one in logged.items() if draw.random() < 0.8})
    course = Course(steps)
    for end in range(1, 131):
        first = steps[:end]
        blocks = [
            [row["ratio_clipped"] for row in first[at : at + 20] if "ratio_clipped" in row] for at in range(0, end, 20)
        ]
        assert course.of(_most_clipped)[end - 1] == max(sum(one) / len(one) if one else 0.0 for one in blocks)
        assert course.of(_sum_of_rates)[end - 1] == sum(row.get("learning_rate", 0) for row in first)
        gaps = [row for row in first if "mismatch" in row]
        assert course.of(_worst_mismatch)[end - 1] is (max(gaps, key=lambda row: row["mismatch"]) if gaps else None)
        mastered = [row for row in first if row.get("zero_variance", 0) >= 0.75 and row.get("pass_rate", 0) >= 0.9]
        assert course.of(_mastered)[end - 1] == len(mastered)


def test_a_score_is_gone_at_once_from_the_step_on_at_which_it_can_be_seen():
    steps = [{"step": step, "pass_rate": 0.5 if step < 40 else 0.1} for step in range(60)]
    # Five steps are one score, 15 steps are "at once": the mean of steps 30 to 34 is .5, that of 40 to 44 is .1.
    assert _gone_at_once(steps) == [None] * 44 + [35] * 16


@pytest.mark.parametrize(
    ("first", "second", "rules"),
    [
        (0.3, 0.3, []),  # dropout: as many in the pass with the weights that have generated
        (0.3, 0.42, []),  # and a step beside it
        (0.0, 0.4, ["learning rate too high"]),
        (0.1, 0.5, ["learning rate too high"]),
    ],
)
def test_ratios_that_are_clipped_before_a_step_are_no_sign_of_large_steps(tmp_path, first, second, rules):
    """Two optimiser steps on each batch; the first of them has the weights that have generated."""
    rows = []
    for step in range(1, 201):
        generated = {"reward": 0.3, "completions/mean_length": 5.0} if step % 2 else {}
        rows.append(
            {"step": step, "learning_rate": 1e-3, "grad_norm": 1.0, **generated}
            | {"clip_ratio/region_mean": first if step % 2 else second}
        )
        if step % 20 == 0:
            rows.append({"step": step, "eval_reward": 0.3})
    (state := tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": rows}))
    assert [one.rule for one in diagnose(history_of_log(state, "trl")) if "rate" in one.rule] == rules


def test_rows_of_several_steps_keep_the_clipped_ratios_that_they_have(tmp_path):
    """A row every fifth step has a reward and later passes in one."""
    rows = [{"step": step, "reward": 0.3, "clip_ratio/region_mean": 0.4} for step in range(5, 205, 5)]
    (state := tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": rows}))
    assert {row["ratio_clipped"] for row in history_of_log(state, "trl").steps} == {0.4}
