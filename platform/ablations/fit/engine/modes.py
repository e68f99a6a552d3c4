"""How R_0 may be tied to the reading before RL; light, as options read it before SciPy is needed."""

from typing import Literal

R0Mode = Literal["fixed", "anchored", "free"]
"""`fixed` takes the reading as R_0, `anchored` as a reading that may lie off the law, `free` ignores it."""
