"""The numbers of a run-log row under flat names, for whatever draws them one by one: MLflow and the page."""

from typing import Any

NOT_SCALARS = frozenset({"step", "wall_s"})
"""Fields that say where a row is drawn."""


def row_scalars(row: dict[str, Any]) -> dict[str, float]:
    """{"loss": -0.012, "skipped": 0.0, "staleness_mean": 2.4, "staleness_max": 8.0, ...} of one row.

    A histogram gives its mean and its largest value, numbers under names each their own (`outcomes_right`); what is
    none of these nor a number is left out.
    """
    scalars: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, dict) and not all(map(_is_number, value)):
            scalars |= {f"{name}_{inner}": number for inner, number in row_scalars(value).items()}
        elif isinstance(value, dict) and value:
            counts = {float(key): count for key, count in value.items()}
            scalars[f"{name}_mean"] = sum(key * count for key, count in counts.items()) / sum(counts.values())
            scalars[f"{name}_max"] = max(counts)
        elif isinstance(value, int | float) and name not in NOT_SCALARS:
            scalars[name] = float(value)
    return scalars


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
