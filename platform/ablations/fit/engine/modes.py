"""Modes of tying R_0 to the reading before RL; light, because options import this before SciPy is needed."""

from typing import Literal

R0Mode = Literal["fixed", "anchored", "free"]
"""A mode: `fixed` takes the reading as R_0, `anchored` as a reading that may lie off the law, `free` ignores it."""
