"""The frontier of allocation, from kept curves: level against answers to a prompt, and against generators.

    python benchmarks/allocation.py

`platform compare allocation --curves docs/results/allocation.csv` wrote the readings, and likewise for devices. The
level at a compute is the mean pass rate over its last third, as in a comparison; bars are a standard error over the
three seeds. Draws `docs/figures/allocation.svg` and prints the best number of answers at each compute.
"""

import csv
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

DOCS = Path(__file__).parents[1] / "docs"
COMPUTE = (50.0, 100.0, 200.0)
"""Modelled GPU-hours after which runs are read."""
COLOURS = ("#93b6d1", "#6a9cc4", "#1f6aa5")
STEPS = ((32, 4), (8, 16), (64, 4), (32, 8), (16, 16), (8, 32))
"""Prompts and answers to each."""
Levels = dict[int, tuple[float, float]]
"""Mean level and its standard error, by answers to a prompt or by generators."""


def main() -> None:
    batches = curves("allocation", {"scalerl": (16, 8)} | {f"step={p}x{g}": (p, g) for p, g in STEPS})
    devices = curves("devices", {"scalerl": (64,)} | {f"devices={number}": (number,) for number in (72, 56, 40)})
    figure, axes = plt.subplots(1, 3, figsize=(6.8, 2.6), sharey=True, layout="constrained")
    for axis, answers in zip(axes, (128, 256), strict=False):
        of_step = {key[1]: runs for key, runs in batches.items() if key[0] * key[1] == answers}
        draw(axis, of_step, f"{answers} answers in a step", "answers to a prompt")
        axis.set_xscale("log", base=2)
        axis.set_xticks(sorted(of_step), [str(number) for number in sorted(of_step)])
    draw(axes[2], {key[0]: runs for key, runs in devices.items()}, "80 devices", "of them generators")
    axes[0].set_ylabel("level (held-out pass rate)")
    for compute, colour in zip(COMPUTE, COLOURS, strict=True):
        height = levels({8: batches[16, 8]}, compute)[8][0]
        axes[0].annotate(f"{compute:g} GPU-hours", (8, height - 0.05), color=colour, fontsize=7, ha="center")
    figure.savefig(DOCS / "figures/allocation.svg")


def curves(study: str, variants: dict[str, tuple[int, ...]]) -> dict[tuple[int, ...], list[np.ndarray]]:
    """Compute and score [2, N] of each run, by what its variant is."""
    rows = defaultdict(list)
    for row in csv.DictReader((DOCS / f"results/{study}.csv").open()):
        rows[variants[row["curve"]], row["seed"]].append((float(row["compute"]), float(row["score"])))
    found = defaultdict(list)
    for (key, _), readings in rows.items():
        found[key].append(np.array(readings).T)
    return dict(found)


def levels(runs: dict[int, list[np.ndarray]], compute: float) -> Levels:
    """The level at a compute."""
    found = {}
    for number, of_seeds in sorted(runs.items()):
        each = [score[(spent > compute * 2 / 3) & (spent <= compute * 1.05)].mean() for spent, score in of_seeds]
        found[number] = float(np.mean(each)), float(np.std(each, ddof=1) / np.sqrt(len(each)))
    return found


def draw(axis: Axes, runs: dict[int, list[np.ndarray]], title: str, label: str) -> None:
    """A line for each compute; the best is filled."""
    for compute, colour in zip(COMPUTE, COLOURS, strict=True):
        found = levels(runs, compute)
        best = max(found, key=lambda number: found[number][0])
        means, errors = zip(*found.values(), strict=True)
        axis.errorbar(
            list(found),
            means,
            yerr=errors,
            color=colour,
            marker="o",
            mfc="white",
            lw=1.2,
            capsize=2,
            label=f"{compute:g}",
        )
        axis.plot([best], [found[best][0]], "o", color=colour, zorder=5)
        print(f"{title}, {compute:g} GPU-hours: best {best}; { ({n: round(m, 3) for n, (m, _) in found.items()}) }")
    axis.set_title(title, fontsize=8)
    axis.set_xlabel(label, fontsize=8)
    axis.tick_params(labelsize=7)
    axis.grid(color="#eceff2", linewidth=0.6)


if __name__ == "__main__":
    main()
