"""A model's folder, read completely or rejected: no tensor may be missing, unexpected, mis-shaped or not a number.

`transformers` initialises missing tensors from an unseeded random state and ignores unknown ones. A run would then
train a different model from the one named, and a different one each time.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from scalerl.weights.hugging_face import Weights, refuse_unlike, refuse_unusable, some_of

logging.disable_progress_bar()  # a run's log and the output of `platform check` are read later
FLOATS = ("F64", "F32", "F16", "BF16")
"""Safetensors' names of the allowed weight types."""


def read_model(folder: Path, empty: PreTrainedModel, own: Weights) -> PreTrainedModel:
    """The `transformers` model of a folder in float32; `empty` is the model to fill, `own` its expected weights.

    ValueError if the folder cannot be read as this model.
    """
    in_files = headers(folder)
    try:
        model, info = loaded(AutoModelForCausalLM, folder, empty, dtype=torch.float32)
    except Exception as error:  # the library raises many types for a folder that does not fit
        refuse_unlike(own, {name: torch.empty(shape, device="meta") for name, shape in in_files.items()}, str(folder))
        raise ValueError(f"cannot read model {folder}: {type(error).__name__}: {error}") from error
    refuse_faults(f"model {folder}", model, info)
    refuse_unusable(model.state_dict(), str(folder))
    refuse_untied(folder, empty.all_tied_weights_keys or {}, model.state_dict())
    return model


def loaded(kind: Any, source: Path | None, like: PreTrainedModel, **named: Any) -> tuple[PreTrainedModel, Any]:
    """A model that the library loads, with the attention of `like`, and the names that it did not find or use."""
    # The annotation does not say that loading info makes the result a pair.
    return kind.from_pretrained(
        source,
        output_loading_info=True,
        ignore_mismatched_sizes=True,
        attn_implementation=like.config._attn_implementation,
        experts_implementation="eager",
        **named,
    )


def headers(folder: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of the tensors in a folder's files; raises ValueError for missing or damaged files and wrong types."""
    index = folder / "model.safetensors.index.json"
    files = sorted(folder.glob("*.safetensors"))
    if index.exists():
        try:
            named = set(json.loads(index.read_text())["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ValueError(f"{index} is damaged; copy the model's folder again") from None
        if lost := sorted(name for name in named if not (folder / name).is_file()):
            raise ValueError(f"{index} lists {some_of(lost)}, missing from the folder; copy the model's folder again")
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
            raise ValueError(f"{path} is damaged or truncated ({error}); copy the file again") from None
    if wrong:
        raise ValueError(
            f"model {folder} has tensors that are not floating-point: {some_of(wrong)}; quantised weights cannot be "
            f"trained, so pass the unquantised model in FP32, BF16 or FP16"
        )
    return shapes


def refuse_faults(source: str, model: PreTrainedModel, info: Mapping[str, Any]) -> None:
    """Raises ValueError naming the tensors that the library initialised, ignored or could not fill."""
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
            f"{source}: weights do not fit its config.json ({model.config.model_type}): {'; '.join(said)}; "
            f"no weight is initialised at random, so pass the whole folder that `save_pretrained` wrote"
        )


def refuse_untied(folder: Path, tied: Mapping[str, str], weights: Weights) -> None:
    """Raises ValueError if a file has different values for a tensor that config.json ties to another."""
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in tied.keys() & set(file.keys()):
                if not torch.equal(file.get_tensor(name).float(), weights[tied[name]]):
                    raise ValueError(
                        f"model {folder}: config.json ties {name} to {tied[name]}, but {path.name} has other values "
                        f"for it; set tie_word_embeddings to false, or remove {name} from the file"
                    )
