"""The cards of the paper's claims as a page of the documentation, with figures and raw curves.

    platform reproduce --all --home HOME            # or some of them; resumes where it was killed
    python benchmarks/reproduction.py --home HOME [--page bench|paper|ceilings]

Trains nothing. Writes `docs/results/PAGE.md`, into `docs/results/PAGE/` a figure and `STUDY.csv.gz` with every
reading of every run, which `platform compare` reads unpacked, and `results/reproduction_PAGE.json`. The page `ceilings`
has studies of eight units of compute at `bench_november`, `paper` those of one to four, `bench` those of today.
Studies of the page that HOME lacks stay.
"""

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import dropwhile, takewhile
from pathlib import Path

from record import RESULTS as RECORDS
from record import write_record

from ablations.answers.questions import COMPUTE, LEVEL
from ablations.cli.reproduce import unlike
from ablations.cli.studies import by_number
from ablations.files.lookup import files_of
from ablations.findings.claim_card import Card, card_of
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.home.state import State
from ablations.report.documents.blocks import Figure, Table, Text, table_of_rows
from ablations.report.documents.claim_card import CLAIM_HEADINGS, OUTCOMES, card_document, tally_text
from ablations.report.documents.variant_row import VariantRow
from ablations.report.figures.plots import curves_picture
from ablations.report.writers.csv_files import csv_files
from ablations.report.writers.markdown import markdown_document
from ablations.status.progress import run_rows
from ablations.study.sweep import load_sweep

RESULTS = Path(__file__).parents[1] / "docs/results"
TITLES = {
    "bench": "The paper's claims at scale bench",
    "paper": "The paper's claims, study by study",
    "ceilings": "The paper's claims after eight units of compute",
}
HEAD = """# {title}

Made by [benchmarks/reproduction.py](../../benchmarks/reproduction.py) of runs of scale `{scale}`, {day}.
[The paper's claims](../reproduction.md) says what a card means, how the scale was calibrated, and discusses these.
The raw curves of a study are `{page}/STUDY.csv.gz` beside this page.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--page", choices=TITLES, default="bench")
    asked = parser.parse_args()
    home, page = Home(asked.home.absolute()), asked.page
    sweeps = [read_sweep(home, name) for name in sorted(home.sweep_names(), key=by_number)]
    whole = [one for one in sweeps if one.plan.claims and all(row.state.state == State.DONE for row in run_rows(one))]
    found = [(card_of(read_results(sweep)), unlike(sweep)) for sweep in whole]
    (RESULTS / page).mkdir(exist_ok=True)
    for card, _ in found:
        write_data(card, RESULTS / page)
    cards = {card.results.plan.sweep: card for card, _ in found}
    sections = sections_of(RESULTS / f"{page}.md") | {
        card.results.plan.sweep: section(card, differing, page) for card, differing in found
    }
    scale = " and ".join(dict.fromkeys(card.results.plan.scale for card in cards.values()))
    head = HEAD.format(title=TITLES[page], scale=scale, day=date.today().isoformat(), page=page)
    in_order = [f"{sections[name].rstrip()}\n" for name in sorted(sections, key=by_number)]
    (RESULTS / f"{page}.md").write_text("\n".join([head, overview(sections), *in_order]))
    record = RECORDS / f"reproduction_{page}.json"
    before = {one["study"]: one for one in json.loads(record.read_text())["cards"]} if record.exists() else {}
    recorded = before | {name: card.to_json() for name, card in cards.items()}
    write_record(record.stem, {"cards": [recorded[name] for name in sorted(recorded, key=by_number)]})
    print(Counter(card.outcome for card in cards.values()))
    print(Counter(one.outcome for card in cards.values() for one in card.claims))


def sections_of(page: Path) -> dict[str, str]:
    """The sections of a page that was written before, by study."""
    _, *sections = page.read_text().split("\n## ") if page.exists() else [""]
    return {one.partition("\n")[0]: f"## {one.rstrip()}\n" for one in sections}


def write_data(card: Card, folder: Path) -> None:
    """The figure and the raw curves, the latter without a time in their header: the same runs give the same file."""
    name = card.results.plan.sweep
    (folder / f"{name}.png").write_bytes(curves_picture(card.results, "png"))
    curves = csv_files(card.results)["curves.csv"]
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress(curves, mtime=0))


def overview(sections: Mapping[str, str]) -> str:
    """Every claim in one table, from the first table of each section."""
    headings = ("study", *CLAIM_HEADINGS)
    rows = [(name, *cells) for name in sorted(sections, key=by_number) for cells in claims_of(sections[name])]
    counts = Counter(row[headings.index("the claim")] for row in rows)
    tally = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    studies = "study" if len(sections) == 1 else "studies"
    table = "\n".join(f"| {' | '.join(row)} |" for row in [headings, ["---"] * len(headings), *rows])
    return f"{len(sections)} {studies}, {len(rows)} claims: {tally}.\n\n{table}\n"


def claims_of(section: str) -> Iterable[list[str]]:
    """The cells of each claim of a section."""
    _, _, *rows = takewhile(is_row, dropwhile(lambda line: not is_row(line), section.splitlines()))
    return ([cell.strip() for cell in row.strip("| ").split(" | ")] for row in rows)


def is_row(line: str) -> bool:
    """True for a line of a table."""
    return line.startswith("|")


def section(card: Card, differing: Sequence[str], page: str) -> str:
    """One card under a heading of its own."""
    plan = card.results.plan
    file = load_sweep(files_of("study")[plan.sweep])
    own, taken = file.budget.compute, plan.budget_gpu_hours
    assert card.results.sweep is not None
    units = taken / card.results.sweep.plan.compute_unit_gpu_hours
    command = f"`platform reproduce {plan.sweep} {'--as-written' if units == own else f'--budget {units:g}'}`"
    seeds = sorted({run.seed for run in plan.runs})
    more = "" if seeds == sorted(file.seeds) else f", then `platform sweep` of the file with `seeds: {seeds}`"
    made = Text(text=f"{command}{more}; code {', '.join(card.results.code_versions)}.")
    blocks = []
    for one in card_document(card, differing)[1:]:
        blocks += [differences(card)] if isinstance(one, Figure) else []
        blocks.append(made if one == Text(text=plan.command) else one)
    text = markdown_document(blocks).replace("(curves.png)", f"({page}/{plan.sweep}.png)").replace("\n## ", "\n### ")
    has_card = (RESULTS / page / f"{plan.sweep}.md").exists()
    text += f"\nIts curves are [a data set with a card]({page}/{plan.sweep}.md).\n" if has_card else ""
    return f"## {plan.sweep}\n\n**{tally_text(card.claims)}**\n\n{text}"


def differences(card: Card) -> Table:
    """What the comparison says of every variant but the reference, of which the claims ask a part."""
    results = card.results
    headings = {LEVEL: f"level, less that of {results.plan.reference}", COMPUTE: "compute, over its own"}
    rows = [
        {"variant": one.name}
        | {head: f"{row.number(asked)} {row.verdict(asked)}".strip() for asked, head in headings.items()}
        for one in results.variants
        if one.name != results.plan.reference
        for row in [VariantRow(results=results, variant=one)]
    ]
    return table_of_rows(rows, name="differences")


if __name__ == "__main__":
    main()
