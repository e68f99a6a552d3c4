"""DeepSpeed's ZeRO-2 and ZeRO-3 (arXiv 1910.02054), which shard AdamW's state, and with ZeRO-3 the weights too.

    gradient of the batch = sum over ranks of the gradients of their passes

DeepSpeed averages over ranks. So each loss is multiplied by the next power of 2 not below the number of ranks, and the
gradient by the remaining factor; any other factor would round BF16 products differently from a single process. By
default DeepSpeed reduces in BF16 and decides itself to skip steps. Here reductions and messages are FP32, and the
learner decides.
"""

import importlib
import logging
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from scalerl.errors import Rejected
from scalerl.learner.engine import Engine, Network, ShardedNetwork, adamw
from scalerl.learner.ranks import Ranks
from scalerl.learner.saved_pieces import (
    MOMENTS,
    KeptPiece,
    TensorSource,
    by_layer,
    kept_buffers,
    parameters_by_name,
    pieces_of_whole,
)
from scalerl.learner.torch_engine import TorchNetwork
from scalerl.model.outline import outline_of, set_parameters
from scalerl.recipe import DeepSpeedSettings, Optimiser

MOST_IN_BUCKET = 500_000_000
"""Maximum number of elements reduced or gathered at once: DeepSpeed's default."""


def imported_deepspeed(device: torch.device) -> Any:
    """The library, set to this rank's device; raises Rejected with the install command if it is missing."""
    os.environ["LOCAL_RANK"] = "0"  # asked for by DeepSpeed; a rank sees one device
    if device.type == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    try:
        with warnings.catch_warnings(action="ignore"):
            deepspeed = importlib.import_module("deepspeed")
            ops = importlib.import_module("deepspeed.ops")
    except ImportError as error:
        raise Rejected(
            f"learner 'deepspeed': cannot import DeepSpeed ({error}); install it with `pip install "
            f"'ablations[deepspeed]'`, or use learner 'fsdp', which needs only PyTorch"
        ) from error
    # Names of torch.distributed that DeepSpeed uses and this version of PyTorch renames.
    warnings.filterwarnings("ignore", "`torch.distributed.* is deprecated", FutureWarning)
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    # Shared-memory reductions, used only for inference, would be compiled by g++ at every first start.
    ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return deepspeed


def ds_config(optimiser: Optimiser, settings: DeepSpeedSettings, numel: int) -> dict[str, Any]:
    """DeepSpeed's configuration for a network of `numel` parameters."""
    # Buckets are allocated whole: touching the pages of DeepSpeed's default would dominate a small network's time.
    bucket = min(MOST_IN_BUCKET, numel)
    zero: dict[str, Any] = {
        "stage": settings.zero,
        "overlap_comm": False,
        "reduce_bucket_size": bucket,
        "allgather_bucket_size": bucket,
    }
    if settings.zero == 3:
        zero["stage3_param_persistence_threshold"] = 0
    if settings.offload == "cpu":
        zero["offload_optimizer"] = {"device": "cpu"}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": optimiser.max_grad_norm or 0.0,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "data_types": {"grad_accum_dtype": "fp32"},
        "communication_data_type": "fp32",
        "steps_per_print": 10**9,
    }


class ZeroNetwork(ShardedNetwork):
    """A network on the ranks of one process group, which must have been joined: each has all weights with ZeRO-2, and
    its share of them with ZeRO-3."""

    def __init__(
        self,
        deepspeed: Any,
        network: nn.Module,
        config: dict[str, Any],
        optimiser: Optimiser | None,
        source: TensorSource | None,
        *,
        ranks: Ranks,
        device: torch.device,
    ) -> None:
        self.deepspeed, self.config, self.ranks, self.device = deepspeed, config, ranks, device
        self.is_zero3 = config["zero_optimization"]["stage"] == 3
        if self.is_zero3:
            assert source is not None, "ranks read their shares from the model's folder"
            self.network = outline_of(network)
            self._share_out()
            ZeroNetwork.fill(self, source, with_fixed=True)
        else:
            self.network = with_room(network, device, source)
        self.adam = None if optimiser is None else adamw(self.network, optimiser)
        with warnings.catch_warnings(action="ignore"):
            self.engine, *_ = deepspeed.initialize(model=self.network, optimizer=self.adam, config=config)

    def _share_out(self) -> None:
        """Allocate one layer at a time and shard it before the next one."""
        first: Any = None
        for layer in by_layer(self.network, with_fixed=True):
            room = {name: room_for(parameter, self.device) for name, parameter in layer}
            set_parameters(self.network, room)
            if first is None:
                first, *_ = room.values()
                holder = nn.ParameterList(room.values())
                self.deepspeed.zero.Init(module=holder, config_dict_or_path=self.config, dtype=first.dtype)
            else:
                first.convert_to_zero_parameters(param_list=list(room.values()))

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        return self.engine(*arguments, **named)

    @torch.no_grad()
    def layers(self) -> Iterator[dict[str, Tensor]]:
        if not self.is_zero3:
            yield from TorchNetwork(self.network).layers()
            return
        for layer in by_layer(self.network):
            with self.deepspeed.zero.GatheredParameters([parameter for _, parameter in layer]):
                yield {name: parameter.detach() for name, parameter in layer}
        yield dict(kept_buffers(self.network))

    def own_elements(self, parameter: Tensor) -> tuple[int, Tensor]:
        """With ZeRO-3; what remains of a rank's shard is padding."""
        holder: Any = parameter
        shard, numel = holder.ds_tensor, holder.ds_numel
        start, stop = (min(numel, shard.numel() * rank) for rank in (self.ranks.rank, self.ranks.rank + 1))
        return start, shard[: stop - start]


class DeepSpeedEngine(ZeroNetwork, Engine):
    """A network, its AdamW, and ZeRO over the ranks."""

    def __init__(
        self,
        deepspeed: Any,
        network: nn.Module,
        optimiser: Optimiser,
        source: TensorSource | None,
        *,
        settings: DeepSpeedSettings,
        ranks: Ranks,
        device: torch.device,
    ) -> None:
        numel = sum(parameter.numel() for parameter in network.parameters())
        config = ds_config(optimiser, settings, numel)
        super().__init__(deepspeed, network, config, optimiser, source, ranks=ranks, device=device)
        self.count = 0
        """Number of steps taken."""
        self.scale = (1 << (ranks.world - 1).bit_length()) / ranks.world
        """Factor left in the gradient until the step removes it."""
        if self.scale != 1.0:
            self.engine.optimizer.override_loss_scale(self.scale)

    def frozen(self, network: nn.Module, source: TensorSource | None = None) -> Network:
        """Frozen network, whole in this process with ZeRO-2, sharded with ZeRO-3."""
        if not self.is_zero3:
            return TorchNetwork(with_room(network, self.device, source), self.ranks)
        zero = {name: value for name, value in self.config["zero_optimization"].items() if name != "offload_optimizer"}
        config = {**self.config, "zero_optimization": zero}
        return ZeroNetwork(self.deepspeed, network, config, None, source, ranks=self.ranks, device=self.device)

    @torch.no_grad()
    def fill(self, source: TensorSource, *, with_fixed: bool = False) -> None:
        """Read this rank's share, and AdamW's FP32 copy of it."""
        if self.is_zero3:
            super().fill(source, with_fixed=with_fixed)
        else:
            TorchNetwork(self.network).fill(source, with_fixed=with_fixed)
        for name, parameter in parameters_by_name(self.network):
            self._set(name, parameter, source, None)

    def zero_grad(self) -> None:
        """Do nothing: `step` and `skip` clear the gradient."""

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradient; the last pass of a batch completes the sum over ranks."""
        self.engine.set_gradient_accumulation_boundary(last)
        self.engine.backward(loss * self.ranks.world, scale_wrt_gas=False)

    def norm(self, max_norm: float | None) -> float:
        """Norm of the gradient; `step` clips it. DeepSpeed's -1 for a non-finite norm becomes NaN."""
        optimizer = self.engine.optimizer
        if self.is_zero3:
            norms = torch.stack([torch.as_tensor(norm).float().cpu() for norm in optimizer._get_norm_groups()])
            total = math.nan if bool((norms < 0).any()) else float(torch.linalg.vector_norm(norms))
        else:
            total = float(optimizer.scaled_global_norm())
        return total / self.scale if total >= 0 else math.nan

    def step(self, rate: float) -> None:
        """Take one AdamW step on every share; each rank then has the new weights or its share of them."""
        for group in self.engine.optimizer.param_groups:
            group["lr"] = rate
        self.engine.step()
        assert self.engine.was_step_applied(), "DeepSpeed skipped a step whose norm is finite"
        self.count += 1

    def skip(self) -> None:
        """Report a non-finite norm to DeepSpeed, which then discards the gradient."""
        optimizer = self.engine.optimizer
        name = "_get_norm_groups" if self.is_zero3 else "scaled_global_norm"
        invalid = torch.tensor(-1.0, device=self.engine.device)
        setattr(optimizer, name, lambda *_, **__: [invalid] if self.is_zero3 else invalid)
        try:
            self.engine.step()
        finally:
            delattr(optimizer, name)
        assert not self.engine.was_step_applied(), "DeepSpeed took a step that it should have skipped"

    @torch.no_grad()
    def kept(self) -> Iterator[KeptPiece]:
        """This rank's share of AdamW's FP32 weights, which determine the network's, and its moments."""
        for name, parameter in parameters_by_name(self.network):
            for kind in ("weights", *MOMENTS) if self.count else ("weights",):
                start, values = self._share(parameter, None if kind == "weights" else kind)
                yield KeptPiece(kind=kind, name=name, start=start, values=values)
        yield from pieces_of_whole(kept_buffers(self.network), self.ranks)

    def steps(self) -> dict[str, int]:
        """Steps by parameter name, all equal because ZeRO steps on flat groups of parameters."""
        return {name: self.count for name, _ in parameters_by_name(self.network)} if self.count else {}

    @torch.no_grad()
    def take_moments(self, moments: Mapping[str, TensorSource], steps: Mapping[str, int]) -> None:
        """Read the moments of this rank's share; parameters that never had a gradient get moments of 0."""
        if not steps:
            return
        optimizer, adam = self.engine.optimizer, self.adam
        assert adam is not None
        self.count = max(steps.values())
        flat = optimizer.fp32_partitioned_groups_flat if self.is_zero3 else optimizer.single_partition_of_fp32_groups
        for share in flat:
            step = torch.tensor(float(self.count), device=share.device)
            adam.state[share] = {"step": step} | {name: torch.zeros_like(share) for name in MOMENTS}
        if not self.is_zero3:
            optimizer._lazy_init_hp_params_optimizer_state()
        for name, parameter in parameters_by_name(self.network):
            for moment, source in moments.items():
                if name in source:
                    self._set(name, parameter, source, moment)

    def _set(self, name: str, parameter: nn.Parameter, source: TensorSource, moment: str | None) -> None:
        """Set this rank's share of a moment, or of AdamW's FP32 weights (`moment` None)."""
        start, own = self._share(parameter, moment)
        own.copy_(source.read(name, start, start + own.numel()))

    def _share(self, parameter: nn.Parameter, moment: str | None) -> tuple[int, Tensor]:
        """Start of this rank's share in the parameter, and the share in AdamW's own memory."""
        if self.is_zero3:
            start, own = self.own_elements(parameter)
            share, _ = self.engine.optimizer._get_fp32_opt_state_partition(
                parameter, release_swap_buffers=False, optim_state_key=moment
            )
            return start, share[: own.numel()]
        holder: Any = parameter
        place = holder._hp_mapping
        if place is None:  # this rank's part of the flat parameters contains none of it
            return 0, torch.empty(0)
        return place.lp_fragment_address.start, place.get_hp_fragment(moment)


def room_for(parameter: nn.Parameter, device: torch.device) -> nn.Parameter:
    """Memory for a parameter of an outline."""
    return nn.Parameter(torch.zeros_like(parameter, device=device), requires_grad=parameter.requires_grad)


def with_room(network: nn.Module, device: torch.device, source: TensorSource | None) -> nn.Module:
    """The outline with memory and the weights of the source."""
    assert source is not None, "ranks read their weights from the model's folder"
    set_parameters(network, {name: room_for(parameter, device) for name, parameter in network.named_parameters()})
    TorchNetwork(network).fill(source, with_fixed=True)
    return network
