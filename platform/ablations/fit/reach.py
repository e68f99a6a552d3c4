"""Whether eq. 1 can rise within a window of compute as its readings do.

Between C_0 and C_1 eq. 1 rises by at most tanh(B ln(C_1 / C_0) / 4) of its gain: a curve from compute 1,000,000 to
1,100,000 by 14 % of it at the steepest B. Readings that rise further are those of a curve whose compute does not count
from the start of training, as of a run that went on from another; a fit would take the rise for noise.
"""

import numpy as np

from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.engine.family import STEEPEST

SURE = 4.0
"""Standard errors by which a rise must exceed what is possible."""


def possible_share(first: float, last: float) -> float:
    """The largest share of its gain that eq. 1 can rise by between two computes."""
    return float(np.tanh(STEEPEST * np.log(last / first) / 4))


def refuse_a_rise_out_of_reach(curve: Curve, compute: np.ndarray, score: np.ndarray) -> None:
    """AblationsError if the last third of the readings lies further above the first than eq. 1 can rise."""
    third = max(score.size // 3, 2)
    rise = float(score[-third:].mean() - score[:third].mean())
    error = float(np.diff(score).std() / np.sqrt(third))  # a difference has twice the variance of a reading
    share = possible_share(float(compute[0]), float(compute[-1]))
    if rise - SURE * error > share:
        raise AblationsError(
            f"curve {curve.name!r}: its readings rise by {rise:.2g} while compute goes from {compute[0]:,.10g} to "
            f"{compute[-1]:,.10g}, and eq. 1 can rise by at most {share:.2g} there; let compute count from the "
            "start of training: subtract what it was then"
        )
