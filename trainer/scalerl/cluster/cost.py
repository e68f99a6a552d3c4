"""Cost of decoding, training and weight pushes on the modelled device, in seconds and FLOPs.

    decode step of n sequences on one generator   a + b n + r per cached position of the sequences
    prefill                                       c per token + f per position that a token attends to
    update                                        d per token + 3 f per position, divided by the trainers
    weight push                                   e

The terms of a decode step add up because a device executes them one after another: in every layer the matrix products
read the weights (a) and multiply with them (b), then attention reads keys and values (r). Multiplying with keys and
values is not charged: for Llama 3 8B on an H100 this takes a thirtieth of the time needed to read them.

At 7k positions and 108 sequences that model reads 108 x 7,000 x 131,072 bytes = 99 GB of keys and values per decode
step, six times its 16 GB of weights. A tiny model that stands for it has separate factors for parameters, attention
width and cache, because these do not grow alike (`scalerl.recipe.cluster`).

The resulting compute is in *modelled* GPU-hours and is never mixed with measured ones.
"""

from dataclasses import dataclass, replace

from scalerl.generator.request import StepWork
from scalerl.learner.learner import Update
from scalerl.model.size import ModelSize
from scalerl.recipe import Virtual


@dataclass(frozen=True, kw_only=True)
class CostModel:
    """Seconds of each kind of work on one device, per token of the real model and per position of the modelled one."""

    decode_base_s: float
    """a: reading the weights once, for any number of sequences."""
    decode_sequence_s: float
    """b: one token of one sequence."""
    cached_position_s: float
    """r: reading keys and values of one position."""
    prefill_token_s: float
    """c: one prompt token."""
    attended_position_s: float
    """f: attention of one token to one position, forward."""
    train_token_s: float
    """d: one token forward and backward."""
    push_s: float
    """e: new weights from trainers to generators."""
    tokens_stand_for: float
    """Modelled tokens per token."""
    flops_per_s: float
    """FLOPs per second reached in prefill and training."""

    def decode_s(self, work: StepWork, generators: int) -> float:
        """Duration of a decode step whose sequences, of mean length, are spread evenly over the generators."""
        fullest = -(-work.sequences // generators)
        return (
            self.decode_base_s
            + self.decode_sequence_s * fullest
            + self._prefill_s(work) / generators
            + self._reading_s(work) * fullest / max(work.sequences, 1)
        )

    def decode_busy_s(self, work: StepWork, generators: int) -> float:
        """Device-seconds of a decode step in which generators are busy."""
        return (
            self.decode_base_s * min(work.sequences, generators)
            + self.decode_sequence_s * work.sequences
            + self._prefill_s(work)
            + self._reading_s(work)
        )

    def train_s(self, update: Update, trainers: int) -> float:
        """Duration of an optimiser step."""
        trained = modelled_positions(update.trained_tokens, update.context_tokens, self.tokens_stand_for)
        scored = modelled_positions(update.scored_tokens, update.scored_context_tokens, self.tokens_stand_for)
        seconds = (
            self.train_token_s * update.trained_tokens
            + self.prefill_token_s * update.scored_tokens
            + self.attended_position_s * (3 * trained + scored)
        )
        return seconds / trainers

    def decode_flops(self, work: StepWork) -> float:
        """FLOPs of the modelled model in a decode step, including those for attention, which are not charged."""
        attended = modelled_positions(work.sequences, work.context_tokens, self.tokens_stand_for)
        seconds = self.decode_sequence_s * work.sequences + self.attended_position_s * attended + self._prefill_s(work)
        return self.flops_per_s * seconds

    def train_flops(self, update: Update) -> float:
        """FLOPs of the modelled model in an optimiser step, which take all of its time."""
        return self.flops_per_s * self.train_s(update, trainers=1)

    def _prefill_s(self, work: StepWork) -> float:
        attended = modelled_positions(work.prefill_tokens, work.prefill_context_tokens, self.tokens_stand_for)
        return self.prefill_token_s * work.prefill_tokens + self.attended_position_s * attended

    def _reading_s(self, work: StepWork) -> float:
        read = modelled_positions(work.sequences, work.context_tokens, self.tokens_stand_for)
        return self.cached_position_s * read


def cost_model(cluster: Virtual, size: ModelSize) -> CostModel:
    """Roofline costs: bytes of weights and cache over bandwidth; 2 FLOPs per active parameter and token forward, 6 in
    training; 4 FLOPs per number of the attention width and position attended to.

    With an adapter training takes 4 FLOPs per active parameter and token, and 2 more per parameter of the adapter: the
    gradients of activations are whole, those of weights are the adapter's. Only the adapter is pushed.

    Weights and cache are charged as BF16 for any recipe, so that precisions are compared at equal cost. A decode step
    is charged for all experts, because a batch of any size routes some token to each. Sliding-window attention is
    charged as full attention.
    """
    device = cluster.device
    parameters = size.parameters * cluster.parameters_stand_for
    active = size.active_parameters * cluster.parameters_stand_for
    without_gradient = (size.active_parameters - size.gradients_per_token) * cluster.parameters_stand_for
    pushed = size.pushed_parameters * cluster.parameters_stand_for
    tokens = cluster.tokens_stand_for
    flops_per_s = device.tflops * 1e12 * device.utilisation
    bytes_per_s = device.memory_gb_per_s * 1e9
    cost = CostModel(
        decode_base_s=tokens * 2 * parameters / bytes_per_s,
        decode_sequence_s=tokens * 2 * active / flops_per_s,
        cached_position_s=0.0,
        prefill_token_s=tokens * 2 * active / flops_per_s,
        attended_position_s=0.0,
        train_token_s=(tokens * 6 * active - tokens * 2 * without_gradient) / flops_per_s,
        push_s=2 * pushed / (device.link_gb_per_s * 1e9),
        tokens_stand_for=tokens,
        flops_per_s=flops_per_s,
    )
    attention = cluster.attention
    if attention.type == "free":
        return cost
    like_the_model = cluster.parameters_stand_for ** (2 / 3)
    width = size.attention_width * (attention.width_stands_for or like_the_model)
    cached = size.cache_width * (attention.cache_stands_for or like_the_model)
    return replace(cost, cached_position_s=2 * cached / bytes_per_s, attended_position_s=4 * width / flops_per_s)


def modelled_positions(tokens: int, positions: int, stand_for: float) -> float:
    """Positions that the modelled tokens attend to: T^2 p - n T (T - 1) / 2 for n tokens that attend to p in total.

    A token that stands for T is T consecutive tokens, each attending to itself and to all before it. So a token that
    attends to p positions stands for tokens that attend to (p - 1) T + 1, ..., (p - 1) T + T.
    """
    assert positions >= tokens, f"{tokens} tokens attend to {positions} positions, but each attends at least to itself"
    return stand_for**2 * positions - tokens * stand_for * (stand_for - 1) / 2


def training_flops(size: ModelSize, tokens: int, context_tokens: int) -> int:
    """FLOPs forward and backward: 4 N per token, 2 per parameter with a gradient, and 12 x attention width per
    position."""
    without_gradient = size.active_parameters - size.gradients_per_token
    return 3 * forward_flops(size, tokens, context_tokens) - 2 * without_gradient * tokens


def forward_flops(size: ModelSize, tokens: int, context_tokens: int) -> int:
    """Forward FLOPs: 2 N per token, and 4 x attention width per cached position that a token attends to."""
    return 2 * size.active_parameters * tokens + 4 * size.attention_width * context_tokens
