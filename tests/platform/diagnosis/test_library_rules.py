"""Causes that a library adds behind a run, planted in logs of the form that the library writes, and sound logs.

The rates are those of the schedules of transformers and DeepSpeed themselves, the files those of W&B's client and of
TensorBoard's writer.
"""

import json
import math
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from imported import history_of_log

from ablations.diagnosis.diagnose import diagnose
from ablations.diagnosis.history import History
from ablations.diagnosis.library_rules import LIBRARY_RULES
from ablations.errors import AblationsError

transformers = pytest.importorskip("transformers", reason="transformers writes these logs", exc_type=ImportError)
STEPS = 120


def found_in(path, trainer="trl", **meaning):
    return {one.rule: one for one in diagnose(history_of_log(path, trainer, **meaning))}


def trl_log(folder, rates=None, every=1, **columns):
    """A log of TRL that learns, with a row every so many steps; a column may be a function of the step."""
    history = []
    for step in range(1, STEPS + 1):
        if step % every == 0:
            given = {name: value(step) if callable(value) else value for name, value in columns.items()}
            row = {
                "step": step,
                "loss": 0.01,
                "grad_norm": 0.5,
                "learning_rate": rates[step - 1] if rates else 1e-6,
                "reward": 0.3 + step / 400,
                "entropy": 0.6,
                "frac_reward_zero_std": 0.2,
                "completions/mean_length": 20.0,
            }
            history.append({name: value for name, value in (row | given).items() if value is not None})
        if step % 10 == 0:
            history.append({"step": step, "eval_reward": 0.3 + step / 500 + step / 9000})
    (folder / "trainer_state.json").write_text(json.dumps({"log_history": history, "global_step": STEPS}))
    return folder / "trainer_state.json"


def rates_of(schedule, *parts, **options):
    """The rate of each step as the Trainer logs it; `parts` are (max_steps, steps taken) of each start of one run.

    Scheduler and optimiser are loaded as a resume loads them.
    """
    rates, kept = [], None
    for max_steps, taken in parts:
        optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
        scheduler = transformers.get_scheduler(schedule, optimiser, num_training_steps=max_steps, **options)
        if kept is not None:
            optimiser.load_state_dict(kept[0])
            scheduler.load_state_dict(kept[1])
        for _ in range(taken):
            rates.append(optimiser.param_groups[0]["lr"])
            optimiser.step()
            scheduler.step()
        kept = optimiser.state_dict(), scheduler.state_dict()
    return rates


def warm_up_of_deepspeed():
    """DeepSpeed's WarmupLR, with its defaults, in 0.19.8."""
    with warnings.catch_warnings(action="ignore"):
        schedules = pytest.importorskip("deepspeed.runtime.lr_schedules", reason="a test extra", exc_type=ImportError)
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
    scheduler = schedules.WarmupLR(optimiser, warmup_num_steps=20)
    rates = []
    for _ in range(STEPS):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step()
    return rates


@pytest.mark.parametrize("passes", [2, 4])
def test_ratios_clipped_before_a_step_are_named(tmp_path, passes):
    """As of TRL 1.16.0 with lora_dropout .1: 41 % clipped in the first pass and 47 % in later ones, at a rate of 1e-12;
    without dropout none."""

    def log(first, later):
        def clipped(step):
            return first if step % passes == 1 else later

        def of_rollouts(value):
            return lambda step: value(step) if step % passes == 1 else None

        lengths = {"completions/mean_length": of_rollouts(lambda _: 20.0)}
        rewards = {
            "reward": of_rollouts(lambda step: 0.3 + step / 400),
            "frac_reward_zero_std": of_rollouts(lambda _: 0.2),
        }
        return found_in(trl_log(tmp_path, **{"clip_ratio/region_mean": clipped}, **lengths, **rewards))

    one = log(0.41, 0.47)["clipped before a step"]
    assert (one.since_step, "41% of the ratios" in one.text) == (1, True)
    assert log(0.0, 0.12) == {}


@pytest.mark.parametrize(
    ("schedule", "parts", "step", "says"),
    [
        ("linear", ((80, 40), (160, 80)), 42, "from 0.0005 at step 41 to 0.000744 at step 42"),
        ("linear", ((60, 60), (120, 60)), 62, "from 0 at step 61 to 0.000492 at step 62"),
        ("cosine", ((240, 60), (120, 60)), 62, "from 0.000854 at step 61 to 0.000487 at step 62"),
    ],
)
def test_a_resume_with_another_number_of_steps_shows_in_the_rate_one_step_late(tmp_path, schedule, parts, step, says):
    """Linear by hand: 1 - 40/80 = .5, then 1 - 41/160 = .744; 0, then 1 - 61/120 = .492.

    Half a cosine: of 60/240 .854, of 61/120 .487.
    """
    found = found_in(trl_log(tmp_path, rates_of(schedule, *parts, num_warmup_steps=0)))
    assert [*found] == ["rate jumps"]
    assert (found["rate jumps"].since_step, says in found["rate jumps"].text) == (step, True)


def test_a_warm_up_of_deepspeed_begins_with_two_steps_of_rate_0(tmp_path):
    rates = warm_up_of_deepspeed()
    assert [rate == 0 for rate in rates[:4]] == [True, True, False, False]
    found = found_in(trl_log(tmp_path, rates))
    assert [*found] == ["steps at rate 0"]
    assert "2 of 120 logged steps had a learning rate of 0, up to step 2" in found["steps at rate 0"].text


def test_a_loss_that_reads_0_after_a_nan_is_named(tmp_path):
    """As of transformers 5.19.0 after one NaN loss: the loss reads 0 and the gradient NaN to the end."""
    found = found_in(
        trl_log(tmp_path, loss=lambda step: 0.01 * (step < 50), grad_norm=lambda step: 0.5 if step < 50 else math.nan)
    )
    one = found["not a number"]
    assert (
        one.since_step,
        "grad_norm was NaN or infinite at 71 steps" in one.text,
        "so the weights may be NaN" in one.text,
    ) == (
        50,
        True,
        True,
    )


def verl_log(folder, skips=(), **columns):
    lines = []
    for step in range(1, STEPS + 1):
        data = {"actor/lr": 1e-6, "actor/pg_loss": 0.01, "actor/grad_norm": 0.2, "critic/score/mean": 0.3 + step / 400}
        data |= {name: value(step) for name, value in columns.items()}
        data = {} if step in skips else data
        held_out = {"val-core/gsm8k/acc/mean@1": 0.3 + step / 500 + step / 9000} if step % 10 == 0 else {}
        lines.append(json.dumps({"step": step, "data": data | held_out}))
    (folder / "verl.jsonl").write_text("\n".join(lines))
    return folder / "verl.jsonl"


def test_a_nan_that_later_values_hide_is_named(tmp_path):
    found = found_in(verl_log(tmp_path, **{"actor/pg_loss": lambda step: math.nan if step == 70 else 0.01}), "verl")
    assert [*found] == ["not a number"]
    assert "loss was NaN or infinite at 1 step, not later, so the last value hides it" in found["not a number"].text


def test_an_infinite_loss_is_named_and_an_infinite_gradient_is_not(tmp_path):
    """Mixed precision logs an infinite gradient where it skips a step, as it should."""
    found = found_in(verl_log(tmp_path, **{"actor/pg_loss": lambda step: math.inf if step > 117 else 0.01}), "verl")
    assert [*found] == ["not a number"]
    assert found["not a number"].since_step == 118
    assert "loss was NaN or infinite at 3 steps, at the last step too" in found["not a number"].text
    assert not found_in(verl_log(tmp_path, **{"actor/grad_norm": lambda _: math.inf}), "verl")


def test_an_infinite_step_is_refused_with_its_row(tmp_path):
    path = trl_log(tmp_path)
    log = json.loads(path.read_text())
    log["log_history"][4]["step"] = math.inf
    path.write_text(json.dumps(log))
    with pytest.raises(AblationsError, match=r"trainer_state.json: the step of row 5 is infinite; correct or remove"):
        found_in(path)


CALLS_WITHOUT_A_STEP = """
import wandb
quiet = wandb.Settings(silent=True, console="off", x_disable_stats=True)
run = wandb.init(mode="offline", project="p", name="own", id="own", dir=DIR, settings=quiet)
for step in range(1, 121):
    held_out = {"val-core/gsm8k/acc/mean@1": .3 + step / 500 + step / 9000} if step % 10 == 0 else {}
    of_training = {"actor/lr": 1e-6, "actor/pg_loss": .01, "critic/score/mean": .3 + step / 400}
    run.log({**of_training, **held_out}, step=step)
    if OWN_CALLS and step % 25 == 4:  # a reward function that logs by itself, twice
        run.log({"reward/format": .5})
        run.log({"reward/format": .6})
run.finish()
"""


@pytest.mark.parametrize("own_calls", [True, False])
def test_a_row_that_wandb_drops_after_calls_without_a_step_is_named(tmp_path, own_calls):
    """wandb 0.31.0: the second such call takes the next row, and what training logs for its step is dropped."""
    pytest.importorskip("wandb", reason="W&B is an extra: pip install wandb", exc_type=ImportError)
    code = CALLS_WITHOUT_A_STEP.replace("DIR", repr(str(tmp_path))).replace("OWN_CALLS", str(own_calls))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.glob("wandb/offline-run-*")
    found = found_in(folder, "verl", compute="_step")
    assert [*found] == ["rows overwritten"] * own_calls
    if own_calls:
        assert (
            "5 rows of training are overwritten or lost, at or just before steps 6, 31, 56"
            in found["rows overwritten"].text
        )


def events(folder, *writers, purge_step=None):
    """Event files with the columns of TRL; each writer has (step, {column: value}) in its order."""
    tensorboard = pytest.importorskip("torch.utils.tensorboard", reason="pip install tensorboard", exc_type=ImportError)
    for number, rows in enumerate(writers):
        writer = tensorboard.SummaryWriter(
            str(folder), filename_suffix=f".{number}", purge_step=purge_step if number else None
        )
        for step, values in rows:
            for name, value in values.items():
                writer.add_scalar(name, value, step, walltime=1.8e9 + 1000 * number * (purge_step is not None) + step)
        writer.close()
    return folder


def training(step, loss=0.01):
    return step, {"train/loss": loss, "train/learning_rate": 1e-6, "train/reward": 0.3 + step / 400}


def evaluation(step):
    return step, {"eval/reward": 0.3 + step / 500 + step / 9000}


def in_order(first=1, last=STEPS):
    return [
        row
        for step in range(first, last + 1)
        for row in [training(step), *([evaluation(step)] if step % 10 == 0 else [])]
    ]


def test_rows_of_two_processes_in_one_folder_are_named(tmp_path):
    second = [training(step, loss=0.02) for step in range(1, STEPS + 1)]
    found = found_in(events(tmp_path, in_order(), second))
    assert [*found] == ["rows overwritten"]
    assert "120 rows of training are overwritten or lost" in found["rows overwritten"].text


def test_evaluations_that_the_page_of_tensorboard_hides_are_named(tmp_path):
    """tensorboard 2.21.0: a score of step 20 that comes after those of 30, 40 and 50 takes these off the page."""
    rows = [row for row in in_order() if row != evaluation(20)]
    rows.insert(rows.index(training(58)), evaluation(20))
    found = found_in(events(tmp_path, rows))
    assert [*found] == ["evaluations off the page"]
    assert "hides 3 of 12 evaluations" in found["evaluations off the page"].text
    assert "of steps 30, 40, 50" in found["evaluations off the page"].text


ENDED_AT_A_MULTIPLE = {"scheduler_specific_kwargs": {"num_cycles": 3}}
SOUND_SCHEDULES = {
    "linear": {"num_warmup_steps": 6},
    "cosine": {"num_warmup_steps": 6},
    "cosine_with_restarts": {"num_warmup_steps": 5, **ENDED_AT_A_MULTIPLE},
    "warmup_stable_decay": {"num_warmup_steps": 10, "scheduler_specific_kwargs": {"num_decay_steps": 30}},
    "inverse_sqrt": {"num_warmup_steps": 10},
    "polynomial": {"num_warmup_steps": 0, "scheduler_specific_kwargs": {"power": 0.5}},
    "constant_with_warmup": {"num_warmup_steps": 1},
}


@pytest.mark.parametrize("every", [1, 7, 10])
@pytest.mark.parametrize("schedule", SOUND_SCHEDULES)
def test_the_schedules_of_transformers_are_sound(tmp_path, schedule, every):
    rates = rates_of(schedule, (STEPS, STEPS), **SOUND_SCHEDULES[schedule])
    assert found_in(trl_log(tmp_path, rates, every)) == {}


def test_other_sound_logs_have_no_finding(tmp_path):
    steps_down = [1e-3 * 0.3 ** (step // 40) for step in range(STEPS)]
    assert found_in(trl_log(tmp_path, steps_down)) == {}
    resumed_alike = rates_of("linear", (STEPS, 50), (STEPS, 70), num_warmup_steps=10)
    assert found_in(trl_log(tmp_path, resumed_alike)) == {}
    assert found_in(trl_log(tmp_path, grad_norm=lambda step: math.nan if step in (1, 2, 4) else 0.5)) == {}  # FP16
    assert found_in(verl_log(tmp_path), "verl") == {}
    turning = [5e-4 * (1 + math.cos(3 * math.pi * step / STEPS)) for step in range(STEPS)]
    assert turning[40] == 0
    assert found_in(trl_log(tmp_path, turning)) == {}


def test_a_step_that_takes_long_under_a_schedule_of_compute_is_sound():
    """A linear schedule over 200 GPU-hours; step 60 takes 12 hours, all others one."""
    hours = [step + 11.0 * (step >= 60) for step in range(1, STEPS + 1)]
    steps = [
        {
            "step": step,
            "compute_gpu_hours": spent,
            "learning_rate": 1e-3 * (1 - spent / 200),
            "pass_rate": 0.3 + step / 400,
        }
        for step, spent in enumerate(hours, start=1)
    ]
    assert diagnose(History(name="paused", steps=steps)) == []
    jumps = [{**row, "learning_rate": row["learning_rate"] / (2 if row["step"] > 80 else 1)} for row in steps]
    assert [one.rule for one in diagnose(History(name="jumps", steps=jumps))] == ["rate jumps"]


def test_a_distance_of_rows_that_a_resume_changes_is_sound(tmp_path):
    """Rows of training every 5 steps and later every 10, and evaluations every 25 in rows of their own."""
    at = {*range(5, 400, 5), *range(400, 701, 10)}
    rows = [{"step": step, "loss": 0.01, "learning_rate": 1e-6, "reward": 0.3 + step / 2000} for step in sorted(at)]
    rows += [{"step": step, "eval_reward": 0.3 + step / 2000 + step / 9e4} for step in range(25, 701, 25)]
    rows.sort(key=lambda row: row["step"])
    (state := tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": rows}))
    assert found_in(state) == {}


def test_a_restart_that_tensorboard_purges_is_sound(tmp_path):
    folder = events(tmp_path, in_order(last=70), in_order(first=51), purge_step=51)
    assert found_in(folder) == {}


def test_every_rule_is_documented():
    text = (Path(__file__).parents[3] / "docs/doctor.md").read_text()
    assert [rule for rule in LIBRARY_RULES if f"| {rule} |" not in text] == []
