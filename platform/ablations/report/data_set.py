"""A study as a data set that anyone can read: one CSV file with every held-out evaluation, and a card beside it.

    loo-curves/curves.csv   a row per evaluation; `platform compare` reads it without options
    loo-curves/README.md    the card: Markdown with a YAML header, like the dataset cards of Hugging Face

`results` are those of the study alone (`read_results(sweep, alone=True)`), since readers of the file have no other.
"""

import csv
import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ablations.errors import AblationsError
from ablations.findings.results import Results
from ablations.fit.table_file import is_curve_file
from ablations.report.documents.data_card import data_card, title_of
from ablations.report.writers.csv_files import csv_files
from ablations.report.writers.markdown import markdown_document
from scalerl.credentials import without_secrets
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import write_atomically

CURVES, CARD = "curves.csv", "README.md"
TAGS = ("reinforcement-learning", "language-models", "scaling-laws", "learning-curves", "ablation-study")
SIZE_CATEGORIES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M"}
"""Hugging Face's size categories, by the number of rows below which each ends."""


def paths_of(to: Path) -> tuple[Path, Path]:
    """The paths of curves and card: beside each other if `to` is a CSV file, else inside the folder `to`."""
    if is_curve_file(to.name):
        return to, to.with_name(Path(to.name.removesuffix(".gz")).stem + ".md")
    return to / CURVES, to / CARD


def write_data_set(results: Results, to: Path, *, license_name: str = "") -> tuple[Path, Path]:
    """Write curves and card, and return their paths; AblationsError if one exists, or if no run has an evaluation."""
    curves, card = paths_of(to)
    for path in (curves, card):
        if path.exists():
            raise AblationsError(f"{path} already exists; delete it or choose another place with --to")
    content = curves_of(results)
    curves.parent.mkdir(parents=True, exist_ok=True)
    packed = gzip.compress(content, mtime=0) if curves.name.endswith(".gz") else content
    write_atomically(curves, packed)
    write_atomically(card, card_text(results, content, file=curves.name, license_name=license_name).encode())
    return curves, card


def curves_of(results: Results) -> bytes:
    """The CSV file; AblationsError if it would be empty."""
    content = csv_files(results)["curves.csv"]
    if not content:
        reasons = "; ".join(dict.fromkeys(results.reasons)) or "no run has started"
        raise AblationsError(f"sweep '{results.plan.sweep}' has no evaluation to export ({reasons})")
    return content


def card_text(results: Results, curves: bytes, *, file: str, license_name: str = "", notes: Sequence[str] = ()) -> str:
    """The card of these curves; `notes` are sentences of the publisher."""
    rows = csv.DictReader(io.StringIO(curves.decode()))
    columns = list(rows.fieldnames or ())
    num_rows = sum(1 for _ in rows)
    head = {
        **({"license": license_name} if license_name else {}),
        "pretty_name": title_of(results),
        "tags": [*TAGS],
        "size_categories": [next((name for most, name in SIZE_CATEGORIES.items() if num_rows < most), "n>1M")],
        "configs": [{"config_name": "default", "data_files": file}],
    }
    blocks = data_card(results, columns=columns, file=file, license_name=license_name, notes=notes)
    said = f"---\n{_yaml(head)}---\n\n{markdown_document(blocks)}\n{_recipe(results)}"
    return without_secrets(said)


def _recipe(results: Results) -> str:
    """The recipe of the reference in full, from the folder of its first run that has one."""
    heading = f"## Recipe of {results.plan.reference}\n\n"
    for run in results.variant(results.plan.reference).runs:
        folder = results.sweep.run(run.id)
        try:
            recipe = parsed_json(folder.shareable_recipe())["recipe"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        return f"{heading}Every setting of run {run.id} (seed {run.seed}):\n\n```yaml\n{_yaml(recipe)}```\n"
    return f"{heading}Not recorded: no run of {results.plan.reference} has a recipe that can be read.\n"


def _yaml(content: Any) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
