"""What dies inside of vLLM is noticed at once, started again by the cluster, and nothing of it is left."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from trainer.tiny import tiny_recipe
from waiting import wait_until

from scalerl.errors import Interrupted
from scalerl.generator.make import make_vllm_generator
from scalerl.generator.request import Request
from scalerl.model.build import new_policy
from scalerl.recipe import ResolvedRecipe
from scalerl.run.assemble import assemble
from scalerl.schedules import SCHEDULES
from scalerl.tasks import all_tasks
from scalerl.tokens import make_tokenizer

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

SERVED = {"model": {"hidden": 64, "layers": 1, "heads": 2, "mlp": 16}}
NOTICED_S = 10.0


def wall(**generator):
    settings = {"cluster": {"type": "wall", "generators": 1, "slots": 8}, "generator": {"type": "vllm", **generator}}
    return ResolvedRecipe.model_validate(tiny_recipe(**SERVED, zero_variance="keep").model_dump() | settings)


def members(groups):
    """The processes of these process groups; what has ended is not among them."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
            if state != "Z" and int(group) in groups:
                found.append(int(stat.parent.name))
    return found


def kill(group, title):
    """Kill the process of the group that has this title, which vLLM gives it; the time at which it was killed."""
    titled = [one for one in members({group}) if title in Path(f"/proc/{one}/cmdline").read_bytes().decode()]
    assert len(titled) == 1
    os.kill(titled[0], signal.SIGKILL)
    return time.monotonic()


@pytest.mark.parametrize(
    ("settings", "titles"),
    [
        ({"driver": "async", "tensor_parallel": 2}, ["VLLM::Worker_TP1", "VLLM::EngineCore"]),
        ({"driver": "steps", "tensor_parallel": 2}, ["VLLM::Worker_TP1"]),
    ],
    ids=["async", "steps"],
)
def test_a_killed_worker_or_engine_is_a_dead_generator_that_is_started_again(tmp_path, settings, titles):
    recipe = wall(**settings)
    cluster = assemble(recipe, 0, tmp_path).cluster
    groups = set()
    try:
        cluster.start()
        steps = [SCHEDULES["pipeline"](cluster) for _ in range(2)]
        for deaths, title in enumerate(titles, start=1):
            (group,) = cluster.fleet.process_ids
            groups.add(group)
            killed = kill(group, title)
            while len(cluster.news) < deaths:
                cluster.catch_up()
                assert time.monotonic() < killed + NOTICED_S, f"{title} is dead, and nobody says so"
                time.sleep(0.05)
            assert "generator 0 died" in cluster.news[-1]
            steps += [SCHEDULES["pipeline"](cluster) for _ in range(2)]
        assert [step.version for step in steps] == list(range(len(steps)))
        assert all(len(group.rollouts) == 4 for step in steps for group in step.groups)
        assert steps[0].update.metrics["mismatch"] <= 1e-5
        groups.update(cluster.fleet.process_ids)
        assert len(members(groups)) >= 3
    finally:
        cluster.close()
    wait_until(lambda: not members(groups), "the end of all processes", limit_s=NOTICED_S)


def test_an_engine_that_dies_while_it_takes_weights_is_dead_at_once(tmp_path):
    recipe = wall(driver="async")
    policy = new_policy(recipe)
    policy.init_weights(torch.Generator().manual_seed(0))
    policy.save(tmp_path, eos_token_id=1)
    generator = make_vllm_generator(recipe, tmp_path, slots=4, max_prompt=8)
    try:
        (core,) = (process.pid for process in generator.engine.processes)
        os.kill(core, signal.SIGSTOP)  # it gets the order, and does not answer
        with ThreadPoolExecutor(1) as thread:
            update = thread.submit(generator.set_weights, policy.exported_weights(), 1)
            os.kill(core, signal.SIGKILL)
            with pytest.raises(Interrupted, match="did not take new weights"):
                update.result(NOTICED_S)
    finally:
        generator.close()


def test_an_update_that_fails_ends_the_engine_and_its_processes(tmp_path):
    recipe = wall(driver="async")
    policy = new_policy(recipe)
    policy.init_weights(torch.Generator().manual_seed(0))
    policy.save(tmp_path, eos_token_id=1)
    prompt = all_tasks(recipe.tasks, (), make_tokenizer(recipe.model)).trained.train[0]
    generator = make_vllm_generator(recipe, tmp_path, slots=4, max_prompt=8)
    try:
        (core,) = (process.pid for process in generator.engine.processes)
        generator.submit([Request(prompt=prompt, group=0, index=0, seed=7)])
        generator.step()
        weights = policy.exported_weights()
        name = next(iter(weights))
        with pytest.raises(Interrupted, match="did not take new weights"):
            generator.set_weights({**weights, name: torch.zeros(3, 5)}, 1)
        with pytest.raises(Interrupted):
            generator.check()
        wait_until(lambda: not Path(f"/proc/{core}").exists(), "the end of the engine", limit_s=NOTICED_S)
    finally:
        generator.close()
