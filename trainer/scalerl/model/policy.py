"""The interface of every policy: hidden states of tokens, a head with its own precision, and log-probabilities."""

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
    """Precision of a policy: `Precision(weights=float32, products=bfloat16, head=float32)`."""

    weights: torch.dtype
    products: torch.dtype
    """Matrix products of the body; norms, softmax and the residual stream are always FP32."""
    head: torch.dtype
    """The language-model head (ScaleRL §3.2)."""


FP32 = Precision(weights=torch.float32, products=torch.float32, head=torch.float32)


@dataclass(frozen=True, kw_only=True)
class States:
    """Final hidden states, and the routing of tokens in a mixture of experts (None for dense models)."""

    hidden: Tensor
    routing: Routing | None = None


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Log-probabilities and entropy of given tokens; both [B, T] are 0 at position 0."""

    logprobs_BT: Tensor
    """Log-probability of each token given the tokens before it."""
    entropy_BT: Tensor
    """In nats, of the distribution that the token was drawn from."""
    balance_B: Tensor | None = None
    """Load-balancing loss of each sequence's routing; None for dense models and if no lengths are given."""


@dataclass(frozen=True, kw_only=True)
class Before:
    """Hidden states from which all tokens but the first of each sequence are predicted, and these tokens."""

    hidden: Tensor
    """[..., hidden]"""
    tokens: Tensor
    """[...]"""
    routing: Routing | None = None
    packing: Packing | None = None
    """Layout of the tokens in [B, T]; None if [...] is [B, T - 1]."""

    def laid_out(self, values: Tensor) -> Tensor:
        """[B, T] with one value per token, 0 for the first token of a sequence."""
        return F.pad(values, (1, 0)) if self.packing is None else self.packing.laid_out(values)


class Policy(nn.Module, ABC):
    """A causal language model for training and decoding."""

    def __init__(self, precision: Precision) -> None:
        super().__init__()
        self.precision = precision
        self.recompute = False
        """Gradient checkpointing: the backward pass recomputes each block's activations."""
        self.head_parts = 1
        """Number of parts in which the head's product is summed; see `Head.parts`."""
        self.rounds_factors_only = False
        """Decoding may leave results of products in FP32 and round only their factors, where a kernel does so."""

    @property
    @abstractmethod
    def size(self) -> ModelSize:
        """Sizes that determine the compute of this model."""

    @abstractmethod
    def states(self, tokens_BT: Tensor) -> States:
        """Final hidden states [B, T, hidden] of right-padded rows."""

    @abstractmethod
    def packed_states(self, tokens_N: Tensor, packing: Packing) -> States:
        """Final hidden states [N, hidden] of the tokens of a packed row."""

    @abstractmethod
    def head_weights(self) -> tuple[Tensor, Tensor | None]:
        """Matrix [V, hidden] and bias of the head."""

    @abstractmethod
    def new_cache(self, *, slots: int, positions: int) -> KVCache:
        """An empty cache for decoding `slots` rows of up to `positions` tokens."""

    @abstractmethod
    def init_weights(self, generator: torch.Generator) -> None:
        """Draw random initial weights."""

    def fixed_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Parameters that training never changes, by their names in `state_dict`; none unless there is an adapter.

        They are not exported, and copies share them."""
        yield from ()

    @property
    def has_adapter(self) -> bool:
        """True if only an adapter is trained."""
        return next(self.fixed_parameters(), None) is not None

    def initial_adapter(self, generator: torch.Generator) -> Weights:
        """Weights to import at the start of a run, drawn for an adapter; empty for a policy that is trained whole."""
        return {}

    def start_policy(self) -> "Policy":
        """A frozen policy that computes what this one does at the start of a run."""
        return frozen_copy(self)

    def exported_weights(self) -> dict[str, Tensor]:
        """Weights under the names in the file that `save_weights` writes, without gradients.

        They may share memory with the policy and may be non-contiguous: copy what must outlast the next step.
        """
        return self.exported_part(self.state_dict())

    @abstractmethod
    def exported_part(self, own: Weights) -> dict[str, Tensor]:
        """Exported weights of some entries of a `state_dict`, given in whole layers; the policy may be sharded."""

    @abstractmethod
    def importer(self, weights: Weights) -> Callable[[str], Tensor]:
        """Function from a name in `state_dict` to its tensor, made on demand from weights under the names in the file.

        Outlines (`scalerl.model.outline`) have one too.
        """

    @abstractmethod
    def import_weights(self, weights: Weights) -> None:
        """Fill from weights exported by a policy of the same model; raises ValueError naming any that do not fit."""

    @abstractmethod
    def save(self, folder: Path, *, eos_token_id: int) -> None:
        """Write config.json and weights for `transformers` to load."""

    @abstractmethod
    def save_weights(self, folder: Path) -> None:
        """Write the weights beside a config.json written earlier by `save`."""

    @abstractmethod
    def load_weights(self, folder: Path) -> None:
        """Fill from the weights of a folder that `save` wrote."""

    @property
    def device(self) -> torch.device:
        """Device of the weights and of all tensors that the policy creates."""
        return self.head_weights()[0].device

    def num_parameters(self) -> int:
        """Number of trainable parameters, including embedding and head; shared ones count once."""
        return sum(parameter.numel() for parameter in self.parameters())

    @contextmanager
    def products(self) -> Iterator[None]:
        """Context in which matrix products have the policy's precision."""
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

    def before(self, tokens_BT: Tensor, packing: Packing | None = None) -> "Before":
        """States that predict the tokens of right-padded rows, computed without padding if a packing is given."""
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

        `length_B`, on the host, is needed only for the load-balancing loss of a mixture of experts.
        Log-probabilities carry a gradient; the entropy does so only with `entropy_gradient`.
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
    """A copy without gradients, which shares parameters that training never changes."""
    shared = {id(parameter): parameter for _, parameter in policy.fixed_parameters()}
    return copy.deepcopy(policy, memo=dict(shared)).requires_grad_(False)


@torch.no_grad()
def draw_normal(parameter: nn.Parameter, std: float, generator: torch.Generator) -> None:
    """Fill with normal numbers drawn on the generator's device, so that they do not depend on the policy's device."""
    drawn = torch.empty(parameter.shape, dtype=parameter.dtype, device=generator.device)
    parameter.copy_(drawn.normal_(std=std, generator=generator))
