"""Running mean and spread, kept in three numbers (Welford 1962; merging: Chan et al. 1979)."""

from dataclasses import dataclass
from typing import Self

from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class RunningStatistics:
    """Statistics of all numbers so far: `RunningStatistics(count=3, mean=2.0, squares=2.0)` after 1, 2 and 3.

    `squares` is the sum of squares about the mean.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def including(self, values: Tensor) -> Self:
        """Statistics including the numbers of `values`.

        mean' = mean + d n / N,  squares' = squares + squares of the n + d^2 count n / N,
        where d is the mean of the n new numbers minus `mean`, and N = count + n.
        """
        if values.numel() == 0:
            return self
        values = values.double()
        n, new_mean = values.numel(), float(values.mean())
        total, d = self.count + n, new_mean - self.mean
        return type(self)(
            count=total,
            mean=self.mean + d * n / total,
            squares=self.squares + float((values - new_mean).square().sum()) + d * d * self.count * n / total,
        )

    @property
    def std(self) -> float:
        """Population standard deviation; 0 before the first number."""
        return (self.squares / self.count) ** 0.5 if self.count else 0.0
