"""A model read from a folder whole, or refused by name: no tensor is missing, left over, mis-shaped or not a number.

The library draws what a folder lacks from an unseeded random state and leaves aside what it does not know. A run would
then train another model than the one that was named, and each time another.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoModelForCausalLM, PreTrainedModel

from scalerl.weights.hugging_face import Weights, refuse_unlike, refuse_unusable, some_of

FLOATS = ("F64", "F32", "F16", "BF16")
"""Safetensors' names of the types that weights may have."""


def read_model(folder: Path, empty: PreTrainedModel, own: Weights) -> PreTrainedModel:
    """The library's model of a folder in float32; `empty` is the model to fill, `own` what its file should have."""
    in_files = headers(folder)
    implementation = {"attn_implementation": empty.config._attn_implementation, "experts_implementation": "eager"}
    try:
        # Its annotation leaves out that loading info makes it a pair.
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, output_loading_info=True, ignore_mismatched_sizes=True, **implementation
        )
        model, info = loaded
    except Exception as error:  # the library raises whatever a folder that does not fit leads to
        refuse_unlike(own, {name: torch.empty(shape, device="meta") for name, shape in in_files.items()}, str(folder))
        raise ValueError(f"model {folder} cannot be read: {type(error).__name__}: {error}") from error
    refuse_faults(f"model {folder}", model, info)
    refuse_unusable(model.state_dict(), str(folder))
    refuse_untied(folder, empty.all_tied_weights_keys or {}, model.state_dict())
    return model


def headers(folder: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of the tensors in a folder's files; ValueError names files missing or damaged, and wrong types."""
    index = folder / "model.safetensors.index.json"
    files = sorted(folder.glob("*.safetensors"))
    if index.exists():
        try:
            named = set(json.loads(index.read_text())["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ValueError(f"{index} is damaged; copy the model's folder again") from None
        if lost := sorted(name for name in named if not (folder / name).is_file()):
            raise ValueError(f"{index} names {some_of(lost)}, missing in the folder; copy the model's folder again")
        files = [folder / name for name in sorted(named)]
    shapes: dict[str, tuple[int, ...]] = {}
    wrong: list[str] = []
    for path in files:
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - not a mapping
                    part = file.get_slice(name)
                    shapes[name] = tuple(part.get_shape())
                    if part.get_dtype() not in FLOATS:
                        wrong.append(f"{name} ({part.get_dtype()})")
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{path} is damaged or cut short ({error}); copy it again") from None
    if wrong:
        raise ValueError(
            f"model {folder} has tensors that are no floating-point numbers: {some_of(wrong)}; quantised weights "
            f"cannot be trained, so give the folder of the model before quantisation, in FP32, BF16 or FP16"
        )
    return shapes


def refuse_faults(source: str, model: PreTrainedModel, info: Mapping[str, Any]) -> None:
    """Raises ValueError that names what the library drew at random, left aside or could not fill."""
    faults = {
        "missing": sorted(info["missing_keys"]),
        "unexpected": sorted(info["unexpected_keys"]),
        "of another shape": [
            f"{name} ({list(found)} instead of {list(wanted)})"
            for name, found, wanted in sorted(info["mismatched_keys"])
        ],
    }
    if any(faults.values()) or info["error_msgs"]:
        said = [f"{fault}: {some_of(names)}" for fault, names in faults.items() if names] + list(info["error_msgs"])
        raise ValueError(
            f"{source}: its weights do not fit its config.json ({model.config.model_type}): {'; '.join(said)}; "
            f"nothing is drawn at random in their place, so give the whole folder that `save_pretrained` wrote"
        )


def refuse_untied(folder: Path, tied: Mapping[str, str], weights: Weights) -> None:
    """Raises ValueError where a file has its own numbers for a tensor that config.json ties to another."""
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in tied.keys() & set(file.keys()):
                if not torch.equal(file.get_tensor(name).float(), weights[tied[name]]):
                    raise ValueError(
                        f"model {folder}: config.json ties {name} to {tied[name]}, but {path.name} has other numbers "
                        f"for it; set tie_word_embeddings to false, or take {name} out"
                    )
