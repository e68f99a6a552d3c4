"""The numbers of a run-log row under flat names, for MLflow and the page."""

from typing import Any

NOT_SCALARS = frozenset({"step", "wall_s"})
"""Fields that give the position of a row."""


def row_scalars(row: dict[str, Any]) -> dict[str, float]:
    """The numbers of one row: {"loss": -0.012, "skipped": 0.0, "staleness_mean": 2.4, "staleness_max": 8.0, ...}.

    A histogram gives its mean and its largest value; a mapping of names to numbers gives each number
    (`outcomes_right`); anything else that is not a number is left out.
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
