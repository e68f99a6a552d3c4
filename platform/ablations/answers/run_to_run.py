"""The run-to-run spread: how much runs of one recipe differ, estimated from the seeds of all variants of a sweep.

Verdicts, forecasts, designs and stop rules all get the spread here. The number of seed i of variant v is

    y_vi = mu_v + u_b(v,i) + e_vi         e_vi ~ N(0, tau^2 + s_vi^2)

with s_vi the error of its own readings and u_b the effect of the start b that a run shares with runs of other variants:
the same model, warm start, tasks and seed. The spread is a two-way analysis of variance: the squares left after the
means of the variants and the effects of the starts, divided by their degrees of freedom (Searle, Casella and McCulloch
1992, Variance components, chapter 4). The effects cancel in a difference of variants with the same starts. Removing
them costs degrees of freedom, so that with few runs it does not pay: `pays_to_pair` decides by the design alone, never
by the numbers, which keeps Student's t exact.

Errors differ between variants, since the readings of a slower one end nearer to the bend. So tau^2 is the one by which
the squares, divided by tau^2 + s_v^2, have their expectation (Paule and Mandel 1982), and a scale below 1 is found if
the seeds scatter less than s_v says (Hartung and Knapp 2001). With equal errors this is the mean square itself.

Variants differ in spread too: a recipe may be unstable, a run unlucky. The variance of a variant is its own squares
beside PRIOR_FREEDOM degrees of freedom of the common one (Smyth 2004, the moderated t). Variants whose squares stand
out by an F test, and runs that have collapsed, leave the common spread. benchmarks/verdict_truth.py measures all of it.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

import numpy as np
from scipy.special import fdtrc, gammaincinv, ndtri, stdtrit

from ablations.answers.repeats import LEAST_SCALE, UNKNOWN, CommonSpread, Repeats, Weighed
from ablations.answers.student import LEAST_VARIANCE, Student

ASSUMED_SD = 0.0075
"""Half of the +-0.015 that spans three ScaleRL runs (ScaleRL §4), for forecasts if no recipe has a second seed."""
PRIOR_FREEDOM = 3.0
"""Degrees of freedom of the common spread in the variance of one variant. With 4, more equal variants are called
different if the reference has one low or several noisy runs; with 2, fewer real differences are seen
(`moderated_spread.py`)."""
STANDS_OUT = 0.05
"""Level of the F test, over all variants of a sweep together."""
SHARED_SHARE = 0.5
"""Assumed share of the variance that comes from the start, used to decide whether pairing by start pays."""
ENOUGH_FREEDOM = 18
"""Degrees of freedom beyond which other sweeps are not used: three seeds of nine variants, which give sd to 17 %."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunToRun:
    """The spread of one number between runs of one recipe; see the module for the model."""

    within: CommonSpread = field(default_factory=CommonSpread)
    """Spread about the mean of the variant."""
    paired: CommonSpread | None = None
    """Spread about the mean of the variant plus the effect of the start; None if pairing by start does not pay."""
    effects: Mapping[str, float] = field(default_factory=dict)
    """Effect u_b of each start."""
    shared_by: Mapping[str, int] = field(default_factory=dict)
    """Number of variants behind the effect of each start."""
    num_runs: int = 0
    """Number of repeated runs that the spread is estimated from."""
    num_other_runs: int = 0
    """Number of these runs from other sweeps."""
    num_variants: int = 1
    under: Mapping[str, "RunToRun"] = field(default_factory=dict)
    """The spread of the number under every other law, by family name."""

    @property
    def freedom(self) -> int:
        """Degrees of freedom. If no recipe has a second seed, they are 0 and the spread is unknown."""
        return round(self.within.freedom)

    @property
    def is_known(self) -> bool:
        """True if repeated runs determine the spread."""
        return self.within.freedom > 0

    @property
    def sd(self) -> float:
        """Standard deviation of the number between runs of one recipe."""
        return self.within.sd if self.is_known else ASSUMED_SD

    @property
    def paired_sd(self) -> float:
        """Standard deviation left once effects of shared starts cancel."""
        return self.paired.sd if self.paired else self.sd

    @property
    def tau(self) -> float:
        """Standard deviation between runs without the errors of their readings."""
        return self.within.tau if self.is_known else ASSUMED_SD

    @property
    def paired_tau(self) -> float:
        """`tau` once effects of shared starts cancel."""
        return min(self.paired.tau, self.tau) if self.paired else self.tau

    def of_mean(self, runs: Repeats) -> Student:
        """The mean of a variant's seeds, as an estimate of its recipe's."""
        weighed = runs.weighed(self.within.tau)
        variance, freedom = self._moderated(runs, self.within)
        return Student(
            estimate=weighed.mean, variance=variance / len(runs.values), freedom=min(freedom, self.within.freedom)
        )

    def of_difference(self, runs: Repeats, baseline: Repeats) -> Student:
        """The difference of two variants' means."""
        return self.of_contrast([(1.0, runs), (-1.0, baseline)])

    def of_contrast(self, sides: Sequence[tuple[float, Repeats]]) -> Student:
        """A sum of variants' means, each with its weight, and its degrees of freedom (Satterthwaite 1946).

            estimate = sum_v c_v mean_v        variance = sum_v c_v^2 sigma_v^2 / m_v        with m_v runs of variant v

        With m_vb of them having start b, starts that are not shared add omega^2 sum_b (sum_v c_v m_vb / m_v)^2.
        """
        whole = sum(weight**2 / len(side.values) for weight, side in sides)
        alone = _unshared([(weight, side.starts) for weight, side in sides]) / whole if self.paired else 1.0
        parts = [
            (weight**2 * share * variance / len(side.values), freedom)
            for pool, share in ((self.paired or self.within, 1 - alone), (self.within, alone))
            if share > 0
            for weight, side in sides
            for variance, freedom in [self._moderated(side, pool)]
        ]
        total = sum(variance for variance, _ in parts)
        freedom = total**2 / sum(variance**2 / freedom for variance, freedom in parts)
        # All sides borrow from one pool, so they know no more than it does.
        most = self.paired.freedom if self.paired and alone < 1 else self.within.freedom
        estimate = sum(weight * side.weighed(self.within.tau).mean for weight, side in sides)
        return Student(estimate=estimate, variance=total, freedom=min(freedom, most))

    def stands_out(self, runs: Repeats) -> float:
        """The sd of a variant divided by that of all variants, if an F test finds it larger; else 0."""
        pool = self.paired or self.within
        weighed, freedom = self._weighed(runs, pool)
        if freedom <= 0 or pool.freedom <= freedom:
            return 0.0
        ratio = weighed.chi_squared / freedom / pool.scale
        return math.sqrt(ratio) if fdtrc(freedom, pool.freedom, ratio) < STANDS_OUT / self.num_variants else 0.0

    def _moderated(self, runs: Repeats, pool: CommonSpread) -> tuple[float, float]:
        """Variance of the mean of this variant's runs times their number, and its degrees of freedom."""
        weighed, freedom = self._weighed(runs, pool)
        if freedom <= 0:
            return max(pool.scale * runs.weighed(pool.tau).variance, LEAST_VARIANCE), pool.freedom
        prior = min(PRIOR_FREEDOM, pool.freedom)
        whole = prior + freedom
        scale = (prior * pool.scale + weighed.chi_squared) / whole
        return max(scale * weighed.variance, LEAST_VARIANCE), whole

    def _weighed(self, runs: Repeats, pool: CommonSpread) -> tuple[Weighed, float]:
        """Deviations of a variant's runs from their mean, without the effects of their starts for the paired pool, and
        the degrees of freedom of their squares."""
        if pool is not self.paired:
            return runs.weighed(pool.tau), float(runs.freedom)
        adjusted = self.adjusted(runs)
        lost = [1 / self.shared_by[b] for b in adjusted.starts]
        return adjusted.weighed(pool.tau), adjusted.freedom * (1 - float(np.mean(lost or [1.0])))

    def adjusted(self, runs: Repeats) -> Repeats:
        """The runs with a known effect of their start, minus that effect."""
        kept = [
            (y - self.effects[b], variance, b)
            for y, variance, b in zip(runs.values, runs.own_variances, runs.starts, strict=True)
            if b in self.effects
        ]
        return Repeats.of([y for y, _, _ in kept], [s for _, s, _ in kept], [b for _, _, b in kept])

    def differences(self, starts: Sequence[str], baseline: Sequence[str], num_draws: int) -> np.ndarray:
        """Draws of the difference between the means of two variants due to run-to-run differences, given the starts of
        each. Errors of readings are left out, because draws of fits already contain them.
        """
        return _mean_offsets(
            self, 1 / len(starts) + 1 / len(baseline), _unshared([(1.0, starts), (-1.0, baseline)]), num_draws
        )

    def mean_offsets(self, starts: Sequence[str], num_draws: int) -> np.ndarray:
        """Draws of the deviation from the recipe of the mean of runs with these starts."""
        return _mean_offsets(self, 1 / len(starts), _unshared([(1.0, starts)]), num_draws)

    def run_offsets(self, sides: Sequence[Sequence[str]], num_draws: int) -> list[list[np.ndarray]]:
        """Draws of the deviation of every run of every side from its recipe, given the start of each.

        All draws are joint: runs with the same start share its effect, on either side.
        """
        numbers = {start: number for number, start in enumerate(dict.fromkeys(chain.from_iterable(sides)))}
        return [
            [
                _run_offsets(self, num_draws, len(sides) * seed + side, None if start == UNKNOWN else numbers[start])
                for seed, start in enumerate(starts)
            ]
            for side, starts in enumerate(sides)
        ]

    @property
    def _omega(self) -> float:
        """Standard deviation of the effects of starts."""
        return math.sqrt(max(self.tau**2 - self.paired_tau**2, 0.0))

    def __str__(self) -> str:
        if not self.is_known:
            return f"{ASSUMED_SD}, assumed"
        others = f", {self.num_other_runs} of them from other sweeps" if self.num_other_runs else ""
        paired = f" ({self.paired_sd:.4f} if they begin alike)" if self.paired else ""
        return f"{self.sd:.4f}{paired} from {self.num_runs} repeated runs{others}"

    def to_json(self) -> dict[str, float | int]:
        return {
            "sd": self.sd,
            "paired_sd": self.paired_sd,
            "degrees_of_freedom": self.freedom,
            "runs": self.num_runs,
            "runs_of_other_sweeps": self.num_other_runs,
        }


def run_to_run(repeats: Sequence[Repeats], others: Sequence[Repeats] = ()) -> RunToRun:
    """The spread from the seeds of every variant of a sweep, and from as many recipes of `others` as needed."""
    own = [one for one in repeats if one.freedom]
    added = [one for one in wanted(others, sum(one.freedom for one in own)) if one.freedom]
    every = _that_agree([*own, *added], max(len(repeats), 1))
    num_added = sum(len(one.values) for one in added)
    plain = RunToRun(
        within=CommonSpread.of(every),
        num_runs=num_added + sum(len(one.values) for one in own),
        num_other_runs=num_added - sum(one.num_here for one in added),
        num_variants=max(len(repeats), 1),
    )
    return _paired(plain, every)


def pays_to_pair(freedom: float, unpaired: float) -> bool:
    """True if intervals are expected to be narrower once the effects of starts are removed, by the degrees of freedom
    of both spreads: t(f) sqrt(1 - SHARED_SHARE) < t(g).
    """
    if freedom < 1:
        return False
    return float(stdtrit(freedom, 0.975)) * math.sqrt(1 - SHARED_SHARE) < float(stdtrit(unpaired, 0.975))


def _paired(plain: RunToRun, every: Sequence[Repeats]) -> RunToRun:
    """The spread with the effects of starts removed, if runs of several variants share starts and pairing pays."""
    known = list({one.values: one for one in every if UNKNOWN not in one.starts}.values())
    starts = {start: number for number, start in enumerate(dict.fromkeys(b for one in known for b in one.starts))}
    counts = Counter(start for one in known for start in dict.fromkeys(one.starts))
    if not starts or max(counts.values()) < 2:
        return plain
    # The numbers less their variant's mean, on the indicators of starts less theirs.
    rows = [np.eye(len(starts))[[starts[b] for b in one.starts]] for one in known]
    design = np.concatenate([row - row.mean(0) for row in rows])
    y = np.concatenate([np.array(one.values) - np.mean(one.values) for one in known])
    effects, _, rank, _ = np.linalg.lstsq(design, y, rcond=1e-9)
    freedom = sum(one.freedom for one in known) - int(rank)
    if not pays_to_pair(freedom, plain.within.freedom):
        return plain
    with_effects = replace(plain, effects=dict(zip(starts, effects.tolist(), strict=True)), shared_by=counts)
    adjusted = [with_effects.adjusted(one) for one in known]
    return replace(with_effects, paired=CommonSpread.of(adjusted, freedom=float(freedom)))


def _that_agree(every: Sequence[Repeats], num_variants: int) -> list[Repeats]:
    """The groups without outliers, whose squares stand out; at most half of the groups are left out."""
    kept = list(every)
    while len(kept) > max(2, len(every) // 2):
        pool = CommonSpread.of(kept)
        found = [(one.weighed(pool.tau).chi_squared, one) for one in kept]
        total = sum(squares for squares, _ in found)
        ratios = []
        for squares, one in found:
            rest = pool.freedom - one.freedom
            ratio = squares / one.freedom / max((total - squares) / rest, LEAST_SCALE)
            ratios.append((float(fdtrc(one.freedom, rest, ratio)), one))
        p, worst = min(ratios, key=lambda found: found[0])
        if p >= STANDS_OUT / max(num_variants, len(kept)):
            break
        kept = [one for one in kept if one is not worst]
    return kept


def wanted(others: Sequence[Repeats], freedom: int) -> list[Repeats]:
    """The first entries of `others`, as many as bring `freedom` to ENOUGH_FREEDOM degrees of freedom in all."""
    found: list[Repeats] = []
    for recipe in others:
        if freedom >= ENOUGH_FREEDOM:
            break
        found.append(recipe)
        freedom += recipe.freedom
    return found


def _unshared(sides: Sequence[tuple[float, Sequence[str]]]) -> float:
    """sum_b (sum_v c_v m_vb / m_v)^2 for the starts of variants with weights c_v; no other run has an unknown start."""
    counted = [(weight, Counter(starts)) for weight, starts in sides]
    alone = sum(weight**2 * count[UNKNOWN] / count.total() ** 2 for weight, count in counted)
    named = [start for start in dict.fromkeys(b for _, starts in sides for b in starts) if start != UNKNOWN]
    shares = (sum(weight * count[start] / count.total() for weight, count in counted) for start in named)
    return alone + sum(share**2 for share in shares)


def _midpoints(number: int) -> np.ndarray:
    return (np.arange(number) + 0.5) / number


@lru_cache(maxsize=16)  # every run asks for the same
def _scales(spread: RunToRun, num_draws: int) -> np.ndarray:
    """Draws of a standard deviation over its estimate, sqrt(f / chi^2(f)), shuffled; 1 if it is assumed."""
    pool = spread.paired or spread.within
    if not spread.is_known:
        return np.ones(num_draws)
    chi_squared = 2 * gammaincinv(pool.freedom / 2, _midpoints(num_draws))
    return np.random.default_rng(1).permutation(np.sqrt(pool.freedom / chi_squared))


@lru_cache(maxsize=64)  # every variant of a comparison asks for the same draws
def _mean_offsets(spread: RunToRun, of_run: float, of_start: float, num_draws: int) -> np.ndarray:
    """Draws of N(0, of_run tau^2 + of_start omega^2) with an uncertain tau, shuffled."""
    sd = math.sqrt(of_run * spread.paired_tau**2 + of_start * spread._omega**2)
    normal = np.random.default_rng([2, 0]).permutation(ndtri(_midpoints(num_draws)))
    offsets = sd * _scales(spread, num_draws) * normal
    offsets.flags.writeable = False
    return offsets


@lru_cache(maxsize=1024)  # one entry a run of a sweep, for every budget
def _run_offsets(spread: RunToRun, num_draws: int, seed: int, start: int | None) -> np.ndarray:
    normal = ndtri(_midpoints(num_draws))
    of_run = np.random.default_rng([2, seed]).permutation(normal)
    of_start = np.random.default_rng([3, seed] if start is None else [4, start]).permutation(normal)
    offsets = _scales(spread, num_draws) * (spread.paired_tau * of_run + spread._omega * of_start)
    offsets.flags.writeable = False
    return offsets
