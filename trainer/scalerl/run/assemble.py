"""The parts of one run, built from its recipe and seed. This is the only place to plug in another engine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scalerl.cluster.cluster import Cluster
from scalerl.cluster.placement import PlacedUnit
from scalerl.cluster.virtual_cluster import VirtualCluster
from scalerl.evaluation.drift import policy_drift
from scalerl.evaluation.meter import Meter
from scalerl.generator.generator import Maker
from scalerl.generator.interruption_phrase import rollout_phrase, tokens_with_phrase
from scalerl.generator.make import make_generator, make_vllm_generator, with_episodes
from scalerl.generator.vllm_engine import refuse_unservable
from scalerl.learner.learner import Learner
from scalerl.learner.make import rank_learner
from scalerl.learner.torch_learner import TorchLearner
from scalerl.memory.forecast import PromptLengths, evaluation_rows
from scalerl.memory.shape import shape_of
from scalerl.model.build import new_policy
from scalerl.model.policy import Policy, frozen_copy
from scalerl.processes.coordinator import Coordinator
from scalerl.processes.evaluator_process import EvaluatorWork
from scalerl.processes.generator_process import GeneratorWork
from scalerl.processes.launch import Launcher, LocalLauncher, local_units, units_of
from scalerl.processes.process_cluster import WallCluster
from scalerl.processes.remote_learner import RemoteLearner
from scalerl.processes.trainer_process import LOCAL, TrainerWork
from scalerl.prompts.mixed_pool import make_pool
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.episodes import Episodes
from scalerl.recipe.models import context_of, model_sha256
from scalerl.run.meter import make_meter, meter_of
from scalerl.run.pending import PendingEvaluations
from scalerl.run.run_folder import RunFolder
from scalerl.run.warm_start import Listener, load_or_train
from scalerl.tasks import TaskError, Tasks, all_tasks
from scalerl.tasks.lengths import context_fault
from scalerl.tokens import Tokenizer, make_tokenizer
from scalerl.tokens.reader import Reader
from scalerl.weights.broadcast import BroadcastStore
from scalerl.weights.folder import KeptStore
from scalerl.weights.hugging_face import Weights
from scalerl.weights.shared_memory import SharedMemoryStore
from scalerl.weights.store import WeightStore


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Parts that the training loop works with."""

    cluster: Cluster
    """Learner, prompts and generators."""
    tasks: Tasks
    meter: Meter
    """Evaluators for this process."""
    reader: Reader
    """Reader of the policy's output."""
    pending: PendingEvaluations | None
    """Evaluations in progress, if an evaluator measures instead of this process."""
    start: Path
    """Folder of the model that the run starts from, in Hugging Face format, with its tokenizer."""
    start_sha256: str
    """SHA-256 of that folder."""


@dataclass(frozen=True, kw_only=True)
class _Processes:
    """Launcher, units and store of a run with processes: on the wall clock, or with a sharded learner."""

    launcher: Launcher
    units: Sequence[PlacedUnit]
    store: WeightStore
    host: str
    """Host where trainer ranks meet."""


def _processes(recipe: ResolvedRecipe, weights: Weights, coordinator: Coordinator | None) -> _Processes | None:
    """Processes of this machine or of the nodes whose agents join the coordinator; None for a run in one process."""
    if recipe.cluster.type == "virtual" and recipe.learner.type == "torch":
        return None
    if coordinator is None:
        store = SharedMemoryStore(weights)
        return _Processes(launcher=LocalLauncher(), units=local_units(recipe), store=store, host=LOCAL)
    coordinator.await_agents()
    units = units_of(recipe, [torch.cuda.device_count(), *coordinator.devices])
    store = BroadcastStore(
        weights,
        coordinator,
        RunFolder(coordinator.run).weights,
        ranks=[unit.node for unit in units if unit.role == "trainer"],
        readers=[unit.node for unit in units if unit.role == "generator"],
    )
    return _Processes(launcher=coordinator, units=units, store=store, host=coordinator.host)


def assemble(
    recipe: ResolvedRecipe,
    seed: int,
    warm_starts: Path,
    listener: Listener | None = None,
    *,
    coordinator: Coordinator | None = None,
    evaluations: Path | None = None,
) -> Parts:
    """Build the parts in their state before the first step; train the warm start if `warm_starts` lacks it.

    Agents of other nodes connect to the `coordinator`. The folder `evaluations` holds the weights that an evaluator, if
    any, has yet to measure.
    """
    shape = shape_of(recipe.model)
    refuse_unservable(recipe, head_size=shape.head_size, heads=shape.heads, kv_heads=shape.kv_heads, mlp=shape.mlp)
    tokenizer = make_tokenizer(recipe.model, thinks=recipe.generation.thinks)
    for doubt in tokenizer.doubts:
        print(f"model: warning: {doubt}", flush=True)
    tasks = _tasks_of(recipe, tokenizer)
    task = tasks.trained
    policy = new_policy(recipe)
    start = load_or_train(policy, task, recipe, seed, warm_starts, listener)
    if drawn := policy.initial_adapter(torch.Generator().manual_seed(seed)):
        policy.import_weights(drawn)
    prompts = PromptLengths.of(recipe, task, tasks.downstream)
    # One copy of the initial weights, shared by everything that compares with them.
    origin = policy.start_policy()
    processes = _processes(recipe, policy.exported_weights(), coordinator)
    kept = None
    if recipe.has_evaluator:
        assert evaluations is not None, "a run with an evaluator needs a folder for its weights"
        kept = KeptStore(evaluations, policy.exported_weights())
    if processes and recipe.learner.type != "torch":
        learner: Learner = _learner_in_ranks(recipe, seed, policy, start, processes, kept)
    else:
        learner = TorchLearner(policy, recipe, origin=origin)
    measured_policy = learner.policy or frozen_copy(policy)
    rows = 1 if kept else evaluation_rows(recipe, shape, prompts)  # with an evaluator, only scoring is left
    parts: dict[str, Any] = {
        "recipe": recipe,
        "learner": learner,
        "pool": make_pool(recipe, task, (seed, 3)),
        "task": task,
        "rng": np.random.default_rng((seed, 4)),
        "off_clock": with_episodes(
            partial(
                make_generator,
                recipe,
                measured_policy,
                slots=rows,
                max_prompt=prompts.measured,
                decodes_learner=learner.policy is not None,
            ),
            recipe,
            clock="off",
        ),
    }
    generators, slots, pending = recipe.cluster.generators, recipe.cluster.slots, None
    if recipe.cluster.type == "virtual" or processes is None:
        maker = _maker(recipe, policy, start, slots=generators * slots, max_prompt=prompts.trained)
        cluster: Cluster = VirtualCluster(generator=maker(), **parts)
    else:
        maker = _maker(recipe, policy, start, slots=slots, max_prompt=prompts.trained)
        work = GeneratorWork(maker=maker, store=processes.store, threads=recipe.cluster.generator_threads)
        evaluator = None
        if kept:
            maker_of_meter = partial(make_meter, recipe, seed, start)
            evaluator = EvaluatorWork(maker=maker_of_meter, store=kept, threads=recipe.cluster.generator_threads)
        cluster = WallCluster(
            launcher=processes.launcher, units=processes.units, work=work, evaluator=evaluator, **parts
        )
        if kept and cluster.evaluator:
            pending = PendingEvaluations(cluster, cluster.evaluator, kept)
    return Parts(
        cluster=cluster,
        pending=pending,
        tasks=tasks,
        meter=meter_of(recipe, seed, tasks, tokenizer.reader, partial(policy_drift, start=origin)),
        reader=tokenizer.reader,
        start=start,
        start_sha256=model_sha256(start),
    )


def _tasks_of(recipe: ResolvedRecipe, tokenizer: Tokenizer) -> Tasks:
    """The tasks of a run, described in the log; TaskError if episodes are longer than the model can read."""
    tasks = all_tasks(recipe.tasks, recipe.evaluation.downstream, tokenizer)
    for line in tasks.lines():
        print(line, flush=True)
    most = tokens_with_phrase(recipe.generation, rollout_phrase(recipe, tokenizer))
    prompts = (*tasks.trained.train, *tasks.trained.validation)
    for settings in recipe.tasks:
        if isinstance(settings, Episodes):
            its = [prompt for prompt in prompts if prompt.task == settings.title]
            if fault := context_fault(settings, its, most, context_of(recipe.model)):
                raise TaskError(f"task {settings.title!r}: {fault}")
    return tasks


def _maker(recipe: ResolvedRecipe, policy: Policy, start: Path, *, slots: int, max_prompt: int) -> Maker:
    """Makes a generator for `slots` rollouts and prompts of up to `max_prompt` tokens, in any process."""
    if recipe.generator.type == "vllm":
        made: Maker = partial(make_vllm_generator, recipe, start, slots=slots, max_prompt=max_prompt)
    else:
        decoding = frozen_copy(policy)
        decoding.head_parts = recipe.generator.head_parts
        if recipe.generator.products == "bfloat16":
            decoding.precision = replace(decoding.precision, products=torch.bfloat16)
            decoding.rounds_factors_only = True
        made = partial(make_generator, recipe, decoding, slots=slots, max_prompt=max_prompt)
    return partial(with_episodes, made, recipe, clock=recipe.cluster.type)


def _learner_in_ranks(
    recipe: ResolvedRecipe, seed: int, policy: Policy, start: Path, processes: _Processes, kept: KeptStore | None
) -> RemoteLearner:
    """The learner whose ranks are processes, on this node or others."""
    orders = TrainerWork(
        host=processes.host,
        maker=partial(rank_learner, recipe, start, seed=seed),
        store=processes.store,
        threads=recipe.threads,
        evaluations=kept,
    )
    return RemoteLearner(
        recipe=recipe,
        launcher=processes.launcher,
        units=processes.units,
        work=orders,
        size=policy.size,
        start=start,
    )
