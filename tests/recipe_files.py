"""The repository's recipe and scale files as the trainer takes them, which knows nothing of a scale's `resources:`."""

from typing import Any

import yaml
from places import RECIPES


def read_scale(name: str) -> dict[str, Any]:
    """The settings in a scale file, without what its jobs ask of a cluster."""
    scale = yaml.safe_load((RECIPES / "scales" / f"{name}.yaml").read_text())
    return {key: value for key, value in scale.items() if key != "resources"}
