"""A `transformers` policy with a LoRA adapter, by `peft`: y = W x + alpha / rank B (A x), with only A and B trained.

The policy's weights, as exported and imported, are the adapter's alone, under the names in peft's own file. The model's
own weights are frozen: copies of the policy in one process share them. Without its adapter the policy is the model that
the run started from.
"""

import copy
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import Linear
from torch import Tensor, nn
from transformers import PreTrainedModel

from scalerl.model.adapter_weights import file_name, is_of_adapter
from scalerl.model.policy import Policy
from scalerl.model.size import ModelSize
from scalerl.model.transformers_policy import OWN, TransformersPolicy
from scalerl.model.transformers_weights import FileParts, exported
from scalerl.recipe import Lora
from scalerl.recipe.adapter import targeted
from scalerl.weights.hugging_face import Weights, refuse_unlike

NAME = "default"
"""Name of the adapter in peft's layers."""
BASE_LAYER = ".base_layer."
"""Part of the name of a target's own weights, which peft's layer holds."""


class AdaptedPolicy(TransformersPolicy):
    """A policy whose model has an adapter on the target layers; at first the adapter is 0."""

    def __init__(self, policy: TransformersPolicy, settings: Lora) -> None:
        """Puts the adapter into the model of `policy`, which may be an outline."""
        model = policy.model
        layers = targeted(settings.targets, linear_names(model))
        put_into(model, layers, settings, is_outline=policy.device.type == "meta")
        super().__init__(model, policy.precision)
        assert {name for name, _ in self.adapted_layers()} == layers, "peft put the adapter on other layers"
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(is_of_adapter(name))
        self._clear()

    @torch.no_grad()
    def _clear(self) -> None:
        for name, parameter in self.named_parameters():
            if is_of_adapter(name):
                parameter.zero_()

    def adapted_layers(self) -> Iterator[tuple[str, Linear]]:
        """The layers with an adapter, by their names in the model."""
        for name, module in self.model.named_modules():
            if isinstance(module, Linear):
                yield name, module

    @property
    def size(self) -> ModelSize:
        """Sizes that determine the compute; only the adapter has a gradient and is pushed."""
        of_adapter = sum(parameter.numel() for name, parameter in self.named_parameters() if is_of_adapter(name))
        return replace(super().size, trained_parameters=of_adapter)

    def fixed_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The model's own weights."""
        yield from ((name, one) for name, one in self.named_parameters() if not is_of_adapter(name))

    def initial_adapter(self, generator: torch.Generator) -> dict[str, Tensor]:
        """A drawn uniformly within 1 / sqrt(inputs), as in peft, and B 0; on the CPU, under peft's names."""
        drawn: dict[str, Tensor] = {}
        for name, (shape, dtype) in self._forms.items():
            if is_of_adapter(name):
                tensor = drawn[file_name(name.removeprefix(OWN))] = torch.zeros(shape, dtype=dtype, device="cpu")
                if ".lora_A." in name:
                    nn.init.kaiming_uniform_(tensor, a=math.sqrt(5), generator=generator)
        return drawn

    def start_policy(self) -> Policy:
        """The model without its adapter, frozen; it shares the model's own weights."""
        model = copy.deepcopy(self.model, memo={id(parameter): parameter for _, parameter in self.fixed_parameters()})
        for name, layer in [one for one in model.named_modules() if isinstance(one[1], Linear)]:
            above, _, last = name.rpartition(".")
            setattr(model.get_submodule(above), last, layer.base_layer)
        start = TransformersPolicy(model, self.precision).requires_grad_(False)
        start.recompute = self.recompute
        return start

    def exported_part(self, own: Weights) -> dict[str, Tensor]:
        return {file_name(name.removeprefix(OWN)): tensor for name, tensor in own.items() if is_of_adapter(name)}

    def importer(self, weights: Weights) -> Callable[[str], Tensor]:
        """Function that finds the tensor with one of our names: the adapter's under its own names, 0 if they are
        missing, and all others under the names in the model's file."""
        parts = FileParts(self.model, weights)

        def imported(name: str) -> Tensor:
            shape, dtype = self._forms[name]
            empty = torch.zeros(shape, dtype=dtype, device="cpu")
            if is_of_adapter(name):
                given = weights.get(file_name(name.removeprefix(OWN)))
                return empty if given is None else empty.copy_(given)
            return parts.filled(name.removeprefix(OWN).replace(BASE_LAYER, "."), empty)

        return imported

    @torch.no_grad()
    def import_weights(self, weights: Weights) -> None:
        places = self.exported_weights()
        refuse_unlike(places, weights)
        for name, place in places.items():
            place.copy_(weights[name])

    def stored_weights(self) -> dict[str, Tensor]:
        """The model's own weights under the library's names."""
        return exported(self.model, self._without_adapter())

    def take_stored(self, state: Mapping[str, Tensor]) -> None:
        """Fill the model's own weights, from a `state_dict` of the library's model; the adapter becomes 0."""
        own = {name.replace(BASE_LAYER, "."): name for name in self.model.state_dict() if not is_of_adapter(name)}
        assert own.keys() == state.keys(), "the library's model has other tensors"
        self.model.load_state_dict({own[name]: tensor for name, tensor in state.items()}, strict=False)
        self._clear()

    @torch.no_grad()
    def save_weights(self, folder: Path) -> None:
        """Write config.json and the weights with the adapter added: W + alpha / rank B A."""
        state = self._without_adapter()
        for name, layer in self.adapted_layers():
            state[f"{name}.weight"] = state[f"{name}.weight"] + layer.get_delta_weight(NAME)
        self.model.save_pretrained(folder, state_dict=state)

    def _without_adapter(self) -> dict[str, Tensor]:
        """The model's `state_dict` as it would be without the adapter."""
        state = self.model.state_dict()
        return {name.replace(BASE_LAYER, "."): tensor for name, tensor in state.items() if not is_of_adapter(name)}


def put_into(model: PreTrainedModel, layers: set[str], settings: Lora, *, is_outline: bool) -> None:
    """Replace these layers with peft's, whose weights are not yet set."""
    # Of a list peft keeps only the ends of names. In a model with experts it turns some names into names of experts,
    # unless it is given a module without a configuration.
    named = "|".join(re.escape(f"model.{layer}") for layer in sorted(layers))
    config = LoraConfig(r=settings.rank, lora_alpha=cast(int, settings.alpha), target_modules=named)
    with torch.random.fork_rng(devices=[]):  # peft draws weights that nobody uses
        inject_adapter_in_model(config, nn.ModuleDict({"model": model}), NAME, low_cpu_mem_usage=is_outline)


def linear_names(model: PreTrainedModel) -> set[str]:
    """Names of the linear layers of a model, apart from its head."""
    head = model.get_output_embeddings()
    return {name for name, module in model.named_modules() if isinstance(module, nn.Linear) and module is not head}
