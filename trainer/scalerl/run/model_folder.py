"""The folder `model/` of a run: what `transformers` and vLLM load."""

import shutil
from pathlib import Path

from scalerl.learner.learner import Learner
from scalerl.run.run_folder import replace_folder

SMALL_FILES = (".json", ".jinja", ".model", ".txt")
"""Endings of a model's files that are not weights: configuration and tokenizer."""


def write_model(folder: Path, learner: Learner, start: Path) -> None:
    """Replace `folder` by the learner's policy, with the configuration and tokenizer of the model it started from.

    Those are copied: `transformers` would take seconds to import only to write them again. A learner that writes a
    config.json with its weights keeps it, because their precision stands there.
    """
    with replace_folder(folder) as partial:
        learner.save_model(partial)
        for path in start.iterdir():
            is_index = path.name.endswith(".index.json")
            is_written = path.name == "config.json" and (partial / path.name).exists()
            if path.suffix in SMALL_FILES and not is_index and not is_written:
                shutil.copyfile(path, partial / path.name)
