"""The study of corrections: what was masked, and how far trainer and generator were apart, beside the comparison.

    PYTHONPATH=platform:trainer python benchmarks/corrections.py HOME SWEEP...

Writes every reading of every run into `docs/results/correction.csv`, beside those of other studies, and prints one
table per sweep for `docs/results/correction.md`. HOME has the sweeps of `platform sweep sweeps/correction.yaml`, alone,
with `--set off_policy.k=8` and with `--set off_policy.type=ppo_off_policy`.
"""

import csv
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from ablations.answers.answer import REFERENCE, Answer
from ablations.answers.questions import COMPUTE, LEVEL
from ablations.findings.fitted_variant import FittedVariant
from ablations.findings.results import Results, open_sweep
from ablations.text import interval_text
from scalerl.run.run_log import read_rows

CURVES = Path(__file__).parents[1] / "docs/results/correction.csv"
HEADINGS = ("variant", "level", "level − scalerl", "compute ÷ scalerl", "masked or cut: below, above", "mean mismatch")


def main() -> None:
    home, sweeps = Path(sys.argv[1]), sys.argv[2:]
    studies = {name: open_sweep(name, home) for name in sweeps}
    anew = {staleness_limit(results) for results in studies.values()}
    kept = [row for row in csv.reader(CURVES.open()) if row[0] not in anew]
    with CURVES.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerows(kept)
        for results in studies.values():
            k = staleness_limit(results)
            print(f"\nk = {k}, {results.plan.sweep}, {staleness(results)}\n")
            print("\n".join(table(results)))
            for run in results.runs:
                assert run.curve is not None
                readings = zip(run.curve.compute.tolist(), run.curve.score.tolist(), strict=True)
                rows.writerows([k, run.variant, run.seed, round(x, 4), round(y, 6), 800] for x, y in readings)


def table(results: Results) -> list[str]:
    """The rows of a Markdown table."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    for variant in results.variants:
        line, rows = results.compared(variant.name), train_rows(results, variant)
        assert line is not None
        level, compute = line.answers[LEVEL.name], line.answers[COMPUTE.name]
        cells = [
            variant.name,
            f"{line.level:.3f}",
            answer_text(level),
            answer_text(compute),
            f"{mean(rows, 'corrected_below'):.1%}, {mean(rows, 'corrected_above'):.1%}",
            f"{mean(rows, 'mismatch'):.3f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def answer_text(answer: Answer) -> str:
    """The number with its interval, starred if it holds for all comparisons at once; empty for the reference."""
    if answer.verdict == REFERENCE:
        return ""
    star = "*" if answer.joint_verdict in (answer.question.higher, answer.question.lower) else ""
    return interval_text(answer.estimate, answer.lo, answer.hi, answer.question.form) + star


def train_rows(results: Results, variant: FittedVariant) -> list[dict[str, Any]]:
    """The training steps of all seeds."""
    assert results.sweep is not None
    return [row for run in variant.runs for row in read_rows(results.sweep.run(run.id).metrics, "train")]


def mean(rows: list[dict[str, Any]], column: str) -> float:
    """The mean over the steps that have the column; 0 if none has."""
    values = [row[column] for row in rows if row.get(column) is not None]
    return sum(values) / len(values) if values else 0.0


def staleness_limit(results: Results) -> str:
    """`off_policy.k` of the reference: `32`, or `32 in turns` under PPO-off-policy-k."""
    assert results.sweep is not None
    recipe = results.sweep.run(results.variants[0].runs[0].id).read_recipe()[0]
    off_policy = recipe.canonical("off_policy")["off_policy"]
    return f"{off_policy['k']}{'' if off_policy['type'] == 'pipeline' else ' in turns'}"


def staleness(results: Results) -> str:
    """How many steps old the weights behind the tokens of the reference were."""
    ages = Counter[int]()
    for row in train_rows(results, results.variants[0]):
        ages.update({int(age): number for age, number in row.get("staleness", {}).items()})
    share = sum(age * number for age, number in ages.items()) / ages.total()
    return f"weights {share:.1f} steps old on average, {max(ages)} at most"


if __name__ == "__main__":
    main()
