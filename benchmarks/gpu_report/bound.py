"""Bounds that a measured value keeps or does not."""

from dataclasses import dataclass

Value = float | int | str


@dataclass(frozen=True, kw_only=True)
class Bound:
    """`Bound(most=1e-3)`, `Bound(least=0.11)`, `Bound(least=0.6, most=1.11)` or `Bound(equal="done")`."""

    least: float | None = None
    most: float | None = None
    equal: str | None = None

    def holds(self, value: Value) -> bool:
        """True if the value keeps the bound; NaN keeps none."""
        if self.equal is not None:
            return value == self.equal
        if isinstance(value, str) or value != value:
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    @property
    def text(self) -> str:
        """The bound in words."""
        if self.equal is not None:
            return f"is {self.equal}"
        if self.least is None:
            return f"at most {self.most:g}"
        return f"at least {self.least:g}" if self.most is None else f"{self.least:g} to {self.most:g}"


def most(value: float) -> Bound:
    """At most this much."""
    return Bound(most=value)


def least(value: float) -> Bound:
    """At least this much."""
    return Bound(least=value)
