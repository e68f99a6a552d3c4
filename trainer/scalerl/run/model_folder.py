"""The folder `model/` of a run, for `transformers` and vLLM."""

import shutil
from pathlib import Path

from scalerl.learner.learner import Learner
from scalerl.run.run_folder import replace_folder

SMALL_FILES = (".json", ".jinja", ".model", ".txt")
"""Suffixes of a model's configuration and tokenizer files."""


def write_model(folder: Path, learner: Learner, start: Path) -> None:
    """Replace `folder` by the learner's policy, with the configuration and tokenizer of the model it started from.

    Both are copied: importing `transformers` only to rewrite them would take seconds. If the learner writes a
    config.json with its weights, that file is kept, because it records their precision.
    """
    with replace_folder(folder) as partial:
        learner.save_model(partial)
        for path in start.iterdir():
            is_index = path.name.endswith(".index.json")
            is_written = path.name == "config.json" and (partial / path.name).exists()
            if path.suffix in SMALL_FILES and not is_index and not is_written:
                shutil.copyfile(path, partial / path.name)
