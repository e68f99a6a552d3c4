"""Runs whose recipe asks for vLLM: refused where it cannot serve them, and otherwise like any other run."""

import sys
from pathlib import Path

import pytest
from trainer.tiny import tiny_recipe

from scalerl.errors import Rejected
from scalerl.processes.process_cluster import WallCluster
from scalerl.recipe import ResolvedRecipe
from scalerl.run.assemble import assemble
from scalerl.schedules import SCHEDULES

SERVED = {"model": {"hidden": 64, "layers": 1, "heads": 2, "mlp": 16}, "generator": {"type": "vllm"}}


def wall(generators, learner=None, **changes):
    recipe = tiny_recipe(**SERVED, **changes).model_dump()
    cluster = {"type": "wall", "generators": generators, "slots": 8}
    return ResolvedRecipe.model_validate(recipe | {"cluster": cluster, "learner": learner or {"type": "torch"}})


def test_a_model_that_cannot_be_served_is_refused_before_anything_is_trained(tmp_path):
    recipe = tiny_recipe(model={"hidden": 16, "heads": 2}, generator={"type": "vllm"})
    with pytest.raises(ValueError, match="cannot serve a model with heads of size 8 on a CPU"):
        assemble(recipe, 0, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_vllm_is_named_with_what_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(Rejected, match=r"install it with `pip install .*\[vllm\]'`"):
        assemble(tiny_recipe(**SERVED), 0, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.engines
@pytest.mark.timeout(300)
@pytest.mark.parametrize("learner", [{"type": "torch"}, {"type": "fsdp", "ranks": 2}], ids=["torch", "fsdp"])
def test_some_steps_on_the_virtual_clock(tmp_path, learner):
    recipe = tiny_recipe(**SERVED, zero_variance="keep", curriculum={"type": "uniform"}, learner=learner)
    cluster = assemble(recipe, 0, tmp_path).cluster
    try:
        steps = [SCHEDULES["pipeline"](cluster) for _ in range(6)]
    finally:
        cluster.close()
    assert steps[0].update.metrics["mismatch"] <= 1e-5
    assert {int(version) for group in steps[-1].groups for r in group.rollouts for version in r.versions} - {0}


@pytest.mark.engines
@pytest.mark.timeout(400)
def test_some_steps_of_two_processes_that_each_have_vllm_beside_two_that_each_have_a_share_of_the_learner(tmp_path):
    pytest.importorskip("deepspeed", reason="DeepSpeed is not installed; `make engines` installs it")
    learner = {"type": "deepspeed", "zero": 3, "ranks": 2}
    recipe = wall(2, off_policy={"type": "ppo_off_policy", "k": 1}, zero_variance="keep", learner=learner)
    cluster = assemble(recipe, 0, tmp_path).cluster
    assert isinstance(cluster, WallCluster)
    try:
        cluster.start()
        steps = [SCHEDULES["ppo_off_policy"](cluster) for _ in range(4)]
        spent, elapsed = cluster.device_seconds(), cluster.elapsed_s
        with cluster.paused():
            state = cluster.state_dict()
            written = cluster.learner.write_kept(tmp_path)
        assert cluster.ranks is not None
        processes = [*cluster.fleet.process_ids, *cluster.ranks.fleet.process_ids]
    finally:
        cluster.close()
    assert not any(Path(f"/proc/{process}").exists() for process in processes)
    stamped = [{int(v) for group in step.groups for r in group.rollouts for v in r.versions} for step in steps]
    assert stamped == [{0}, {1}, {2}, {3}]
    assert max(step.update.metrics["mismatch"] for step in steps) <= 1e-5
    assert [sum(spent[role].values()) for role in ("generator", "trainer")] == pytest.approx(
        [2 * elapsed] * 2, rel=0.01
    )
    # In another attempt the same groups go on, whoever had them; each rank reads what the ranks wrote.
    state["learner"]["kept"] = [str(tmp_path / part["file"]) for part in written]
    again = assemble(recipe, 0, tmp_path).cluster
    try:
        again.load_state_dict(state)
        again.start()
        more = [SCHEDULES["ppo_off_policy"](again) for _ in range(2)]
    finally:
        again.close()
    assert [step.version for step in more] == [4, 5]
    assert max(step.update.metrics["mismatch"] for step in more) <= 1e-5
