"""Trainer ranks as processes of the wall clock: they train as one process does, and whichever dies, the run says so."""

import pickle
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from trainer.learner_cases import random_groups
from trainer.tiny import random_policy, tiny_recipe
from trainer.wall import versions_of

from scalerl.generator.request import Request
from scalerl.learner.make import rank_learner
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.device import Rejected
from scalerl.processes.launch import LocalLauncher, local_units
from scalerl.processes.process_cluster import WallCluster
from scalerl.processes.remote_learner import RemoteLearner
from scalerl.processes.trainer_process import LOCAL, TrainerWork
from scalerl.recipe import ResolvedRecipe
from scalerl.run.assemble import assemble
from scalerl.run.pending import Due
from scalerl.run.train_row import progress_of
from scalerl.schedules import SCHEDULES
from scalerl.tokens.symbols import EOS_ID
from scalerl.weights.folder import FolderStore
from scalerl.weights.shared_memory import SharedMemoryStore

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

CLOSE = 1e-5
"""Between FP32 sums in another order."""
LEARNERS = {
    "zero2": {"type": "deepspeed", "zero": 2, "ranks": 2},
    "zero3": {"type": "deepspeed", "zero": 3, "ranks": 2},
    "fsdp": {"type": "fsdp", "ranks": 2},
}


def recipe_of(learner, **changes):
    settings = {"model": {"layers": 2}, "optimiser": {"warmup_steps": 0, "micro_batch_tokens": 40}}
    recipe = tiny_recipe(**settings, kl={"coefficient": 0.1}, zero_variance="keep", **changes).model_dump()
    return ResolvedRecipe.model_validate(recipe | {"cluster": {"type": "wall"}, "learner": learner})


@pytest.fixture(scope="module", autouse=True)
def deepspeed():
    pytest.importorskip("deepspeed", reason="DeepSpeed is not installed; `make engines` installs it")


@contextmanager
def remote(recipe, folder, store_of: Callable = SharedMemoryStore, maker_of: Callable = rank_learner):
    """The ranks of that recipe, started from a model's folder that is made first."""
    policy = random_policy(recipe)
    if not folder.exists():
        policy.save(folder, eos_token_id=EOS_ID)
    store = store_of(policy.exported_weights())
    maker = partial(maker_of, recipe, folder)
    work = TrainerWork(host=LOCAL, maker=maker, store=store, threads=1)
    units = local_units(recipe)
    learner = RemoteLearner(
        recipe=recipe, launcher=LocalLauncher(), units=units, work=work, size=policy.size, start=folder
    )
    try:
        yield learner, store
    finally:
        learner.close()
        store.close()


def saved(learner, folder):
    """Its state as a checkpoint gives it back; nothing of a network comes to the coordinator."""
    state = learner.state_dict()
    assert len(pickle.dumps(state)) < 5000 < 4 * learner.size.parameters
    parts = learner.write_kept(folder)
    assert [part["file"].rsplit("-", 1)[0] for part in parts] == [
        f"rank-{rank}-of-{len(parts)}" for rank in range(learner.recipe.learner.ranks)
    ]
    return state | {"kept": [str(folder / part["file"]) for part in parts]}


def weight_gap(ours, theirs):
    assert ours.keys() == theirs.keys()
    return max(float((tensor - theirs[name]).abs().max()) for name, tensor in ours.items())


def losses_of(learner, groups, count):
    return [learner.step(groups, 0.0).metrics["loss"] for _ in range(count)]


@pytest.mark.parametrize("kind", LEARNERS)
def test_ranks_train_as_one_process_and_publish_what_it_has_and_one_rank_takes_over(tmp_path, kind):
    recipe = recipe_of(LEARNERS[kind])
    policy = random_policy(recipe)
    groups = random_groups(policy)
    alone = TorchLearner(policy, recipe)
    store_of = SharedMemoryStore if kind == "zero2" else partial(FolderStore, tmp_path / "store")
    with remote(recipe, tmp_path / "model", store_of) as (learner, store):
        learner.book("wait_rollouts")
        processes = learner.fleet.process_ids
        ours, expected = losses_of(learner, groups, 3), losses_of(alone, groups, 3)
        assert ours == pytest.approx(expected, abs=CLOSE)
        assert len({round(loss, 4) for loss in expected}) == 3
        learner.publish(store, 1)
        assert weight_gap(store.fetch(1, 3), alone.weights()) < CLOSE
        # What is asked for after another step is a publication that nobody is told of; the next takes its number.
        assert losses_of(learner, groups, 1) == pytest.approx(losses_of(alone, groups, 1), abs=CLOSE)
        assert weight_gap(learner.weights(), alone.weights()) < CLOSE
        assert weight_gap(store.fetch(1, 3), alone.weights()) > 1e-4
        assert losses_of(learner, groups, 1) == pytest.approx(losses_of(alone, groups, 1), abs=CLOSE)
        learner.publish(store, 2)
        assert weight_gap(store.fetch(2, 5), alone.weights()) < CLOSE
        learner.book("off")
        state = saved(learner, tmp_path)
        for account in learner.accounts:
            spent = account.at(0.0)
            assert spent.keys() == {"forward_backward", "sync", "wait_rollouts"}
    assert not any(Path(f"/proc/{process}").exists() for process in processes)
    assert state["version"] == 5
    fewer = recipe_of({**LEARNERS[kind], "ranks": 1})
    with remote(fewer, tmp_path / "model") as (learner, _):
        learner.load_state_dict(state)
        later = losses_of(alone, groups, 2)
        assert losses_of(learner, groups, 2) == pytest.approx(later, abs=CLOSE)
        state = saved(learner, tmp_path)
    with remote(recipe, tmp_path / "model") as (learner, _):
        learner.load_state_dict(state)
        assert losses_of(learner, groups, 2) == pytest.approx(losses_of(alone, groups, 2), abs=CLOSE)


def without_deepspeed(recipe, folder, ranks):
    """Instead of a learner: a rank whose machine lacks what the recipe asks for."""
    raise Rejected(f"learner 'deepspeed' cannot be imported on rank {ranks.rank}")


def test_a_rank_that_cannot_train_on_its_machine_says_why(tmp_path):
    recipe = recipe_of(LEARNERS["fsdp"])
    refused = pytest.raises(Rejected, match=r"^learner 'deepspeed' cannot be imported on rank [01]$")
    with remote(recipe, tmp_path / "model", maker_of=without_deepspeed) as (learner, _), refused:
        learner.weights()


def test_measuring_within_a_round_reaches_the_weights_of_that_moment_and_leaves_generators_theirs(tmp_path):
    off_policy = {"type": "ppo_off_policy", "k": 3}
    recipe = tiny_recipe(off_policy=off_policy, zero_variance="keep", optimiser={"learning_rate": 1e-2}).model_dump()
    cluster = {"type": "wall", "generators": 2, "slots": 12}
    recipe = ResolvedRecipe.model_validate(recipe | {"cluster": cluster, "learner": LEARNERS["fsdp"]})
    cluster = assemble(recipe, 0, tmp_path).cluster
    request = Request(prompt=cluster.task.validation[0], group=0, index=0, seed=1)
    steps, measured = [], []
    try:
        cluster.start()
        for _ in range(7):
            steps.append(SCHEDULES["ppo_off_policy"](cluster))
            (finished,) = cluster.sample([request])
            measured.append((set(finished.rollout.versions.tolist()), finished.rollout.logprobs[0]))
    finally:
        cluster.close()
    assert [versions_of(step) for step in steps] == [{0}, {0}, {0}, {3}, {3}, {3}, {6}]
    assert max(step.update.metrics["mismatch"] for step in (steps[0], steps[3], steps[6])) < CLOSE
    assert [versions for versions, _ in measured] == [{version} for version in range(1, 8)]
    assert len({round(float(logprob), 6) for _, logprob in measured}) == 7


SERVED = {"hidden": 64, "layers": 1, "heads": 2, "mlp": 32}


@pytest.mark.parametrize("kind", ["torch", "vllm"])
def test_ranks_publish_what_the_evaluator_measures_and_their_wait_for_it_has_a_name(tmp_path, kind):
    if kind == "vllm":
        pytest.importorskip("vllm", reason="vLLM is not installed; `make engines` installs it")
    recipe = tiny_recipe(model=SERVED, zero_variance="keep", optimiser={"learning_rate": 1e-2}).model_dump()
    cluster = {"type": "wall", "generators": 1, "slots": 12, "evaluator": True}
    changes = {"cluster": cluster, "learner": LEARNERS["fsdp"], "generator": {"type": kind}}
    recipe = ResolvedRecipe.model_validate(recipe | changes)
    parts = assemble(recipe, 0, tmp_path, evaluations=tmp_path / "evaluations")
    cluster, pending, rows = parts.cluster, parts.pending, []
    assert isinstance(cluster, WallCluster)
    assert pending is not None

    def is_measured():
        rows.extend(pending.take_measured())
        return not len(pending)

    def measure(index):
        pending.add(Due(index=index, reading=index, progress=progress_of(cluster), wall_s=0.0))
        cluster.await_evaluator(is_measured)
        return rows[-1][1].held_out[0]

    try:
        first = measure(0)
        assert first["kl_start"] == pytest.approx(0, abs=1e-8)
        cluster.start()
        for _ in range(3):
            SCHEDULES[recipe.off_policy.type](cluster)
        second = measure(1)
        assert second["kl_start"] > 1e-5
        assert [due.progress.step for due, _ in rows] == [0, 3]
        if kind == "torch":
            (expected,) = parts.meter.held_out.measure(cluster, 1)
            assert second.pop("kl_start") == pytest.approx(expected.pop("kl_start"), abs=CLOSE)
            assert second == expected
        else:
            assert all(measured.probe_gap < 1e-3 for _, measured in rows)
        SCHEDULES[recipe.off_policy.type](cluster)
        spent = cluster.device_seconds()
        assert spent["trainer"]["wait_evaluator"] > 0
        assert {"evaluate", "sync", "wait_weights"} <= spent["evaluator"].keys()
        assert sum(spent["evaluator"].values()) == pytest.approx(cluster.elapsed_s, rel=0.01)
        total = sum(sum(spent[role].values()) for role in ("generator", "trainer"))
        assert total == pytest.approx(3600 * cluster.compute_gpu_hours, rel=0.01)
    finally:
        cluster.close()
