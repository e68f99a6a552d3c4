"""The cards of the paper's claims as a page of the documentation, with figures and raw curves.

    platform reproduce --all --home HOME            # or some of them; resumes where it was killed
    python benchmarks/reproduction.py --home HOME [--page paper|ceilings]

Trains nothing. Writes `docs/results/PAGE.md`, into `docs/results/PAGE/` a figure and `STUDY.csv.gz` with every
reading of every run, which `platform compare` reads unpacked, and `results/reproduction_PAGE.json`. The page `ceilings`
has studies of eight units of compute, `paper` those of one to four.
"""

import argparse
import gzip
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from record import write_record

from ablations.answers.questions import COMPUTE, LEVEL
from ablations.cli.reproduce import unlike
from ablations.cli.studies import by_number
from ablations.files.lookup import files_of
from ablations.findings.card import Card, card_of
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.home.state import State
from ablations.report.csv_files import csv_files
from ablations.report.markdown import card_markdown, markdown_grid, markdown_text
from ablations.report.static import curves_picture
from ablations.report.words.card import CLAIM_HEADINGS, card_notes, claim_cells, tally_text
from ablations.report.words.comparison import ResultRow
from ablations.status.progress import run_rows
from ablations.study.sweep import load_sweep

RESULTS = Path(__file__).parents[1] / "docs/results"
TITLES = {"paper": "The paper's claims, study by study", "ceilings": "The paper's claims after eight units of compute"}
FIGURE = "curves.svg"
"""As a card names it."""
HEAD = """# {title}

Made by [benchmarks/reproduction.py](../../benchmarks/reproduction.py) of runs of scale `{scale}`, {day}.
[The paper's claims](../reproduction.md) says what a card means, how the scale was calibrated, and discusses these.
The raw curves of a study are `{page}/STUDY.csv.gz` beside this page.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--page", choices=TITLES, default="paper")
    asked = parser.parse_args()
    home, page = Home(asked.home.absolute()), asked.page
    sweeps = [read_sweep(home, name) for name in sorted(home.sweep_names(), key=by_number)]
    whole = [one for one in sweeps if one.plan.claims and all(row.state.state == State.DONE for row in run_rows(one))]
    found = [(card_of(read_results(sweep)), unlike(sweep)) for sweep in whole]
    (RESULTS / page).mkdir(exist_ok=True)
    for card, _ in found:
        write_data(card, RESULTS / page)
    cards = [card for card, _ in found]
    scale = " and ".join(dict.fromkeys(card.results.plan.scale for card in cards))
    parts = [
        HEAD.format(title=TITLES[page], scale=scale, day=date.today().isoformat(), page=page),
        overview(cards),
        *(section(card, differing, page) for card, differing in found),
    ]
    (RESULTS / f"{page}.md").write_text("\n".join(parts))
    write_record(f"reproduction_{page}", {"cards": [card.to_json() for card in cards]})
    print(Counter(card.outcome for card in cards))
    print(Counter(one.outcome for card in cards for one in card.claims))


def write_data(card: Card, folder: Path) -> None:
    """The figure and the raw curves, the latter without a time in their header: the same runs give the same file."""
    name = card.results.plan.sweep
    (folder / f"{name}.png").write_bytes(curves_picture(card.results, "png"))
    curves = csv_files(card.results)["curves.csv"]
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress(curves, mtime=0))


def overview(cards: Sequence[Card]) -> str:
    """Every claim in one table."""
    claims = [one for card in cards for one in card.claims]
    rows = [(card.results.plan.sweep, *claim_cells(one)) for card in cards for one in card.claims]
    table = markdown_grid(("study", *CLAIM_HEADINGS), rows)
    studies = "study" if len(cards) == 1 else "studies"
    return f"{len(cards)} {studies}, {len(claims)} claims: {tally_text(claims)}.\n\n{table}\n"


def section(card: Card, differing: Sequence[str], page: str) -> str:
    """One card under a heading of its own."""
    plan = card.results.plan
    title, *lines = card_markdown(card, card_notes(card, differing)).splitlines()
    text = "\n".join(lines).replace(f"({FIGURE})", f"({page}/{plan.sweep}.png)")
    own, taken = load_sweep(files_of("study")[plan.sweep]).budget.compute, plan.budget_gpu_hours
    assert card.results.sweep is not None
    units = taken / card.results.sweep.plan.compute_unit_gpu_hours
    command = f"`platform reproduce {plan.sweep} {'--as-written' if units == own else f'--budget {units:g}'}`"
    text = text.replace("![Curves", f"{differences(card)}\n\n![Curves")
    text = text.replace(markdown_text(plan.command), f"{command}, code {', '.join(card.results.code_versions)}.")
    return f"## {plan.sweep}\n\n**{title.partition(': ')[2]}**\n{text}"


def differences(card: Card) -> str:
    """What the comparison says of every variant but the reference, of which the claims ask a part."""
    results = card.results
    rows = [
        (one.name, *(text for asked in (LEVEL, COMPUTE) for text in (row.number(asked), row.verdict(asked))))
        for one in results.variants
        if one.name != results.plan.reference
        for row in [ResultRow(results=results, variant=one)]
    ]
    reference = f"level, less that of {results.plan.reference}"
    return markdown_grid(("variant", reference, "", "compute, over its own", ""), rows)


if __name__ == "__main__":
    main()
