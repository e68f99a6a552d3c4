"""The repository's recipe and scale files as the trainer takes them, which knows nothing of a scale's `resources:`."""

from typing import Any

import yaml
from places import RECIPES

from ablations.study.resolve import unread


def read_scale(name: str) -> dict[str, Any]:
    """The settings in a scale file, without what its jobs ask of a cluster; models and data need not be at hand."""
    scale = yaml.safe_load((RECIPES / "scales" / f"{name}.yaml").read_text())
    return unread({key: value for key, value in scale.items() if key != "resources"})
