"""On a device whose tensors meet no others, a step computes what it does on the CPU and waits at named places alone.

`trainer.fake_device` is that device; a GPU is not needed.
"""

import json
import os
import subprocess
import sys

import pytest
from trainer.learner_cases import STEPS

ONCE_PER_PASS = ["batch_loss.on_the_host", "torch_engine.norm"]
"""The columns of a step, and the norm of its gradient, which decides whether the step is taken."""
WITH_A_CRITIC = ["batch_loss.rows_with_gradient", *ONCE_PER_PASS, "batch_loss.on_the_host", "torch_engine.norm"]
"""Which rows have an advantage, which only the device knows; the critic's own columns and norm."""
NAMED = {
    "decoupled": 2 * ONCE_PER_PASS,
    "penalty in the reward": ["torch_learner.advantages", *ONCE_PER_PASS],
    "critic": 2 * WITH_A_CRITIC,
}
LIBRARY = "transformers_policy.through"
"""Waits of the library's experts, which it looks up one by one."""


@pytest.fixture(scope="module")
def steps():
    """What `trainer.fake_device_steps` prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "trainer.fake_device_steps"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_device_finds_what_a_gpu_would_refuse_or_wait_for(steps):
    faults = steps["faults"]
    assert "tensors of fakegpu and of the host meet" in faults.pop("mixed")
    assert "random numbers of the device" in faults.pop("random")
    assert faults.pop("nothing") == 0
    assert set(faults) == {"item", "branch", "boolean index", "copy", "into the host's", "nonzero"}
    assert set(faults.values()) == {1}


@pytest.mark.parametrize("name", STEPS)
def test_the_host_waits_for_the_device_only_at_named_places(name, steps):
    waits = [place for place in steps[name]["waits"] if place != LIBRARY]
    assert waits == NAMED.get(name, ONCE_PER_PASS)
    assert (LIBRARY in steps[name]["waits"]) == (name == "experts")


@pytest.mark.parametrize("name", [name for name in STEPS if name != "half precision"])
def test_a_step_on_the_device_is_the_step_on_the_cpu(name, steps):
    columns = steps[name]["columns"]
    assert columns["skipped"] == [False, False]
    for column, (found, expected) in columns.items():
        # A second epoch begins with weights of which AdamW made a whole step out of gradients of rounding errors.
        rel = 1e-3 if STEPS[name].get("epochs", 1) > 1 else 1e-5
        assert found == pytest.approx(expected, rel=rel, abs=2e-6), column
