"""Peak memory of the processes of a run, by part."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scalerl.memory.shape import ModelShape, shape_of
from scalerl.model.size import SPLIT_AT_ONCE, logits_at_once
from scalerl.recipe import ResolvedRecipe
from scalerl.tasks import Task
from scalerl.tasks.lengths import longest_prompt

MIB = 2**20
LIBRARIES = 260 * MIB
"""Memory of a process that has imported torch and this package."""
TRANSFORMERS = 300 * MIB
"""Memory added by `transformers` 5.19, which imports scikit-learn, pandas, accelerate and triton if installed."""
SHARDING = {"torch": 0, "fsdp": 150 * MIB, "deepspeed": 320 * MIB}
"""Extra memory of a rank of a sharded learner for any model, measured with a model of a few thousand parameters."""
MOST_EVALUATION_ROWS = 512
EVALUATION_CACHE = 2 * 2**30
"""Bytes of an evaluation's cache; evaluations cost no compute, so only the real machine matters."""
CRITIC_BYTES = {"fp32": 4, "bf16": 2}
PRODUCT_BYTES = {"fp32": 4, "mixed": 2, "bf16": 2, "fp16": 2}
"""Bytes of one number read by a matrix product, for each value of the axis `parameters`."""
WEIGHT_BYTES = {"fp32": 4, "mixed": 4, "bf16": 2, "fp16": 4}
"""Bytes of one parameter, for each value of the axis `parameters`."""


@dataclass(frozen=True, kw_only=True)
class PromptLengths:
    """Properties of the tasks that determine memory: `PromptLengths(trained=180, measured=240, most_samples=4096)`."""

    trained: int
    """Tokens of the longest prompt in the trained tasks, held-out ones included, or before the last turn of an
    episode."""
    measured: int
    """Tokens of the longest prompt that is measured, including downstream files."""
    most_samples: int
    """Number of rollouts in the largest evaluation."""

    @classmethod
    def of(cls, recipe: ResolvedRecipe, task: Task, downstream: Iterable[Task]) -> "PromptLengths":
        """Lengths of the trained task, and of the tasks that are only measured."""
        measured = list(downstream)
        sizes = [len(task.validation) * recipe.evaluation.samples]
        sizes += [
            len(one.validation) * of.samples for one, of in zip(measured, recipe.evaluation.downstream, strict=True)
        ]
        trained = max(longest_prompt(task), recipe.most_before_turn)
        return cls(trained=trained, measured=max(trained, longest_prompt(task, *measured)), most_samples=max(sizes))


@dataclass(frozen=True, kw_only=True)
class ProcessMemory:
    """Peak memory of one process, or of each of several equal ones."""

    name: str
    """`coordinator`, `trainer`, `evaluator`, `generator` or `agent`."""
    count: int
    """Number of processes of this kind."""
    parts: Mapping[str, int]
    """Bytes by part: `{"weights": 252_000_000, "Adam": 504_000_000, ...}`."""

    @property
    def total(self) -> int:
        """Bytes of one process."""
        return sum(self.parts.values())


@dataclass(frozen=True, kw_only=True)
class MemoryForecast:
    """Forecast of a run's peak memory."""

    processes: tuple[ProcessMemory, ...]
    """The trainers, a coordinator if the learner is sharded, and on the wall clock the generators and the evaluator if
    there is one. On the virtual clock the first process generates."""
    agent: ProcessMemory | None = None
    """What every extra node of a run on the wall clock also needs: its agent keeps two publications for the node."""

    @property
    def total(self) -> int:
        """Bytes of all processes together."""
        return sum(process.count * process.total for process in self.processes)


def cache_row(recipe: ResolvedRecipe, shape: ModelShape, positions: int) -> int:
    """Bytes of keys and values of one rollout of `positions` tokens."""
    return positions * shape.layers * shape.kv_heads * 2 * shape.head_size * PRODUCT_BYTES[recipe.parameters]


def evaluation_rows(recipe: ResolvedRecipe, shape: ModelShape, prompts: PromptLengths) -> int:
    """Number of rollouts that an evaluation decodes at once.

    At most 512 and the number of samples; also at most what fits into 2 GiB at full length, unless a generator of the
    cluster decodes more at once anyway. Rollouts do not depend on this number.
    """
    of_a_row = cache_row(recipe, shape, prompts.measured + recipe.generation.max_tokens)
    fitting = max(recipe.cluster.slots, EVALUATION_CACHE // of_a_row)
    return min(MOST_EVALUATION_ROWS, prompts.most_samples, fitting)


def peak_memory(recipe: ResolvedRecipe, prompts: PromptLengths) -> MemoryForecast:
    """Peak memory of the processes of a run; reads only the headers of a pretrained model's files.

    A process holds its permanent parts, and the largest of the temporary parts of an optimiser step, an evaluation and
    a decode step, which never run at once in one process. Copies of a policy with an adapter in one process share the
    model's own weights, and only the adapter is on its way to generators.
    """
    shape = shape_of(recipe.model, recipe.adapter)
    copy = shape.parameters * WEIGHT_BYTES[recipe.parameters]
    sent = shape.trained_parameters * WEIGHT_BYTES[recipe.parameters]
    adapter = 0 if shape.adapter_parameters is None else sent
    # The first policy of a process, and each further one.
    first, another = (copy + adapter, adapter) if adapter else (copy, copy)
    of_start = 0 if adapter else copy
    merged = {"merged weights": copy} if adapter and recipe.generator.type == "vllm" else {}
    libraries = LIBRARIES if shape.is_built_in else LIBRARIES + TRANSFORMERS
    cluster, is_virtual = recipe.cluster, recipe.cluster.type == "virtual"
    rows = cluster.slots * (cluster.generators if is_virtual else 1)
    length = prompts.trained + recipe.generation.max_tokens
    cached = {"keys and values": rows * cache_row(recipe, shape, length), **merged}
    decoding = _decoding(recipe, shape, rows, length)
    base = {"interpreter and libraries": libraries}
    learner = _learner(recipe, shape, copy)
    update = update_parts(recipe, shape, prompts, device=recipe.device or "cpu")
    evaluation = _evaluation(recipe, shape, prompts)
    if is_virtual:
        if recipe.learner.type == "torch":
            weights = {"weights of the start": of_start, "weights under way": sent, "generator's weights": another}
            own = {**base, **learner, **weights, **cached}
            return MemoryForecast(processes=(_process("trainer", 1, own, update, evaluation, decoding),))
        # Both places of the store, and weights in transit to the modelled generators.
        weights = {"weights": first, "weights of the start": of_start, "weights under way": 3 * sent}
        own = {**base, **weights, "generator's weights": another, **cached}
        player = _process("coordinator", 1, own, evaluation, decoding)
        ranks = _process("trainer", recipe.learner.ranks, {**base, **learner}, update)
        return MemoryForecast(processes=(player, ranks))
    generators = _process("generator", cluster.generators, {**base, "generator's weights": first, **cached}, decoding)
    published = {"weights of the start": of_start, "weights under way": 2 * sent}
    agent = ProcessMemory(name="agent", count=1, parts={**base, "weights under way": 2 * sent})
    evaluators: tuple[ProcessMemory, ...] = ()
    if recipe.has_evaluator:
        # The weights in use, the initial weights, and the fetched weights.
        measured = {"generator's weights": first, "weights of the start": of_start, "weights under way": sent, **merged}
        evaluators = (_process("evaluator", 1, {**base, **measured}, evaluation),)
        evaluation = {}
    if recipe.learner.type == "torch":
        trainer = _process("trainer", 1, {**base, **learner, **published}, update, evaluation)
        return MemoryForecast(processes=(trainer, *evaluators, generators), agent=agent)
    # The ranks' state arrives as bytes and becomes tensors: weights and two moments each time.
    state = {"state of a checkpoint": 6 * sent}
    coordinator = _process("coordinator", 1, {**base, "weights": first, **published}, evaluation, state)
    ranks = _process("trainer", recipe.learner.ranks, {**base, **learner}, update, state)
    return MemoryForecast(processes=(coordinator, ranks, *evaluators, generators), agent=agent)


def _process(name: str, count: int, lasting: Mapping[str, int], *phases: Mapping[str, int]) -> ProcessMemory:
    """Permanent parts of a process, and the largest of its phases."""
    return ProcessMemory(
        name=name, count=count, parts={**lasting, **max(phases, key=lambda parts: sum(parts.values()))}
    )


def _learner(recipe: ResolvedRecipe, shape: ModelShape, copy: int) -> dict[str, int]:
    """Permanent parts of one rank.

    Every rank has a whole copy of the weights on its host, to gather and load them; ZeRO keeps an FP32 copy of its
    share for its steps.
    """
    kind, ranks = recipe.learner.type, recipe.learner.ranks
    is_sharded, has_adapter = recipe.shards_weights, shape.adapter_parameters is not None
    trained = shape.trained_parameters * WEIGHT_BYTES[recipe.parameters]
    weights = copy + (trained if has_adapter else 0)
    share, of_trained = weights // ranks, trained // ranks
    starts, references = recipe.needs_start and recipe.batches_of_a_round > 1, recipe.kl.coefficient > 0
    parts = {
        "weights": weights + (share if is_sharded else 0) + (of_trained if kind == "deepspeed" else 0),
        "gradients": of_trained if is_sharded else trained,
        "Adam": 2 * of_trained,
    }
    if kind != "torch":
        parts["sharding"] = SHARDING[kind]
    if has_adapter and kind == "torch":
        frozen = starts * trained
    else:
        frozen = (starts + (kind != "torch" and references)) * (weights + (share if is_sharded else 0))
    if frozen:
        parts["frozen copies"] = frozen
    if critic := critic_bytes(recipe, shape):
        parts["critic"] = critic
    return parts


def critic_bytes(recipe: ResolvedRecipe, shape: ModelShape) -> int:
    """Bytes of a critic's weights, gradients and moments, and of a copy from the start of a round of several batches;
    0 without a critic."""
    if recipe.critic.type == "none":
        return 0
    each = 4 if recipe.batches_of_a_round == 1 else 5
    return each * shape.parameters * CRITIC_BYTES[recipe.critic.parameters]


def update_parts(
    recipe: ResolvedRecipe, shape: ModelShape, prompts: PromptLengths, *, device: str = "cpu"
) -> dict[str, int]:
    """Parts of the largest forward and backward pass: each block's saved activations, and the logits."""
    answer, rollouts = recipe.generation.max_tokens, recipe.batch.prompts * recipe.batch.generations
    row = prompts.trained + answer
    read = recipe.batch.prompts if recipe.packing == "prompts" else rollouts
    batch = read * prompts.trained + rollouts * answer
    tokens = max(row, min(batch, recipe.optimiser.micro_batch_tokens))
    attended, products = shape.heads * shape.head_size, PRODUCT_BYTES[recipe.parameters]
    # Two norms with their inputs, in FP32; queries, repeated keys and values, attention twice; four of the gated layer.
    block = 6 * 4 * shape.hidden + products * (5 * attended + 4 * shape.mlp)
    blocks = (
        shape.layers * 4 * shape.hidden + block if recipe.optimiser.gradient_checkpointing else shape.layers * block
    )
    is_rounded = recipe.parameters in ("mixed", "fp16")
    logits, head = min(tokens * shape.vocabulary, logits_at_once(device)), shape.vocabulary * shape.hidden
    in_parts = 4 * min(SPLIT_AT_ONCE, head) if device == "cuda" and recipe.logits == "fp32" else 0
    return {
        "activations": tokens * blocks,
        "weights rounded for products": 2 * shape.parameters if is_rounded else 0,
        "logits": 4 * (4 * logits + head + in_parts),
    }


def _evaluation(recipe: ResolvedRecipe, shape: ModelShape, prompts: PromptLengths) -> dict[str, int]:
    """Parts of an evaluation: its own keys and values, and the step that decodes all of its rows."""
    rows, length = evaluation_rows(recipe, shape, prompts), prompts.measured + recipe.generation.max_tokens
    cache = {"keys and values of an evaluation": rows * cache_row(recipe, shape, length)}
    return cache | _decoding(recipe, shape, rows, length)


def _decoding(recipe: ResolvedRecipe, shape: ModelShape, rows: int, length: int) -> dict[str, int]:
    """Parts of one decode step: keys and values of one layer as its product reads them, logits and their
    derivatives."""
    read = rows * length * 2 * shape.heads * shape.head_size * 4
    logits = rows * shape.vocabulary
    return {"decoding": read + 4 * logits + 5 * 4 * min(logits, logits_at_once("cpu"))}
