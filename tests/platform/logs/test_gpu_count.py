"""The GPUs that verl's own throughput implies are compared with --gpus."""

import json

import numpy as np
import pytest
from imported import study_of_logs

from ablations.logs.meaning import LogMeaning

SCORE = "val-core/math/acc/mean@8"


def warnings(tmp_path, own_gpus: int, **meaning) -> tuple[str, ...]:
    """A log as verl writes one on so many GPUs; verl v0.7.0, verl/trainer/ppo/metric_utils.py, has
    "perf/throughput": total_num_tokens / (time * n_gpus)."""
    rng, rows = np.random.default_rng(0), []
    for step in range(41):
        tokens, time = int(rng.integers(1_000_000, 2_000_000)), float(rng.uniform(50, 80))
        of_step = {
            "perf/total_num_tokens": tokens,
            "perf/time_per_step": time,
            "perf/throughput": tokens / (time * own_gpus),
        }
        rows.append({"step": step, "data": of_step if step else {SCORE: 0.2}})
        if step and step % 5 == 0:
            rows[-1]["data"][SCORE] = 0.2 + step / 100
    (path := tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = study_of_logs([path], LogMeaning(**meaning)).runs
    return run.warnings


def test_another_number_of_gpus_than_the_log_implies_is_said(tmp_path):
    (said,) = warnings(tmp_path, 16, trainer="verl", gpus=8)
    assert said.startswith("perf/throughput is that of 16 GPUs, but --gpus says 8; compute counts the latter")
    assert said.endswith('as in "cumsum(perf/time_per_step) * 16 / 3600"')


@pytest.mark.parametrize("gpus", [8, 64])
def test_the_right_number_and_an_own_compute_say_nothing(gpus, tmp_path):
    assert warnings(tmp_path, gpus, trainer="verl", gpus=gpus) == ()
    assert warnings(tmp_path, gpus, trainer="verl", compute="cumsum(perf/time_per_step) * 3 / 3600") == ()
