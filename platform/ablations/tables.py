"""Fits and comparisons as Rich tables: never an asymptote without its interval, nor a difference without its baseline."""

from collections.abc import Sequence

from rich.table import Table

from ablations.compare import Comparison
from ablations.fit import Fit
