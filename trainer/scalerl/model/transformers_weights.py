"""The weights of a `transformers` model under the names of its file, out and in.

In memory the library fuses some matrices of the file, such as the experts of a layer; what it would write is cut from
them. Most of these cuts are views, so that reading copies nothing and writing to the views fills the model.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion
from transformers.modeling_utils import remove_tied_weights_from_state_dict

from scalerl.weights.hugging_face import Weights, refuse_unlike


class Uncopied(Tensor):
    """A tensor that stays a view where the library asks for a contiguous copy; so do the pieces cut from it."""

    def contiguous(self, *_: Any, **__: Any) -> Tensor:
        """Itself, contiguous or not."""
        return self


def exported(model: PreTrainedModel) -> dict[str, Tensor]:
    """What `save_pretrained` writes, by name; tied tensors once. Views of the model's memory wherever possible."""
    own = remove_tied_weights_from_state_dict(dict(model.state_dict()), model)
    pieces = revert_weight_conversion(model, {name: tensor.as_subclass(Uncopied) for name, tensor in own.items()})
    return {name: piece.as_subclass(Tensor) for name, piece in pieces.items()}


@torch.no_grad()
def import_into(model: PreTrainedModel, weights: Weights) -> None:
    """Fill the model; ValueError where the weights are not its own."""
    places = exported(model)
    refuse_unlike(places, weights)
    memory = {tensor.untyped_storage().data_ptr() for tensor in model.state_dict().values()}
    if all(place.untyped_storage().data_ptr() in memory for place in places.values()):
        for name, place in places.items():
            place.copy_(weights[name])
        return
    # Where the library adds numbers up, turns or joins matrices, only it knows the way back.
    filled = type(model).from_pretrained(
        None,
        config=model.config,
        state_dict=dict(weights),
        dtype=model.dtype,
        attn_implementation=model.config._attn_implementation,
        experts_implementation="eager",
    )
    model.load_state_dict(filled.state_dict())
