"""The first figure of the README: PipelineRL-8 against PPO-off-policy-8, three seeds each, at scale `smoke`.

    python benchmarks/off_policy.py --home /tmp/off-policy-runs

Trains what is missing in the home folder, and writes `results/off_policy.json` and `docs/figures/off_policy.svg`, which
has the colours of a light and of a dark page.
"""

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Template
from record import write_record

import ablations
from ablations.text import interval_text

ROOT = Path(__file__).parents[1]
COMMAND = "platform sweep sweeps/off_policy.yaml --scale smoke"
SWEEP = "off_policy@smoke"
LABELS = {"scalerl": "PipelineRL-8", "ppo-off-policy-8": "PPO-off-policy-8"}
LEFT, RIGHT, TOP, BOTTOM = 62, 600, 78, 340
"""Edges of the axes in a picture of 760 x 400."""
Readings = Mapping[str, Sequence[ablations.Curve]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    home = parser.parse_args().home.absolute()
    arguments = [*COMMAND.split()[1:], "--home", str(home)]
    subprocess.run([sys.executable, "-m", "ablations.cli", *arguments], check=True, cwd=ROOT)
    results = ablations.open_sweep(SWEEP, home)
    curves = {
        variant.name: [run.curve for run in variant.runs if run.curve is not None] for variant in results.variants
    }
    fits = {variant.name: variant.fits for variant in results.variants}
    comparison = results.to_json()
    readings = {
        curve.name: {"compute": curve.compute.tolist(), "score": curve.score.tolist()}
        for variant in curves.values()
        for curve in variant
    }
    found = {"command": COMMAND, "code_versions": results.code_versions}
    write_record("off_policy", found | {"comparison": comparison, "readings": readings})
    draw(curves, fits, verdict(comparison["variants"][1]))


def verdict(variant: dict[str, Any]) -> str:
    """What the comparison says of the compute to a common target."""
    name, reference = LABELS[variant["curve"]], LABELS["scalerl"]
    estimate, lo, hi = (variant[f"compute_ratio{end}"] for end in ("", "_lo", "_hi"))
    ratio = interval_text(estimate, lo, hi, ".2f")
    if variant["efficiency"] in ("less compute", "more compute"):
        return f"{name} needs {ratio} times the compute of {reference}"
    return f"{name} and {reference}: {variant['efficiency']}, compute ratio {ratio}"


def draw(curves: Readings, fits: Mapping[str, Sequence[ablations.Fit]], title: str) -> None:
    """The readings of all seeds, and the mean of each variant's fitted curves."""
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
    page = SVG.render(
        title=title,
        variants=variants,
        across=[(x, f"{hour:g}") for (x, _), hour in zip(places(hours, hours * 0 + low), hours, strict=True)],
        up=[(y, f"{rate:.1f}") for (_, y), rate in zip(places(rates * 0, rates), rates, strict=True)],
        box={"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
    )
    (ROOT / "docs/figures/off_policy.svg").write_text(page + "\n")


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


if __name__ == "__main__":
    main()
