"""The built-in policy: a Llama decoder with Hugging Face's weights, written for small batches on a CPU.

`transformers` defines and stores the model (`LlamaConfig`, `model.safetensors` under Llama's names). The arithmetic is
written here because overhead dominates a decode step of a tiny model. Query, key and value are one product, and so are
gate and up. The two numbers that a rotary position rotates are adjacent, so the rotation is one complex product.
A test compares the logits with `LlamaForCausalLM`.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from scalerl.model.cached_attention import DenseStep, FusedStep, as_factor
from scalerl.model.decode_graphs import Capture, DecodeGraphs, cuda_graph
from scalerl.model.kv_cache import Prefill
from scalerl.model.lanes_cache import LanesCache
from scalerl.model.linear import is_plain, projected
from scalerl.model.llama_files import RMS_EPS, ROPE_BASE, config_json, own_tensor, to_hugging_face
from scalerl.model.packing import Packing
from scalerl.model.policy import FP32, Policy, Precision, States, draw_normal
from scalerl.model.size import ModelSize
from scalerl.recipe import LlamaModel
from scalerl.weights.hugging_face import Weights, refuse_unlike, refuse_unusable

if TYPE_CHECKING:
    from scalerl.model.kernels.step import BodyWeights
    from scalerl.model.kernels.train import Sequences

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Attention from rotated queries, rotated keys, and values."""


class Block(nn.Module):
    """One decoder block: attention over rotary positions, then a gated feed-forward layer, each behind an RMS norm."""

    def __init__(self, shape: LlamaModel, device: torch.device) -> None:
        super().__init__()
        self.heads = shape.heads
        self.attention_norm = nn.Parameter(torch.ones(shape.hidden, device=device))
        self.qkv = nn.Parameter(torch.empty(3 * shape.hidden, shape.hidden, device=device))
        """Rows grouped by head, each with its query, key and value rows; see `fuse_qkv`."""
        self.out = nn.Parameter(torch.empty(shape.hidden, shape.hidden, device=device))
        self.mlp_norm = nn.Parameter(torch.ones(shape.hidden, device=device))
        self.gate_up = nn.Parameter(torch.empty(2 * shape.mlp, shape.hidden, device=device))
        self.down = nn.Parameter(torch.empty(shape.hidden, shape.mlp, device=device))

    def forward(self, x: Tensor, turn: Tensor, attend: Attend) -> Tensor:
        """x plus attention plus the feed-forward layer; sharding engines gather weights around this call."""
        x = x + projected(attend(*self.project(x, turn)), self.out)
        return self.feed_forward(x)

    def project(self, x: Tensor, turn: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries, rotated keys, and values, each [..., heads, D], from hidden states [..., hidden]."""
        h = rms_norm(x, self.attention_norm)
        qkv = projected(h, self.qkv).float().unflatten(-1, (self.heads, 3, -1))
        pairs = torch.view_as_complex(qkv[..., :2, :].unflatten(-1, (-1, 2)))
        qk = torch.view_as_real(pairs * turn).flatten(-2)
        return qk[..., 0, :], qk[..., 1, :], qkv[..., 2, :]

    def feed_forward(self, x: Tensor) -> Tensor:
        """x plus the gated feed-forward layer of its RMS norm."""
        h = rms_norm(x, self.mlp_norm)
        gate, up = projected(h, self.gate_up).chunk(2, dim=-1)
        return x + projected(F.silu(gate) * up, self.down)


class Llama(Policy):
    """Token ids to hidden states, with fused matrices (see the top of this file)."""

    def __init__(self, shape: LlamaModel, vocabulary: int, device: torch.device, precision: Precision = FP32) -> None:
        super().__init__(precision)
        self.shape = shape
        self.embedding = nn.Parameter(torch.empty(vocabulary, shape.hidden, device=device))
        self.blocks = nn.ModuleList(Block(shape, device) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.ones(shape.hidden, device=device))
        self.head = nn.Parameter(torch.empty(vocabulary, shape.hidden, device=device))
        self.to(precision.weights)

    def init_weights(self, generator: torch.Generator) -> None:
        """Normal weights with sd 0.02 as in Llama, or more in narrow layers (1 / sqrt(fan in) / 2)."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                draw_normal(parameter, max(0.02, parameter.shape[1] ** -0.5 / 2), generator)

    @property
    def size(self) -> ModelSize:
        numbers, width = self.num_parameters(), self.shape.layers * self.shape.hidden
        return ModelSize(parameters=numbers, active_parameters=numbers, attention_width=width, cache_width=2 * width)

    def rotary(self, positions: Tensor) -> Tensor:
        """Rotations e^(i angle) of positions [...], complex [..., 1, 1, D / 2] to broadcast over heads, q and k."""
        size = self.shape.hidden // self.shape.heads
        frequency = ROPE_BASE ** (-torch.arange(0, size, 2, dtype=torch.float32, device=positions.device) / size)
        angle = positions[..., None, None, None].float() * frequency
        return torch.polar(torch.ones_like(angle), angle)

    @property
    def is_plain(self) -> bool:
        """True for whole FP32 weights on a CPU with nothing attached, which compiled kernels may read by themselves."""
        if self.precision.products != torch.float32 or self.recompute or torch.is_autocast_enabled("cpu"):
            return False
        hooks = (hook for block in self.blocks for hook in (block._forward_pre_hooks, block._forward_hooks))
        return not any(hooks) and all(is_plain(one) and one.is_contiguous() for one in self.parameters())

    def states(self, tokens_BT: Tensor) -> States:
        if self.is_plain:
            from scalerl.model.kernels.train import Sequences  # numba takes a quarter of a second

            rows, width = tokens_BT.shape
            hidden = self._compiled(tokens_BT.flatten(), Sequences.padded(rows, width))
            return States(hidden=hidden.unflatten(0, (rows, width)))
        turn = self.rotary(torch.arange(tokens_BT.shape[1], device=tokens_BT.device))

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = (part.transpose(1, 2) for part in (q, k, v))
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)

        return States(hidden=self._body(tokens_BT, turn, attend))

    def packed_states(self, tokens_N: Tensor, packing: Packing) -> States:
        """Final hidden states [N, hidden]; matrix products run unpadded, attention runs per sequence."""
        if self.is_plain:
            from scalerl.model.kernels.train import Sequences  # as in `states`

            return States(hidden=self._compiled(tokens_N, Sequences.packed(packing)))

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = (packing.padded(part).transpose(1, 2) for part in (q, k, v))
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return packing.packed(attended.transpose(1, 2).flatten(2))

        return States(hidden=self._body(tokens_N, self.rotary(packing.position_N), attend))

    def _compiled(self, tokens_N: Tensor, sequences: "Sequences") -> Tensor:
        from scalerl.model.kernels.train import hidden_states  # as in `states`

        weights: list[Tensor] = [self.embedding, self.norm]
        for block in self.layers():
            weights += [block.attention_norm, block.qkv, block.out, block.mlp_norm, block.gate_up, block.down]
        turn = self.rotary(torch.arange(sequences.table_BT.shape[1], device=self.device))[:, 0, 0]
        return hidden_states(tokens_N, sequences, weights, heads=self.shape.heads, turn=(turn.real, turn.imag))

    def _body(self, tokens: Tensor, turn: Tensor, attend: Attend) -> Tensor:
        recompute = self.recompute and torch.is_grad_enabled()
        with self.products():
            x = F.embedding(tokens, self.embedding).float()
            for block in self.layers():
                x = checkpoint(block, x, turn, attend, use_reentrant=False) if recompute else block(x, turn, attend)
            return self.final_norm(x)

    def final_norm(self, x: Tensor) -> Tensor:
        """The RMS norm before the head."""
        return rms_norm(x, self.norm)

    def layers(self) -> Iterator[Block]:
        """Decoder blocks with their type."""
        for block in self.blocks:
            assert isinstance(block, Block)
            yield block

    def head_weights(self) -> tuple[Tensor, None]:
        """Head matrix, never tied, and no bias."""
        return self.head, None

    def new_cache(self, *, slots: int, positions: int) -> "LlamaCache":
        return LlamaCache(self, slots=slots, positions=positions)

    def exported_part(self, own: Weights) -> dict[str, Tensor]:
        """Weights under LlamaForCausalLM's names, with fused matrices split."""
        return to_hugging_face(own, self.shape)

    def importer(self, weights: Weights) -> Callable[[str], Tensor]:
        """Function that fuses the tensor with one of our names from the file's tensors."""
        return lambda name: own_tensor(name, weights, self.shape)

    def import_weights(self, weights: Weights) -> None:
        refuse_unlike(self.exported_weights(), weights)
        for name, tensor in self.state_dict().items():
            tensor.copy_(own_tensor(name, weights, self.shape))

    def save_weights(self, folder: Path) -> None:
        # Clones: safetensors refuses tensors that share memory.
        copies = {name: tensor.contiguous().clone() for name, tensor in self.exported_weights().items()}
        save_file(copies, folder / "model.safetensors", metadata={"format": "pt"})

    def load_weights(self, folder: Path) -> None:
        path = folder / "model.safetensors"
        try:
            weights = load_file(path)
        except (SafetensorError, OSError) as error:
            raise ValueError(f"cannot read {path} ({error}); delete its folder to have it recreated") from None
        refuse_unusable(weights, str(path))
        self.import_weights(weights)

    def save(self, folder: Path, *, eos_token_id: int) -> None:
        """Write config.json and model.safetensors for `LlamaForCausalLM.from_pretrained(folder)`."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(config_json(self.shape, self.head.shape[0], eos_token_id))
        self.save_weights(folder)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """x / sqrt(mean x^2 + EPS) weight, in float32 for weights of any precision."""
    return F.rms_norm(x, (x.shape[-1],), weight.float(), RMS_EPS)


class LlamaCache(LanesCache):
    """Cache of a `Llama` that prefills new prompts in the pass that decodes the other rows.

    Each product runs once on all tokens together. For a tiny model this costs less than a separate pass for a few
    prompts. Compiled kernels compute steps on a CPU, and rows then lie side by side.
    """

    def __init__(self, policy: Llama, *, slots: int, positions: int) -> None:
        shape = policy.shape
        size = shape.hidden // shape.heads
        super().__init__(
            layers=shape.layers,
            slots=slots,
            heads=shape.heads,
            positions=positions,
            head_size=size,
            dtype=policy.precision.products,
            device=policy.device,
        )
        self.policy = policy
        self._turns = policy.rotary(torch.arange(positions, device=policy.device))
        self._weights: BodyWeights | None = None
        self._memory: list[int] = []
        """Where the weights lie of which `_weights` is a view."""
        self._graphs: DecodeGraphs | None = None
        if policy.device.type == "cuda":
            self.capture_steps()

    def capture_steps(self, capture: Capture = cuda_graph) -> None:
        """Capture decode steps without new prompts once per size, and replay them afterwards."""
        self.keeps_idle_rows = False  # a graph decodes some rows too many
        self.lay_out(in_lanes=False)
        self._graphs = DecodeGraphs(self._step, slots=self.slots, positions=self.positions, capture=capture)

    def logits(self, tokens_n: Tensor, position_n: Tensor, *prefills: Prefill) -> Tensor:
        reach = int(position_n.max()) + 1
        weights = self._body_weights() if self._graphs is None else None
        self.lay_out(in_lanes=weights is not None)
        self.reserve(len(tokens_n), reach)
        if weights is not None:
            return self._compiled_step(weights, tokens_n, position_n, prefills)
        position_n = position_n.to(tokens_n.device, non_blocking=True)
        if self._graphs is None or prefills:
            return self._step(tokens_n, position_n, reach, *prefills)
        return self._graphs.logits(tokens_n, position_n, reach)

    def reserve(self, rows: int, reach: int) -> None:
        """Make room; captured steps need all of it at once, because graphs are tied to their memory."""
        if self._graphs is None:
            super().reserve(rows, reach)
            return
        before = self.kv[0]
        super().reserve(self.slots, self.positions)
        if self.kv[0] is not before:
            self._graphs.forget()

    def _step(self, tokens_n: Tensor, position_n: Tensor, reach: int, *prefills: Prefill) -> Tensor:
        """Logits [n, V] of one step, given room for `reach` positions; positions are on the device."""
        with self.policy.products():
            hidden = self._hidden(tokens_n, position_n, reach, prefills)
        return self.policy.logits(hidden)

    def _hidden(self, tokens_n: Tensor, position_n: Tensor, reach: int, prefills: tuple[Prefill, ...]) -> Tensor:
        policy = self.policy
        n = len(tokens_n)
        kind = FusedStep if position_n.device.type == "cuda" else DenseStep
        step = kind(position_n, reach, self.kv[0], policy.precision.products)
        turn, tokens, sizes = self._turns[position_n], tokens_n, [n, *(one.tokens.numel() for one in prefills)]
        if prefills:
            tokens = torch.cat((tokens_n, *(one.tokens.flatten() for one in prefills)))
            turn = torch.cat((turn, *(self._turns_of(one) for one in prefills)))
        x = policy.embedding[tokens].float()
        last = len(self.kv) - 1
        for layer, block in enumerate(policy.layers()):
            qkv = (as_factor(part, policy.precision.products) for part in block.project(x, turn))
            (q, k, v), *others = zip(*(part.split(sizes) for part in qkv), strict=True)
            parts = [
                self._prefill(layer, *other, one) if one.position is None else self._extend(layer, *other, one, reach)
                for other, one in zip(others, prefills, strict=True)
            ]
            step.write(self.kv[layer], k, v)
            parts.insert(0, step.attend(self.kv[layer], q))
            if layer == last:  # nothing reads a prompt's output of the last layer
                x, parts = x[:n], parts[:1]
            x = x + projected(torch.cat(parts) if len(parts) > 1 else parts[0], block.out)
            x = block.feed_forward(x)
        return policy.final_norm(x)

    def _compiled_step(
        self, weights: "BodyWeights", tokens_n: Tensor, position_n: Tensor, prefills: tuple[Prefill, ...]
    ) -> Tensor:
        """Logits [n, V] of one step by compiled kernels."""
        from scalerl.model.kernels.step import states_of_step
        from scalerl.model.kernels.step_tokens import StepTokens  # numba takes a quarter of a second

        tokens = StepTokens.of(tokens_n.numpy(), position_n.numpy(), prefills)
        return self.policy.logits(states_of_step(weights, self.kv, self._turns, tokens))

    def _body_weights(self) -> "BodyWeights | None":
        """The policy's weights as arrays, which see changes in place; made anew if a weight has other memory.

        None if compiled kernels cannot read them (they are not whole, in float32, on a CPU) or lack the precision.
        """
        policy = self.policy
        parameters = [of_module[name] for of_module, name in self._places]
        if self._weights is not None and [one.data_ptr() for one in parameters] == self._memory:
            return self._weights
        self._weights = None
        if not self._has_kernels(parameters):
            return None
        from scalerl.model.kernels.step import BodyWeights, LayerWeights  # numba takes a quarter of a second

        names = ("attention_norm", "qkv", "out", "mlp_norm", "gate_up", "down")
        layers = [
            LayerWeights(**{name: getattr(block, name).detach().numpy() for name in names}) for block in policy.layers()
        ]
        self._memory = [one.data_ptr() for one in parameters]
        self._weights = BodyWeights(
            embedding=policy.embedding.detach().numpy(),
            layers=layers,
            norm=policy.norm.detach().numpy(),
            rounds=policy.precision.products == torch.bfloat16,
        )
        return self._weights

    @cached_property
    def _places(self) -> list[tuple[dict[str, Any], str]]:
        """Where the policy's modules keep their parameters; to look for them in every step takes half a millisecond."""
        of_modules = [module._parameters for module in self.policy.modules()]
        return [(found, name) for found in of_modules for name, parameter in found.items() if parameter is not None]

    def _has_kernels(self, parameters: list[nn.Parameter]) -> bool:
        """True if compiled kernels can read the weights (whole, in float32, on a CPU) and have the precision."""
        products, rounds = self.policy.precision.products, self.policy.rounds_factors_only
        return (products == torch.float32 or (rounds and products == torch.bfloat16)) and all(
            type(one) in (Tensor, nn.Parameter)
            and one.device.type == "cpu"
            and one.dtype == torch.float32
            and one.is_contiguous()
            for one in parameters
        )

    def _prefill(self, layer: int, q: Tensor, k: Tensor, v: Tensor, prefill: Prefill) -> Tensor:
        """Cache one layer of the prompts; returns their attention [P x W, hidden]. q, k and v are [P x W, heads, D]."""
        prompts, width = prefill.tokens.shape
        q, k, v = (part.unflatten(0, (prompts, width)).transpose(1, 2) for part in (q, k, v))
        written = torch.stack((k, v), dim=2)
        copied = written[prefill.prompts].to(self.kv[layer].dtype)
        self.kv[layer][prefill.rows, :, :, : copied.shape[3]] = copied
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return attended.transpose(1, 2).flatten(2).flatten(0, 1).float()

    def _turns_of(self, prefill: Prefill) -> Tensor:
        """Rotations of the tokens, [P x W, ...]."""
        prompts, width = prefill.tokens.shape
        if prefill.position is None:
            return self._turns[:width].repeat(prompts, 1, 1, 1)
        return self._turns[prefill.position.flatten()]

    def _extend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, prefill: Prefill, reach: int) -> Tensor:
        """Cache one layer of tokens that continue their rows; returns their attention [P x W, hidden]."""
        assert prefill.position is not None
        cached = self.kv[layer][prefill.rows, :, :, :reach]
        one, token = (prefill.position >= 0).nonzero(as_tuple=True)
        fresh = torch.stack((k, v), dim=2).unflatten(0, prefill.tokens.shape)[one, token]
        cached[one, :, :, prefill.position[one, token]] = fresh.to(cached.dtype)
        self.kv[layer][prefill.rows, :, :, :reach] = cached
        seen = torch.arange(reach, device=q.device) <= prefill.position.clamp_min(0)[:, None, :, None]
        keys, values = cached.to(q.dtype).unbind(2)
        query = q.unflatten(0, prefill.tokens.shape).transpose(1, 2)
        attended = F.scaled_dot_product_attention(query, keys, values, attn_mask=seen)
        return attended.transpose(1, 2).flatten(2).flatten(0, 1).float()
