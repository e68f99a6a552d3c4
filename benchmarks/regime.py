"""How far scales are from the paper's regime: the table of docs/reproduction.md.

    platform sweep benchmarks/studies/calibration.yaml --scale bench --home HOME     # and at each other scale
    python benchmarks/regime.py --home HOME HOME2

Reads every sweep `calibration` of the home folders, and `loo`, the leave-one-out study; writes `results/regime.json`.
"""

import argparse
from pathlib import Path
from typing import Any

from record import write_record

from ablations.findings.published_regime import LARGE_RUNS
from ablations.findings.regime import RegimeNumber, regime_of
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep

STUDIES = ("calibration", "loo")
HEADINGS = ("", "large runs", "of", "source")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, nargs="+")
    homes = [Home(path.absolute()) for path in parser.parse_args().home]
    sweeps = [read_sweep(home, name) for home in homes for name in home.sweep_names() if name.startswith(STUDIES)]
    results = {one.plan.scale: read_results(one) for one in sweeps}
    numbers = {scale: regime_of(each) for scale, each in results.items()}
    scales: dict[str, Any] = {
        scale: {
            "sweep": results[scale].plan.sweep,
            "seeds": len(results[scale].variant(results[scale].plan.reference).fits),
            "code_versions": results[scale].code_versions,
            "within": sum(one.is_within is True for one in each),
            "numbers": [one.to_json() for one in each],
        }
        for scale, each in numbers.items()
    }
    write_record("regime", {"scales": scales})
    print(table(numbers))


def table(numbers: dict[str, list[RegimeNumber]]) -> str:
    """A line per number, in Markdown; what lies outside is in bold."""
    rows = [[*HEADINGS[:1], *(f"`{scale}`" for scale in numbers), *HEADINGS[1:]]]
    rows.append(["---"] * len(rows[0]))
    for place, published in enumerate(LARGE_RUNS):
        low, high = f"{published.low:.2g}", f"{published.high:.2g}"
        large = low if low == high else f"{low} to {high}"
        whose = "the paper" if published.of_paper else "public runs"
        rows.append([published.title, *(cell(of[place]) for of in numbers.values()), large, whose, published.source])
    rows.append(["within a factor of two", *(str(sum(one.is_within is True for one in of)) for of in numbers.values())])
    rows[-1] += ["", "", ""]
    return "\n".join(f"| {' | '.join(row)} |".replace("|dw| / |w|", r"\|dw\| / \|w\|") for row in rows)


def cell(one: RegimeNumber) -> str:
    """The number, in bold if it lies outside."""
    text = "not known" if one.here is None else f"{one.here:.2g}"
    return f"**{text}**" if one.is_within is False else text


if __name__ == "__main__":
    main()
