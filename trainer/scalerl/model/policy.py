"""What every policy has: hidden states of tokens, a head with its own precision, and log-probabilities from both.

llama                 the built-in decoder, fast on a CPU
transformers_policy   any causal language model that `transformers` loads
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scalerl.model.head import Head, token_scores
from scalerl.model.kv_cache import KVCache
from scalerl.model.packing import Packing
from scalerl.model.router import Routing, balance
from scalerl.model.size import ModelSize
from scalerl.weights.hugging_face import Weights


@dataclass(frozen=True, kw_only=True)
class Precision:
    """What a policy's numbers are rounded to: `Precision(weights=float32, products=bfloat16, head=float32)`."""

    weights: torch.dtype
    products: torch.dtype
    """Matrix products of the body; norms, softmax and the residual stream are FP32 always."""
    head: torch.dtype
    """The language-model head (ScaleRL §3.2)."""


FP32 = Precision(weights=torch.float32, products=torch.float32, head=torch.float32)


@dataclass(frozen=True, kw_only=True)
class States:
    """Final hidden states, and how a mixture of experts routed the tokens; dense models have no routing."""

    hidden: Tensor
    routing: Routing | None = None


@dataclass(frozen=True, kw_only=True)
class Scores:
    """What a policy says of tokens it is shown; both [B, T] are 0 at position 0."""

    logprobs_BT: Tensor
    """Log-probability of each token given those before it."""
    entropy_BT: Tensor
    """In nats, of the distribution that the token was drawn from."""
    balance_B: Tensor | None = None
    """Load-balancing loss of each sequence's routing; None for dense models, and where lengths are not given."""


@dataclass(frozen=True, kw_only=True)
class Before:
    """The hidden states that all tokens but the first of each sequence are predicted from, and these tokens."""

    hidden: Tensor
    """[..., hidden]"""
    tokens: Tensor
    """[...]"""
    routing: Routing | None = None
    packing: Packing | None = None
    """How the tokens stand in [B, T]; None where [...] is [B, T - 1]."""

    def laid_out(self, values: Tensor) -> Tensor:
        """[B, T] of one value for each of the tokens, 0 for the first of a sequence."""
        return F.pad(values, (1, 0)) if self.packing is None else self.packing.laid_out(values)


class Policy(nn.Module, ABC):
    """A causal language model to be trained and decoded from."""

    def __init__(self, precision: Precision) -> None:
        super().__init__()
        self.precision = precision
        self.recompute = False
        """Gradient checkpointing: the backward pass computes each block's activations again."""
        self.head_parts = 1
        """Parts in which the head's product is summed; see `Head.parts`."""

    @property
    @abstractmethod
    def size(self) -> ModelSize:
        """What work on it costs."""

    @abstractmethod
    def states(self, tokens_BT: Tensor) -> States:
        """Final hidden states [B, T, hidden] of right-padded rows."""

    @abstractmethod
    def packed_states(self, tokens_N: Tensor, packing: Packing) -> States:
        """Final hidden states [N, hidden] of the same tokens without padding."""

    @abstractmethod
    def head_weights(self) -> tuple[Tensor, Tensor | None]:
        """Matrix [V, hidden] and bias of the head."""

    @abstractmethod
    def new_cache(self, *, slots: int, positions: int) -> KVCache:
        """An empty cache to decode `slots` rows of up to `positions` tokens with."""

    @abstractmethod
    def init_weights(self, generator: torch.Generator) -> None:
        """Random weights to begin with."""

    def exported_weights(self) -> dict[str, Tensor]:
        """Its weights under the names of the file that `save_weights` writes, without a gradient.

        They may share memory with the policy, and need not be contiguous: copy what must outlast the next step.
        """
        return self.exported_part(self.state_dict())

    @abstractmethod
    def exported_part(self, own: Weights) -> dict[str, Tensor]:
        """The same of some tensors by the names of its `state_dict`, whole layers of a policy that lies elsewhere."""

    @abstractmethod
    def importer(self, weights: Weights) -> Callable[[str], Tensor]:
        """Gives a tensor by its name in `state_dict`, made of weights under the names of the file when it is asked for.

        An outline (`scalerl.model.outline`) has one too.
        """

    @abstractmethod
    def import_weights(self, weights: Weights) -> None:
        """Fill from the weights that a policy of the same model exported; ValueError names those that do not fit."""

    @abstractmethod
    def save(self, folder: Path, *, eos_token_id: int) -> None:
        """Write what `transformers` loads: config.json and weights."""

    @abstractmethod
    def save_weights(self, folder: Path) -> None:
        """Write the weights beside a config.json that `save` has written before."""

    @abstractmethod
    def load_weights(self, folder: Path) -> None:
        """Fill from the weights of a folder that `save` wrote."""

    @property
    def device(self) -> torch.device:
        """Where its weights are, and all tensors that it makes."""
        return self.head_weights()[0].device

    def num_parameters(self) -> int:
        """Trainable numbers, embedding and head included, shared ones once."""
        return sum(parameter.numel() for parameter in self.parameters())

    @contextmanager
    def products(self) -> Iterator[None]:
        """Matrix products inside are rounded as the precision says."""
        if self.precision.products == torch.float32:
            yield
        else:
            with torch.autocast(self.device.type, dtype=self.precision.products):
                yield

    def hidden(self, tokens_BT: Tensor) -> Tensor:
        """Final hidden states [B, T, hidden] of right-padded rows."""
        return self.states(tokens_BT).hidden

    @property
    def lm_head(self) -> Head:
        """The head in its precision."""
        weight, bias = self.head_weights()
        return Head(weight=weight, bias=bias, dtype=self.precision.head, parts=self.head_parts)

    def logits(self, hidden: Tensor) -> Tensor:
        """Float32 logits [..., V]."""
        return self.lm_head.logits(hidden)

    def token_logprobs(self, tokens_BT: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """Log-probability of each token given those before it, and the entropy there, both [B, T], 0 at position 0."""
        scores = self.score(tokens_BT, temperature)
        return scores.logprobs_BT, scores.entropy_BT

    def before(self, tokens_BT: Tensor, packing: Packing | None = None) -> "Before":
        """What the tokens of right-padded rows are predicted from, computed without padding if a packing is given."""
        if packing is None:
            states = self.states(tokens_BT)
            return Before(hidden=states.hidden[:, :-1], tokens=tokens_BT[:, 1:], routing=states.routing)
        states = self.packed_states(packing.packed(tokens_BT), packing)
        return Before(
            hidden=packing.before(states.hidden),
            tokens=packing.predicted(tokens_BT),
            routing=states.routing,
            packing=packing,
        )

    def score(
        self,
        tokens_BT: Tensor,
        temperature: float,
        *,
        length_B: Tensor | None = None,
        packing: Packing | None = None,
        entropy_gradient: bool = False,
    ) -> Scores:
        """Log-probabilities and entropy of right-padded rows; with a packing only of the tokens that it predicts.

        `length_B` lies on the host. Only the load-balancing loss of a mixture of experts needs it.
        Log-probabilities carry a gradient, the entropy only if asked to.
        """
        before = self.before(tokens_BT, packing)
        chosen, uncertainty = token_scores(
            self.lm_head, before.hidden, before.tokens, temperature=temperature, entropy_gradient=entropy_gradient
        )
        balance_B = None
        if before.routing is not None and length_B is not None and not (packing and packing.shares_prompts):
            balance_B = balance(before.routing, length_B, tokens_BT.shape if packing is None else None)
        return Scores(logprobs_BT=before.laid_out(chosen), entropy_BT=before.laid_out(uncertainty), balance_B=balance_B)


def frozen_copy(policy: Policy) -> Policy:
    """A copy that takes no gradient."""
    return copy.deepcopy(policy).requires_grad_(False)


@torch.no_grad()
def draw_normal(parameter: nn.Parameter, std: float, generator: torch.Generator) -> None:
    """Fill with normal numbers, drawn on the generator's device so that they are the same wherever the policy is."""
    drawn = torch.empty(parameter.shape, dtype=parameter.dtype, device=generator.device)
    parameter.copy_(drawn.normal_(std=std, generator=generator))
