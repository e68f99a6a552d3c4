"""The weights of a `transformers` model under the names in its file, exported and imported.

In memory the library fuses some of the file's matrices, such as the experts of a layer; export splits them again.
Most splits are views, so reading copies nothing, and writing to the views fills the model.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion
from transformers.modeling_utils import remove_tied_weights_from_state_dict

from scalerl.model.transformers_folder import loaded, refuse_faults
from scalerl.weights.hugging_face import Weights, refuse_unlike


class Uncopied(Tensor):
    """A tensor that stays a view when the library asks for a contiguous copy, as do its slices."""

    def contiguous(self, *_: Any, **__: Any) -> Tensor:
        """Return this tensor, contiguous or not."""
        return self


def exported(model: PreTrainedModel, state: Weights | None = None) -> dict[str, Tensor]:
    """Tensors that `save_pretrained` writes, by name, tied ones once; views of the model's memory if possible.

    With `state`, only the tensors in it, by the names of the model's `state_dict`.
    """
    own = remove_tied_weights_from_state_dict(dict(model.state_dict() if state is None else state), model)
    pieces = revert_weight_conversion(model, {name: tensor.as_subclass(Uncopied) for name, tensor in own.items()})
    return {name: piece.as_subclass(Tensor) for name, piece in pieces.items()}


class FileParts:
    """A model's own tensors, one at a time, from weights under the library's names."""

    def __init__(self, model: PreTrainedModel, weights: Weights) -> None:
        self.model, self.weights = model, weights
        self._converted: Weights | None = None

    @torch.no_grad()
    def filled(self, name: str, empty: Tensor) -> Tensor:
        """The tensor `name` of the model's `state_dict`, written into `empty`, which has its shape."""
        places = exported(self.model, {name: empty})
        memory = empty.untyped_storage().data_ptr()
        if all(
            place.untyped_storage().data_ptr() == memory and theirs in self.weights for theirs, place in places.items()
        ):
            for theirs, place in places.items():
                place.copy_(self.weights[theirs])
            return empty
        if self._converted is None:
            self._converted = converted(self.model, self.weights)
        return self._converted[name]


@torch.no_grad()
def import_into(model: PreTrainedModel, weights: Weights) -> None:
    """Fill the model; raises ValueError if the weights are not those of this model."""
    places = exported(model)
    refuse_unlike(places, weights)
    memory = {tensor.untyped_storage().data_ptr() for tensor in model.state_dict().values()}
    if all(place.untyped_storage().data_ptr() in memory for place in places.values()):
        for name, place in places.items():
            place.copy_(weights[name])
        return
    # If the library sums, rotates or joins matrices, only its own loader can convert them back.
    model.load_state_dict(converted(model, weights))


def converted(model: PreTrainedModel, weights: Weights) -> Weights:
    """All of the model's own tensors, converted by the library from weights under its names.

    Raises ValueError for missing, unexpected or mis-shaped tensors, which the library would initialise at random.
    """
    own = {"config": model.config, "state_dict": dict(weights), "dtype": model.dtype}
    filled, info = loaded(type(model), None, model, **own)
    refuse_faults("the model being read", filled, info)
    return filled.state_dict()
