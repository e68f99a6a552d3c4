"""Modes of tying R_0 to the reading before RL; imports little, because options need it before SciPy."""

from typing import Literal

R0Mode = Literal["fixed", "anchored", "free"]
"""A mode: `fixed` takes the reading as R_0, `anchored` as a reading that may lie off the law, `free` ignores it."""
