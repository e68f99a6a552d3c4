"""Finished runs forecast from their first parts: the forecasts of every part, and how far each lay off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ablations.answers.calibration import PastError
from ablations.answers.standing import ahead_of, standing_of
from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_law
from ablations.fit.law_fit import LawFit
from ablations.fit.options import FitSettings
from ablations.text import compute_text, counted

FRACTIONS = (0.3, 0.5, 0.7)
"""Fitted shares of a run's compute; the paper forecasts from the first half (ScaleRL §2.1)."""
NUM_DRAWS, NUM_FOR_MEDIANS = 500, 100
"""Number of draws of a part for its forecast, and where nothing but medians is asked for."""
NUM_LAST = 3
"""Number of readings at the end of a run whose mean is foretold."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """A finished run, fitted on its first part beside the same part of its siblings."""

    variant: str
    curve: Curve
    """The whole curve."""
    fraction: float
    fit: LawFit
    siblings: tuple[LawFit, ...]
    """The fits of all runs of the variant at this cut, its own among them."""

    @property
    def compute(self) -> np.ndarray:
        """The computes foretold, shape (NUM_LAST,)."""
        return self.curve.compute[-NUM_LAST:]

    @property
    def measured(self) -> float:
        """The mean of the last readings."""
        return float(self.curve.score[-NUM_LAST:].mean())

    @property
    def error(self) -> PastError:
        """How far the forecast from this part lay off, before any calibration."""
        centre = ahead_of(self.fit, self.siblings, self.compute).centre
        distance = float(np.log(self.compute.mean() / self.fit.window[1]))
        carried = standing_of(self.fit).carried
        foretold = float(np.clip(centre, 0, self.fit.settings.highest).mean())
        return PastError(
            variant=self.variant,
            run=self.curve.name,
            error=float((self.measured - foretold) / np.sqrt(distance)),
            carried=float((self.measured - carried) / np.sqrt(distance)),
            distance=distance,
        )


def cuts_of(
    variant: str, curves: Sequence[Curve], fraction: float, settings: FitSettings, *, num_draws: int = NUM_DRAWS
) -> tuple[list[Cut], dict[str, str]]:
    """The finished runs of a variant cut at a share of their compute, and the reason of each that cannot be."""
    fits, reasons = {}, {}
    for curve in curves:
        try:
            fits[curve.name] = _first_part(curve, fraction, settings, num_draws)
        except AblationsError as error:
            reasons[curve.name] = str(error)
    siblings = tuple(fits.values())
    cuts = [
        Cut(variant=variant, curve=curve, fraction=fraction, fit=fits[curve.name], siblings=siblings)
        for curve in curves
        if curve.name in fits
    ]
    return cuts, reasons


def past_errors(variant: str, curves: Sequence[Curve], settings: FitSettings) -> Iterator[PastError]:
    """The errors of all forecasts of the finished runs of a variant."""
    for fraction in FRACTIONS:
        cuts, _ = cuts_of(variant, curves, fraction, settings, num_draws=NUM_FOR_MEDIANS)
        yield from (cut.error for cut in cuts)


def _first_part(curve: Curve, fraction: float, settings: FitSettings, num_draws: int) -> LawFit:
    fit_to = fraction * float(curve.compute[-1])
    if (found := int(np.sum(curve.compute > fit_to))) < NUM_LAST:
        needed = f"{counted(found, 'evaluation')} beyond {compute_text(fit_to)}; a check needs {NUM_LAST}"
        raise AblationsError(f"curve {curve.name!r}: {needed}")
    return fit_law(curve, replace(settings, fit_to=fit_to), num_draws=num_draws)
