"""Each trainer's own names give the compute that its times of a step add up to."""

import json

import numpy as np
import pytest
from places import REPOSITORY

from ablations.cli.reference import COMMANDS_BY_NAME
from ablations.errors import AblationsError
from ablations.logs.console import read_console
from ablations.logs.log import Log
from ablations.logs.meaning import LogMeaning, curve_of_log
from ablations.logs.presets import PRESETS
from ablations.logs.rows import log_of_rows
from ablations.logs.training_rows import training_rows

HOUR = 3600.0
PAGE = REPOSITORY / "docs" / "logs.md"


def log_of(rows) -> Log:
    rows = json.loads(json.dumps(rows))
    return log_of_rows([("", row) for row in rows], name="a", place="a", steps=("step", "_step"))


def each_step(time: str, score: str, *, step="step"):
    """Rows of steps 0 to 3: an hour a step, a score at 0, 1 and 3."""
    return [
        {step: number} | ({time: HOUR} if number else {}) | ({score: 0.1 * number + 0.1} if number != 2 else {})
        for number in range(4)
    ]


LOGGED = {
    "verl": [
        *each_step("perf/time_per_step", "val-core/openai/gsm8k/reward/mean@4"),
        {"step": 3, "val-core/openai/gsm8k/reward/best@4/mean": 0.9, "val-aux/openai/gsm8k/acc/mean@4": 0.9},
    ],
    "prime-rl": [
        {"_step": 10 * number, **row}
        for number, row in enumerate(each_step("time/step", "eval/math/effective/policy/avg@8"))
    ],
    # One row of each kind, as W&B gets them, which counts rows as its own steps.
    "slime": [
        {
            "_step": 0,
            "eval/step": 0,
            "eval/aime": 0.1,
            "eval/aime-truncated_ratio": 0.5,
            "eval/aime/response_len/mean": 9,
        },
        {"_step": 1, "rollout/step": 1, "perf/step_time": HOUR},
        {"_step": 2, "train/step": 77, "train/loss": 1.0},
        {"_step": 3, "eval/step": 1, "eval/aime": 0.2, "eval/aime-pass@4": 0.7},
        {"_step": 4, "rollout/step": 2, "perf/step_time": HOUR},
        {"_step": 5, "rollout/step": 3, "perf/step_time": HOUR},
        {"_step": 6, "eval/step": 3, "eval/aime": 0.4},
    ],
    "skyrl": each_step("timing/step", "eval/math/avg_score", step="_step"),
    "nemo-rl": each_step("timing/train/total_step_time", "validation/accuracy", step="_step"),
    "openrlhf": [
        {"_step": 0, "train/global_step": 1, "train/timing/step_total": HOUR, "train/timing/generation": 5.0},
        {"_step": 1, "eval/global_step": 1, "eval/eval_math_pass1": 0.2, "eval/eval_num_samples": 64.0},
        {"_step": 2, "train/global_step": 2, "train/timing/step_total": HOUR},
        {"_step": 3, "train/global_step": 3, "train/timing/step_total": HOUR},
        {"_step": 4, "eval/global_step": 3, "eval/eval_math_pass1": 0.4},
    ],
    # Logged every second step: the time is the mean of both. The evaluation is before the row of its step.
    "trl": [
        {
            "step": 1,
            "eval_reward": 0.2,
            "eval_rewards/right/mean": 0.2,
            "eval_rewards/right/std": 0.4,
            "eval_loss": 1.0,
        },
        {"step": 2, "step_time": 0.5 * HOUR, "loss": 1.0},
        {"step": 3, "eval_reward": 0.4},
        {"step": 4, "step_time": HOUR},
    ],
    "areal": [
        row | ({"timeperf/rollout": 0.5 * HOUR, "timeperf/eval": 9.0, "rollout/reward": 0.9} if row["step"] else {})
        for row in each_step("timeperf/train_step", "eval-rollout/reward")
    ],
}
"""Rows with the names in each trainer's source, beside others that look like them."""
HOURS = {
    "openrlhf": ([1, 3], [0.2, 0.4]),
    "trl": ([0.5, 2], [0.2, 0.4]),
    "areal": ([0, 1.5, 4.5], [0.1, 0.2, 0.4]),
}
"""Hours and scores, by hand; of the others as `each_step` says."""


@pytest.mark.parametrize("name", [preset.name for preset in PRESETS])
def test_the_names_of_a_trainer_give_gpu_hours_and_scores(name):
    hours, scores = HOURS.get(name, ([0, 1, 3], [0.1, 0.2, 0.4]))
    meaning = LogMeaning(trainer=name, gpus=8.0)
    curve, warnings = curve_of_log(log_of(LOGGED[name]), meaning, name="a", start="")
    np.testing.assert_allclose(curve.compute, 8.0 * np.array(hours))
    np.testing.assert_allclose(curve.score, scores)
    assert warnings == []
    assert meaning.compute_name == "GPU-hours"


def test_the_time_of_trl_is_that_of_all_steps_since_the_row_before_whatever_the_steps_are_called():
    rows = [{"global_step" if key == "step" else key: value for key, value in row.items()} for row in LOGGED["trl"]]
    meaning = LogMeaning(trainer="trl", gpus=1.0, step="global_step")
    curve, _ = curve_of_log(log_of(rows), meaning, name="a", start="")
    assert curve.compute.tolist() == [0.5, 2]


PHASES_OF_VERL_01 = "timing/gen:18.0 - timing/ref:5.0 - timing/values:6.0 - critic/kl:0.01 - timing/adv:1.0"
VERL_01 = [
    f"\x1b[36m(main_task pid=5)\x1b[0m step:{step} - {PHASES_OF_VERL_01} - timing/update_critic:10.0"
    f" - critic/lr(1e-4):0.100 - timing/update_actor:20.0 - actor/entropy_loss:0.5 - actor/lr(1e-4):0.010"
    f"{tested} - critic/score/mean:0.2{step} - critic/values/mean:0.5 - response_length/mean:300.0"
    for step, tested in enumerate(["", " - timing/testing:600.0 - val/test_score/openai/gsm8k:0.25", ""])
]
"""Lines as v0.1 prints them: a step of 60 s, and an evaluation of ten minutes."""


def test_lines_of_verl_before_0_2_give_the_time_of_training_without_that_of_validation(tmp_path):
    (tmp_path / "dapo-s1.log").write_text("\n".join(VERL_01) + "\n")
    log, meaning = read_console(tmp_path / "dapo-s1.log", "dapo-s1"), LogMeaning(trainer="verl", gpus=60.0)
    curve, warnings = curve_of_log(log, meaning, name="a", start="")
    assert (curve.compute.tolist(), curve.score.tolist(), warnings) == ([2.0], [0.25], [])
    rows = training_rows(log, meaning)
    assert [row["compute_gpu_hours"] for row in rows] == pytest.approx([1, 2, 3])
    assert [(row["reward_mean"], row["entropy"], row["mean_tokens"]) for row in rows] == [
        (0.2, 0.5, 300),
        (0.21, 0.5, 300),
        (0.22, 0.5, 300),
    ]


@pytest.mark.parametrize("score", ["val/test_score/lighteval/MATH", "val/searchR1_nq/test_score"])
def test_verl_before_0_3_and_copies_of_it_time_whole_steps(score):
    rows = [row | {"timing_s/gen": 9.0, "val/test_score/pass@k/x": 0.9} for row in each_step("timing_s/step", score)]
    curve, _ = curve_of_log(log_of(rows), LogMeaning(trainer="verl", gpus=8.0), name="a", start="")
    assert (curve.compute.tolist(), curve.score.tolist()) == ([0, 8, 24], [0.1, 0.2, 0.4])
    newer = [row | {"perf/time_per_step": 2 * row.get("timing_s/step", 0)} for row in rows]
    curve, _ = curve_of_log(log_of(newer), LogMeaning(trainer="verl", gpus=8.0), name="a", start="")
    assert curve.compute.tolist() == [0, 16, 48]


def test_a_refusal_begins_with_the_columns_that_may_be_held_out(tmp_path):
    (tmp_path / "a.log").write_text("\n".join(VERL_01) + "\n")
    log, meaning = read_console(tmp_path / "a.log", "a"), LogMeaning(score="val/acc", compute="step")
    listed = r"columns are: val/test_score/openai/gsm8k, critic/score/mean, actor/entropy_loss, .*, critic/values/mean"
    with pytest.raises(AblationsError, match=listed):
        curve_of_log(log, meaning, name="a", start="")


@pytest.mark.parametrize(
    ("logged", "evaluated", "hours"),
    [
        # Hours a step in the row of each step, steps of the evaluations, and the hours by hand.
        ({10: 1, 20: 1}, [5, 10, 15, 20], [5, 10, 15, 20]),
        ({10: 1, 20: 2, 30: 1}, [0, 15, 30], [0, 20, 40]),
        ({1: 2, 10: 1, 20: 3}, [1, 20, 24], [2, 41, 53]),
    ],
)
def test_an_evaluation_of_trl_between_two_rows_has_the_compute_of_its_own_step(logged, evaluated, hours):
    rows = [{"step": step, "step_time": each * HOUR} for step, each in logged.items()]
    rows += [{"step": step, "eval_reward": step / 100} for step in evaluated]
    curve, _ = curve_of_log(log_of(rows), LogMeaning(trainer="trl", gpus=1.0), name="a", start="")
    np.testing.assert_allclose(curve.compute, hours)


def test_a_reward_of_trl_that_is_a_sum_is_not_taken_for_the_pass_rate():
    rows = [row | {"eval_rewards/format/mean": 1.0} for row in LOGGED["trl"]]
    with pytest.raises(
        AblationsError, match=r"choose one.*: eval_reward, eval_rewards/format/mean, eval_rewards/right/mean$"
    ):
        curve_of_log(log_of(rows), LogMeaning(trainer="trl", gpus=1.0), name="a", start="")


def test_the_help_names_every_trainer():
    *others, last = [preset.name for preset in PRESETS]
    (log,) = [one for one in COMMANDS_BY_NAME["compare"].params if one.name == "log"]
    assert log.help == (
        f"Trainer that wrote the logs: {', '.join(others)} or {last}. Then name one file or folder per run."
    )


def test_the_page_names_every_column_with_its_version_and_file():
    lines = {line.split("`")[1]: line for line in PAGE.read_text().splitlines() if line.startswith("| `")}
    for preset in PRESETS:
        assert all(f"`{name}`" in lines[preset.name] for name in (*preset.scores, *preset.seconds, *preset.steps))
        assert all(f"`{name}`" in lines[preset.name] for names in preset.older_seconds for name in names)
        assert lines[preset.name].count(".py:") >= 1
