"""The list of `platform reproduce --list`: the studies of the paper with claims, costs, and outcomes here."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from ablations.cli.output import console, print_json
from ablations.errors import AblationsError
from ablations.files.lookup import files_of
from ablations.findings.claim_card import read_card
from ablations.home.home import Home
from ablations.report.documents.blocks import Column, Table, cells
from ablations.report.documents.claim_card import claim_text, tally_text
from ablations.report.documents.number_cells import compute_cell
from ablations.report.writers.terminal import print_document
from ablations.study.expand import expand
from ablations.study.sweep import load_sweep

LISTED_SCALES = ("smoke", "bench", "8b")
"""Scales whose costs are listed."""


def show_studies(home: Home, as_json: bool) -> None:
    files = files_of("study")
    lines = [listed_study(name, files[name], home) for name in sorted(files, key=by_number)]
    if as_json:
        print_json({"studies": [line | {"claims": len(line["claims"])} for line in lines]})
        return
    columns = (
        Column(heading="study"),
        Column(heading="asks", kind="prose"),
        *(Column(heading=scale, kind="number") for scale in LISTED_SCALES),
        Column(heading="here", kind="words"),
    )
    notes = (
        f"{', '.join(LISTED_SCALES)}: GPU-hours of all runs in the file, modelled except at 8b; -: the file cannot be "
        "used at this scale; for the reason, run `platform reproduce STUDY --scale S`. A study that is run gets its "
        "seeds and budget from its own design.",
        "here: outcomes of the claims in this home folder, with the scale if it is not the study's own.",
    )
    rows = []
    for line in lines:
        costs = ("-" if cost is None else compute_cell(cost) for cost in map(line["gpu_hours"].get, LISTED_SCALES))
        asked = f"{line['doc']} {claim_text(line['claims'][0])} ({line['claims'][0].source})"
        rows.append(cells(line["study"], asked, *costs, line["outcome"]))
    title = "Studies of arXiv 2510.13786"
    print_document([Table(name="studies", columns=columns, rows=tuple(rows), title=title, notes=notes)], console())


def by_number(name: str) -> list[str | int]:
    """Sort key that puts `fig2` before `fig10`."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def outcomes_here(name: str, home: Home) -> str:
    """Outcomes of a study: `holds`, `1 holds, 2 cannot tell (smoke)`; empty if this home folder has no card for it."""
    found = []
    for sweep in home.sweep_names():
        own, _, scale = sweep.partition("@")
        if own == name:
            with suppress(AblationsError):  # a damaged card is rewritten when the study runs again
                if card := read_card(home.sweep(sweep)):
                    said = tally_text(card.claims)
                    found.append(f"{said} ({scale})" if scale else said)
    return "; ".join(found)


def listed_study(name: str, path: Path, home: Home) -> dict[str, Any]:
    """One study: its question, claims, runs, GPU-hours by scale, and outcomes here."""
    sweep = load_sweep(path)
    return {
        "study": name,
        "doc": sweep.doc,
        "claims": sweep.claims,
        "gpu_hours": {scale: cost_at(path, scale) for scale in (sweep.scale, *LISTED_SCALES)},
        "outcome": outcomes_here(name, home),
    }


def cost_at(path: Path, scale: str) -> float | None:
    """GPU-hours of all runs of a study at a scale; None if its variants cannot be created there."""
    try:
        study = expand(path, scale=scale, with_files=False)
    except AblationsError:
        return None
    return len(study.runs) * study.sweep.budget.compute * study.reference.recipe.compute_unit_gpu_hours
