"""The variant and seed of a run: from its name by a pattern, or from its configuration by keys."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ablations.errors import AblationsError
from ablations.fit.curve_file import seed_in
from ablations.nearest_name import did_you_mean

USUAL_NAMES = (
    r"(?P<variant>.+?)(?:[-_.,/ (]+(?i:s|seed)[-_= ]*(?P<seed>\d+)\)?"
    r"(?!\.\d{1,3}$|[-_]\d{1,3}\.\d+$)(?:[-_.][\dT_.-]+)?)?"
)
"""Default pattern: `dapo-s1`, `dapo_seed1`, `loss=dapo,seed=1`, each perhaps with a date; `dapo` for a single run.

`dapo-s0.5` is no seed 0, and `dapo-s1-0.01` is not dated.
"""
SEED_INSIDE = re.compile(r"(?:(.+?)[-_.,/ (]+)?seed[-_= ]*(\d+)\)?([-_.,/ ].+)", re.IGNORECASE)
"""A common form with the seed in the middle or at the start: `dapo_seed1_lr1e-6` and `seed1_dapo_lr1e-6` are variant
`dapo_lr1e-6`."""


@dataclass(frozen=True, kw_only=True)
class Naming:
    """Rule for the variant and seed of a run: `Naming(pattern="(?P<variant>.+)-run(?P<seed>[0-9]+)")`."""

    pattern: str = USUAL_NAMES
    """Regular expression that matches the whole name of a run."""
    variant: str | None = None
    """Configuration key of the variant, instead of the pattern."""
    seed: str | None = None

    def check(self) -> None:
        """Raise AblationsError for a pattern without a group for the variant."""
        try:
            groups = re.compile(self.pattern).groupindex
        except re.error as error:
            raise AblationsError(f"--pattern {self.pattern!r}: {error}; write a regular expression") from None
        if self.variant is None and "variant" not in groups:
            raise AblationsError(
                f"--pattern {self.pattern!r}: no group `(?P<variant>...)`; write one, and `(?P<seed>...)` for the seed"
            )

    def of(self, name: str, config: Mapping[str, str], place: str) -> tuple[str, int | None]:
        """The variant, and the seed if the run has one; AblationsError if the name or configuration does not match."""
        found = re.fullmatch(self.pattern, name)
        groups = found.groupdict() if found else {}
        if self.pattern == USUAL_NAMES and not groups.get("seed") and (inside := SEED_INSIDE.fullmatch(name)):
            groups = {"variant": inside[1] + inside[3] if inside[1] else inside[3][1:], "seed": inside[2]}
        if found is None and self.variant is None:
            raise AblationsError(
                f"{place}: the name {name!r} does not match --pattern {self.pattern!r}; "
                "the pattern must match the whole name"
            )
        variant = groups.get("variant") if self.variant is None else _value(config, self.variant, "--variant", place)
        seed = groups.get("seed") if self.seed is None else _value(config, self.seed, "--seed", place)
        if not variant:
            raise AblationsError(f"{place}: no variant in the name {name!r}; see --pattern and --variant")
        return variant, None if seed is None else whole_seed(seed, place)


def whole_seed(text: str, place: str) -> int:
    """A seed as a number; AblationsError for anything else."""
    if (seed := seed_in(text)) is None:
        raise AblationsError(f"{place}: found seed {text!r}; a seed is a whole number")
    return seed


def _value(config: Mapping[str, str], key: str, option: str, place: str) -> str:
    if key not in config:
        raise AblationsError(
            f"{place}: {option}: no {key!r} in the run's configuration; "
            f"{did_you_mean(key, sorted(config), 'keys of its configuration')}"
        )
    return config[key]
