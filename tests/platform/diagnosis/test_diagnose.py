"""Findings about runs: rows with one thing wrong, healthy rows, and what the command prints.

benchmarks/doctor_planted.py asks the same of real runs with a planted cause.
"""

import json
import shutil

import pytest
from fixtures_home import make_home, planned_run, write_run
from typer.testing import CliRunner

from ablations.cli import app
from ablations.diagnosis.diagnose import diagnose
from ablations.diagnosis.held_out_rules import HELD_OUT_RULES, standard_error
from ablations.diagnosis.history import History
from ablations.diagnosis.logged_history import history_of_log
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
    assert "solved at 0.95, held-out ones at 0.45" in found[0].text
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


def test_a_small_evaluation_is_said_to_be_noisy():
    (found,) = diagnose(History(name="noisy", steps=rows(), evaluations=evaluations(0.5, 0.5, 0.5, prompts=25)))
    assert found.rule == "noisy evaluation"
    assert standard_error({"pass_rate": 0.5, "num_prompts": 25}) == pytest.approx(0.1)
    assert "0.28 are noise" in found.text
    assert set(HELD_OUT_RULES) == {
        "verifier contradicted", "one answer for everything", "learned by heart", "prompts run out", "noisy evaluation"
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


def test_several_held_out_data_sets_of_a_log_are_judged_by_their_mean(tmp_path):
    scores = {10: (0.2, 0.4), 20: (0.3, None), 30: (0.5, 0.1)}
    lines = []
    for step, values in scores.items():
        sets = {f"val-core/{name}/acc/mean@8": value for name, value in zip(("gsm8k", "aime"), values, strict=True)}
        data = {"actor/lr": 1e-6} | {name: value for name, value in sets.items() if value is not None}
        lines.append(json.dumps({"step": step, "data": data}))
    (tmp_path / "verl.jsonl").write_text("\n".join(lines))
    history = history_of_log(tmp_path / "verl.jsonl", "verl")
    assert [row["step"] for row in history.evaluations] == [10, 30]
    assert [row["pass_rate"] for row in history.evaluations] == pytest.approx([0.3, 0.3])


def test_a_log_of_two_runs_is_not_diagnosed_as_one(tmp_path):
    rows = [json.dumps({"step": step, "data": {"actor/lr": 1e-6}}) for step in (1, 2, 3, 1, 2)]
    (path := tmp_path / "verl.jsonl").write_text("\n".join(rows))
    with pytest.raises(AblationsError, match="the steps of actor/lr begin again at 1 after 3, and end at 2: two runs"):
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
    assert "the reward pays short or empty answers" in paid[0][2]


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
