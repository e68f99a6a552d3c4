"""DeepSpeed's ZeRO-2 and ZeRO-3 (arXiv 1910.02054): each rank keeps a share of what AdamW needs, or of weights too.

    gradient of the batch = sum over ranks of the gradients of their passes

DeepSpeed averages over ranks, so each loss is multiplied by the next power of 2 that is not below their number, and the
gradient by the rest: any other factor would round BF16 products differently than one process does. DeepSpeed reduces in
BF16 and skips steps by itself unless it is told otherwise: here sums and messages are FP32, and the learner says which
steps are taken.
"""

import copy
import importlib
import logging
import math
import os
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from scalerl.learner.engine import Engine, Network, adamw
from scalerl.learner.ranks import Ranks
from scalerl.learner.torch_engine import TorchNetwork
from scalerl.model.device import UnfitMachine
from scalerl.recipe import DeepSpeedSettings, Optimiser

MOMENTS = ("exp_avg", "exp_avg_sq")
MOST_IN_BUCKET = 500_000_000
"""Numbers that are reduced or gathered at once: DeepSpeed's own default."""


class DeepSpeedEngineMaker:
    """Engines over the ranks of one process group, which must have been joined."""

    def __init__(self, settings: DeepSpeedSettings, ranks: Ranks, device: torch.device) -> None:
        self.settings, self.ranks = settings, ranks
        os.environ.setdefault("LOCAL_RANK", str(ranks.rank))  # it asks for no other sign that ranks were started
        self.deepspeed = imported_deepspeed(device)

    def make(self, network: nn.Module, optimiser: Optimiser) -> "DeepSpeedEngine":
        """Collective."""
        return DeepSpeedEngine(self.deepspeed, network, optimiser, settings=self.settings, ranks=self.ranks)


def imported_deepspeed(device: torch.device) -> Any:
    """The library, told which device to use; UnfitMachine with the command that installs it where it is missing."""
    if device.type == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    try:
        with warnings.catch_warnings(action="ignore"):
            deepspeed = importlib.import_module("deepspeed")
            ops = importlib.import_module("deepspeed.ops")
    except ImportError as error:
        raise UnfitMachine(
            f"learner 'deepspeed': DeepSpeed cannot be imported ({error}); install it with `pip install "
            f"'ablations[deepspeed]'`, or use learner 'fsdp', which needs nothing beside PyTorch"
        ) from error
    # Names of torch.distributed that it uses and that this torch renames.
    warnings.filterwarnings("ignore", "`torch.distributed.* is deprecated", FutureWarning)
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    # Sums over shared memory, which only inference uses, would be compiled by g++ at every first start.
    ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return deepspeed


def ds_config(optimiser: Optimiser, settings: DeepSpeedSettings, numel: int) -> dict[str, Any]:
    """What DeepSpeed is asked for, for a network of so many numbers."""
    # Buckets are allocated whole: at DeepSpeed's own size the pages of a small network's would take most of the time.
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


class ZeroNetwork:
    """A network on its ranks: every rank has all of its weights under ZeRO-2, its share of them under ZeRO-3."""

    def __init__(self, deepspeed: Any, network: nn.Module, config: dict[str, Any], optimiser: Optimiser | None) -> None:
        self.deepspeed, self.config, self._whole = deepspeed, config, network
        self.is_zero3 = config["zero_optimization"]["stage"] == 3
        self.network: nn.Module = copy.deepcopy(network) if self.is_zero3 else network
        self.adam = None if optimiser is None else adamw(self.network, optimiser)
        with warnings.catch_warnings(action="ignore"):
            self.engine, *_ = deepspeed.initialize(model=self.network, optimizer=self.adam, config=config)

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        """What its `forward` says."""
        return self.engine(*arguments, **named)

    @torch.no_grad()
    def whole(self) -> nn.Module:
        """The network that it was made from, with all present weights; ZeRO-3 gathers them layer by layer."""
        if self.is_zero3:
            places = dict(self._whole.named_parameters())
            for layer in by_layer(self.network):
                with self.deepspeed.zero.GatheredParameters([parameter for _, parameter in layer]):
                    for name, parameter in layer:
                        places[name].copy_(parameter)
        return self._whole

    @torch.no_grad()
    def take(self) -> None:
        """Every rank keeps its share."""
        if self.is_zero3:
            for parameter, value in zip(self.network.parameters(), self._whole.parameters(), strict=True):
                shard(parameter).copy_(share_of(parameter, value))

    @torch.no_grad()
    def copy_from(self, engine: Engine) -> None:
        """Every rank copies its own share, under ZeRO-3."""
        assert isinstance(engine, ZeroNetwork)
        assert self.is_zero3
        for own, theirs in zip(self.network.parameters(), engine.network.parameters(), strict=True):
            shard(own).copy_(shard(theirs))


class DeepSpeedEngine(ZeroNetwork):
    """A network, its AdamW, and ZeRO over the ranks."""

    def __init__(
        self, deepspeed: Any, network: nn.Module, optimiser: Optimiser, *, settings: DeepSpeedSettings, ranks: Ranks
    ) -> None:
        numel = sum(parameter.numel() for parameter in network.parameters())
        super().__init__(deepspeed, network, ds_config(optimiser, settings, numel), optimiser)
        self.ranks, self.steps, self.optimiser = ranks, 0, optimiser
        self.rate = optimiser.learning_rate
        self.scale = (1 << (ranks.world - 1).bit_length()) / ranks.world
        """What is left in the gradient until the step takes it out."""
        if self.scale != 1.0:
            self.engine.optimizer.override_loss_scale(self.scale)

    def frozen(self, network: nn.Module) -> Network:
        """As this one: in this process under ZeRO-2, shared out under ZeRO-3."""
        if not self.is_zero3:
            return TorchNetwork(network)
        zero = {name: value for name, value in self.config["zero_optimization"].items() if name != "offload_optimizer"}
        return ZeroNetwork(self.deepspeed, network, {**self.config, "zero_optimization": zero}, None)

    @torch.no_grad()
    def take(self) -> None:
        """Every rank keeps its share, and AdamW's FP32 copy of it."""
        super().take()
        for parameter, value in zip(self.network.parameters(), self._whole.parameters(), strict=True):
            self._set(parameter, value, None)

    def zero_grad(self) -> None:
        """Nothing to do: `step` and `skip` forget the gradient."""

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradient; the last pass of a batch ends its sum over ranks."""
        self.engine.set_gradient_accumulation_boundary(last)
        self.engine.backward(loss * self.ranks.world, scale_wrt_gas=False)

    def gradients(self) -> list[nn.Parameter]:
        """None: FP16 is refused."""
        return []

    def norm(self, max_norm: float | None) -> float:
        """The norm; DeepSpeed scales down in `step`. Its own sign of a norm that is not finite is -1."""
        optimizer = self.engine.optimizer
        if self.is_zero3:
            norms = torch.stack([torch.as_tensor(norm).float().cpu() for norm in optimizer._get_norm_groups()])
            total = math.nan if bool((norms < 0).any()) else float(torch.linalg.vector_norm(norms))
        else:
            total = float(optimizer.scaled_global_norm())
        return total / self.scale if total >= 0 else math.nan

    def step(self, rate: float) -> None:
        """One step of AdamW on every share, then each rank has the new weights or its share of them."""
        for group in self.engine.optimizer.param_groups:
            group["lr"] = rate
        self.rate = rate
        self.engine.step()
        assert self.engine.was_step_applied(), "DeepSpeed skipped a step whose norm is finite"
        self.steps += 1

    def skip(self) -> None:
        """DeepSpeed forgets a gradient whose norm is not finite: it is told that this one is not."""
        optimizer = self.engine.optimizer
        name = "_get_norm_groups" if self.is_zero3 else "scaled_global_norm"
        invalid = torch.tensor(-1.0, device=self.engine.device)
        setattr(optimizer, name, lambda *_, **__: [invalid] if self.is_zero3 else invalid)
        try:
            self.engine.step()
        finally:
            delattr(optimizer, name)
        assert not self.engine.was_step_applied(), "DeepSpeed took a step that it was to skip"

    @torch.no_grad()
    def moments(self) -> dict[str, Any]:
        """AdamW's state of the whole network on the host, one parameter at a time."""
        read = importlib.import_module("deepspeed.utils").safe_get_full_optimizer_state
        state: dict[int, dict[str, Tensor]] = {}
        for index, parameter in enumerate(self.network.parameters() if self.steps else ()):
            found = {name: read(parameter, name).cpu().clone() for name in MOMENTS}
            state[index] = {"step": torch.tensor(float(self.steps))} | found
        (group,) = adamw(self._whole, self.optimiser).state_dict()["param_groups"]
        return {"state": state, "param_groups": [{**group, "lr": self.rate}]}

    @torch.no_grad()
    def take_moments(self, state: dict[str, Any]) -> None:
        """Every rank keeps its share; what never had a gradient has moments of 0."""
        if not state["state"]:
            return
        optimizer, adam = self.engine.optimizer, self.adam
        assert adam is not None
        self.steps = int(next(iter(state["state"].values()))["step"])
        flat = optimizer.fp32_partitioned_groups_flat if self.is_zero3 else optimizer.single_partition_of_fp32_groups
        for share in flat:
            step = torch.tensor(float(self.steps), device=share.device)
            adam.state[share] = {"step": step} | {name: torch.zeros_like(share) for name in MOMENTS}
        if not self.is_zero3:
            optimizer._lazy_init_hp_params_optimizer_state()
        for index, parameter in enumerate(self.network.parameters()):
            for name in MOMENTS:
                if index in state["state"]:
                    self._set(parameter, state["state"][index][name], name)

    def _set(self, parameter: nn.Parameter, value: Tensor, name: str | None) -> None:
        """This rank's share of a moment, or of the FP32 weights that AdamW steps on."""
        if self.is_zero3:
            self.engine.optimizer.set_local_hp_param(share_of(parameter, value), parameter, name)
        else:
            holder: Any = parameter
            holder.set_full_hp_param(value.to(parameter.device), name)


def by_layer(network: nn.Module) -> Iterator[list[tuple[str, nn.Parameter]]]:
    """Parameters by name, those of one layer together: the most that are gathered at once."""
    layers: dict[str, list[tuple[str, nn.Parameter]]] = {}
    for name, parameter in network.named_parameters():
        head, _, tail = name.partition(".layers." if ".layers." in name else ".blocks.")
        layers.setdefault(f"{head} {tail.split('.')[0]}" if tail else "outside", []).append((name, parameter))
    yield from layers.values()


def shard(parameter: nn.Parameter) -> Tensor:
    """What ZeRO-3 keeps of a parameter on this rank."""
    holder: Any = parameter
    return holder.ds_tensor


def share_of(parameter: nn.Parameter, value: Tensor) -> Tensor:
    """This rank's part of a whole tensor, padded as ZeRO-3 pads it."""
    own = shard(parameter)
    world = torch.distributed.get_world_size()
    padded = torch.zeros(own.numel() * world, dtype=own.dtype, device=own.device)
    padded[: value.numel()] = value.flatten()
    return padded[own.numel() * torch.distributed.get_rank() :][: own.numel()]
