"""The numbers in the text of README, the first page and the tutorial, and the first figure, all of the kept runs.

    python benchmarks/page_numbers.py

Compares the runs of `results/tutorial.json` as the pages do, with the code as it is, and writes what the sentences of
`SAID` say into the pages, and `docs/figures/off_policy.svg`, which has the colours of a light and of a dark page. What
commands print on the pages is written by `tests/docs/test_commands_run.py --write-pages`; `make numbers` does it all.
"""

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Template
from tutorial import add_kept_runs, kept_runs, rows_until, study

from ablations.answers.questions import LEVEL
from ablations.findings.results import Results, read_results
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep
from ablations.running.make_plan import make_plan
from ablations.study.expand import expand
from ablations.text import interval_text

ROOT = Path(__file__).parents[1]
FIGURE = ROOT / "docs/figures/off_policy.svg"
LABELS = {"scalerl": "PipelineRL-8", "ppo-off-policy-8": "PPO-off-policy-8"}
LEFT, RIGHT, TOP, BOTTOM = 62, 600, 78, 340
"""Edges of the axes in a picture of 760 x 400."""
NUMBER = r"[-+]?(?:\d[\d,]*)?(?:\.\d+)?(?<=\d)"
CODES = r"[0-9a-f]{10}(?:(?:, | and )[0-9a-f]{10})*"


class Facts:
    """What the code as it is finds in the kept runs, each comparison in a home folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder, kept_runs()

    @cached_property
    def readme(self) -> Results:
        """The study of the README."""
        return self._compared("readme", ROOT / "sweeps/off_policy.yaml", scale="smoke")

    @cached_property
    def added(self) -> Results:
        """The study of the tutorial with its third variant."""
        return self._compared("added", self._study())

    @cached_property
    def twice(self) -> Results:
        """The same at twice the budget."""
        return self._compared("twice", self._study(), times=2.0)

    def seconds(self, start: float, end: float, variants: Sequence[str]) -> list[float]:
        """Seconds that each run of these variants trained between two budgets, in units of the page's, sorted."""
        unit, found = self.kept["budget_gpu_hours"], []
        for run in self.kept["runs"].values():
            if run["variant"] in variants:
                begun = rows_until(run, start * unit)[-1]["wall_s"] if start else 0.0
                found.append(rows_until(run, end * unit)[-1]["wall_s"] - begun)
        return sorted(found)

    def _study(self) -> Path:
        file = self.folder / "my_study.yaml"
        file.write_text(study(with_dapo=True))
        return file

    def _compared(self, name: str, file: Path, *, scale: str | None = None, times: float = 1.0) -> Results:
        home, found = Home(self.folder / name), expand(file, scale=scale)
        sweep = StartedSweep(home=home, plan=make_plan(found, found.sweep.name, budget=times, command=""))
        sweep.write_plan()
        add_kept_runs(home, found.runs, times)
        return read_results(sweep)


def line(results: Results, variant: str) -> dict[str, Any]:
    """What `compare --json` says of a variant."""
    return next(one for one in results.to_json()["variants"] if one["curve"] == variant)


def short(value: float, digits: int = 3) -> str:
    """A share below 1 as prose writes it: `.061`."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)


def interval(results: Results, variant: str, key: str, form: str) -> list[str]:
    """Estimate and both ends."""
    found = line(results, variant)
    return [f"{found[f'{key}{end}']:{form}}" for end in ("", "_lo", "_hi")]


@dataclass(frozen=True, kw_only=True)
class Said:
    """A sentence of a page whose numbers, each `{}`, follow from the kept runs."""

    page: str
    text: str
    numbers: Callable[[Facts], Sequence[str]]
    form: str = NUMBER

    @property
    def pattern(self) -> re.Pattern[str]:
        """Finds the sentence, wherever its lines end."""
        words = r"\s+".join(re.escape(word) for word in self.text.split())
        return re.compile(words.replace(re.escape("{}"), f"({self.form})"))


OTHER = "ppo-off-policy-8"
SAID = (
    Said(
        page="README.md",
        text="has a pass rate {} lower than PipelineRL-8, and it needs {} times the compute to match it (95 % "
        "interval: {} to {})",
        numbers=lambda facts: [
            short(-line(facts.readme, OTHER)["level_difference"]),
            *interval(facts.readme, OTHER, "compute_ratio", ".2f"),
        ],
    ),
    Said(
        page="docs/index.md",
        text="has a lower pass rate after the same compute and needs {} times the compute to the same one",
        numbers=lambda facts: interval(facts.readme, OTHER, "compute_ratio", ".2f")[:1],
    ),
    *(
        Said(
            page=page,
            text=f"{text} {{}}",
            form=CODES,
            numbers=lambda facts: [" and ".join(facts.kept["code_versions"])],
        )
        for page, text in (
            ("docs/index.md", "with code"),
            ("docs/tutorial.md", "with code"),
        )
    ),
    *(
        Said(page=page, text=f"{text} {{}}", form=r"\d{4}-\d\d-\d\d", numbers=lambda facts: [facts.kept["date"]])
        for page, text in (
            ("docs/index.md", "Trained on"),
            ("docs/tutorial.md", "trained on"),
        )
    ),
    Said(
        page="docs/tutorial.md",
        text="Over the last third of the compute it is {} lower. The interval, [{}, {}], lies below 0.",
        numbers=lambda facts: [
            f"{-line(facts.readme, OTHER)['level_difference']:.3f}",
            *interval(facts.readme, OTHER, "level_difference", "+.3f")[1:],
        ],
    ),
    Said(
        page="docs/tutorial.md",
        text="The difference in A is {}. Its interval, [{}, {}], contains 0. The task allows no more than {}.",
        numbers=lambda facts: [
            *interval(facts.readme, OTHER, "ceiling_difference", "+.3f"),
            f"{facts.readme.plan.fit_settings.highest:.2f}",
        ],
    ),
    Said(
        page="docs/tutorial.md",
        text="To reach the same pass rate it needs {} times the compute. The interval, [{}, {}], lies above 1.",
        numbers=lambda facts: interval(facts.readme, OTHER, "compute_ratio", ".2f"),
    ),
    Said(
        page="docs/tutorial.md",
        text="taking turns costs {} points of pass rate at this budget, or about {} % more compute",
        numbers=lambda facts: [
            f"{-100 * line(facts.readme, OTHER)['level_difference']:.0f}",
            f"{10 * round(10 * (line(facts.readme, OTHER)['compute_ratio'] - 1)):.0f}",
        ],
    ),
    Said(
        page="docs/tutorial.md",
        text="after the same compute its pass rate lies within {} of that of ScaleRL's CISPO, and "
        '"no difference seen" asks for {}.',
        numbers=lambda facts: [
            short(max(abs(line(facts.added, "dapo")[f"level_difference_{end}"]) for end in ("lo", "hi"))),
            short(LEVEL.widest),
        ],
    ),
    Said(
        page="docs/tutorial.md",
        text="Taking turns still needs more compute: {} [{}, {}] times as much",
        numbers=lambda facts: interval(facts.twice, "in_turns", "compute_ratio", ".2f"),
    ),
    Said(
        page="docs/tutorial.md",
        text="the difference in level has shrunk to {} [{}, {}]",
        numbers=lambda facts: interval(facts.twice, "in_turns", "level_difference", "+.3f"),
    ),
    Said(
        page="docs/tutorial.md",
        text="Our six runs took {} to {} seconds each",
        numbers=lambda facts: ends(facts.seconds(0, 1, ("scalerl", "in_turns"))),
    ),
    Said(
        page="docs/tutorial.md",
        text="The second half of our nine runs took {} to {} seconds each",
        numbers=lambda facts: ends(facts.seconds(1, 2, ("scalerl", "in_turns", "dapo"))),
    ),
)
"""Every number in the text of these pages that comes from runs."""


def ends(values: Sequence[float]) -> list[str]:
    """The smallest and the largest, as whole numbers."""
    return [f"{values[0]:.0f}", f"{values[-1]:.0f}"]


def with_numbers(page: str, text: str, facts: Facts) -> str:
    """The page's text with the numbers that follow from the kept runs; ValueError if a sentence of SAID is not in it
    exactly once.
    """
    for said in SAID:
        if said.page != page:
            continue
        found = list(said.pattern.finditer(text))
        if len(found) != 1:
            raise ValueError(f"{page}: found {len(found)} times, must be there once: {said.text}")
        for place, number in reversed([*enumerate(said.numbers(facts), start=1)]):
            start, end = found[0].span(place)
            text = text[:start] + number + text[end:]
    return text


def title_of(variant: dict[str, Any]) -> str:
    """What the comparison says of the compute to a common target."""
    name, reference = LABELS[variant["curve"]], LABELS["scalerl"]
    estimate, lo, hi = (variant[f"compute_ratio{end}"] for end in ("", "_lo", "_hi"))
    ratio = interval_text(estimate, lo, hi, ".2f")
    if variant["compute_verdict"] in ("less compute", "more compute"):
        return f"{name} needs {ratio} times the compute of {reference}"
    return f"{name} and {reference}: {variant['compute_verdict']}, compute ratio {ratio}"


def figure(results: Results) -> str:
    """The first figure as SVG: the readings of all seeds, and the mean of each variant's fitted curves."""
    curves = {one.name: [run.curve for run in one.runs if run.curve is not None] for one in results.variants}
    fits = {one.name: one.fits for one in results.variants}
    every = [curve for variant in curves.values() for curve in variant]
    most = max(curve.compute[-1] for curve in every)
    low = np.floor(10 * min(curve.score.min() for curve in every)) / 10
    high = np.ceil(10 * max(curve.score.max() for curve in every)) / 10

    def places(compute: Any, score: Any) -> list[tuple[float, float]]:
        across = LEFT + np.asarray(compute) / most * (RIGHT - LEFT)
        up = BOTTOM - (np.asarray(score) - low) / (high - low) * (BOTTOM - TOP)
        return [(round(float(x), 1), round(float(y), 1)) for x, y in zip(across, up, strict=True)]

    grid = np.linspace(0, most, 200)
    variants = []
    for name, label in LABELS.items():
        line = places(grid, np.mean([fit.predict(grid) for fit in fits[name]], axis=0))
        points = [place for curve in curves[name] for place in places(curve.compute, curve.score)]
        variants.append({"label": label, "points": points, "line": line})
    hours, rates = np.arange(0, most, 100), np.arange(low, high + 0.05, 0.1)
    return (
        SVG.render(
            title=title_of(results.to_json()["variants"][1]),
            variants=variants,
            across=[(x, f"{hour:g}") for (x, _), hour in zip(places(hours, hours * 0 + low), hours, strict=True)],
            up=[(y, f"{rate:.1f}") for (_, y), rate in zip(places(rates * 0, rates), rates, strict=True)],
            box={"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
        )
        + "\n"
    )


SVG = Template(
    """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 400" role="img">
<title>{{ title }}</title>
<style>
text { font: 13px system-ui, sans-serif } .title { font-size: 15px; font-weight: 600 } .middle { text-anchor: middle }
.page { fill: #ffffff } .text { fill: #1f2328 } .faint { fill: #59636e } .grid { stroke: #e6e9ec }
.v0 { fill: #1a1a1a; stroke: #1a1a1a } .v1 { fill: #0072b2; stroke: #0072b2 }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } .text { fill: #f0f6fc } .faint { fill: #9198a1 } .grid { stroke: #262c36 }
.v0 { fill: #f0f6fc; stroke: #f0f6fc } .v1 { fill: #58a6ff; stroke: #58a6ff } }
circle { fill-opacity: 0.4; stroke: none } polyline { fill: none; stroke-width: 2.5 }
.name { stroke: none; font-weight: 600 }
</style>
<rect class="page" width="760" height="400" rx="6"/>
<text class="text title" x="{{ box.left }}" y="32">{{ title }}</text>
<text class="faint" x="{{ box.left }}" y="58">
pass rate on held-out prompts; points are readings of three seeds, lines the mean of their fits</text>
{% for y, rate in up -%}
<line class="grid" x1="{{ box.left }}" x2="{{ box.right }}" y1="{{ y }}" y2="{{ y }}"/>
<text class="faint" x="{{ box.left - 8 }}" y="{{ y + 4 }}" text-anchor="end">{{ rate }}</text>
{% endfor -%}
{% for x, hour in across -%}
<text class="faint middle" x="{{ x }}" y="{{ box.bottom + 18 }}">{{ hour }}</text>
{% endfor -%}
<text class="faint middle" x="{{ (box.left + box.right) / 2 }}" y="{{ box.bottom + 42 }}">
modelled GPU-hours per run</text>
{% for variant in variants -%}
<g class="v{{ loop.index0 }}">
{% for x, y in variant.points %}<circle cx="{{ x }}" cy="{{ y }}" r="2.6"/>
{% endfor -%}
<polyline points="{% for x, y in variant.line %}{{ x }},{{ y }} {% endfor %}"/>
<text class="name" x="{{ variant.line[-1][0] + 10 }}" y="{{ variant.line[-1][1] + 4 }}">{{ variant.label }}</text>
</g>
{% endfor -%}
</svg>""",
    autoescape=True,
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        facts = Facts(Path(folder))
        for page in dict.fromkeys(said.page for said in SAID):
            path = ROOT / page
            path.write_text(with_numbers(page, path.read_text(), facts))
        FIGURE.write_text(figure(facts.readme))


if __name__ == "__main__":
    main()
