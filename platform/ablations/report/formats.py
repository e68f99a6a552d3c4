r"""The report of a sweep in every format: `report.html`, or a folder of files beside it.

html     report.html                    one file that opens anywhere
md       report-md/report.md            with its figures as PNG
csv      report-csv/curves.csv, ...     numbers in full, for other programs
latex    report-latex/report.tex, ...   figures as PDF and SVG; table.tex and methods.tex for \\input in a paper
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from ablations.findings.results import Results
from ablations.findings.scale_ladder import ScaleLadder
from ablations.report.documents.comparison import report_document
from ablations.report.documents.comparison_tables import paper_numbers
from ablations.report.documents.methods import methods
from ablations.report.writers.csv_files import csv_files
from ablations.report.writers.latex import latex_files, latex_table, latex_text
from ablations.report.writers.markdown import markdown_files
from ablations.report.writers.page import page_of
from scalerl.run.run_folder import write_atomically

ReportFormat = Literal["html", "md", "csv", "latex"]


def write_in_format(
    results: Results,
    form: ReportFormat,
    *,
    now: datetime,
    folder: Path | None = None,
    ladder: ScaleLadder | None = None,
) -> Path:
    """Write the report into a folder, by default the sweep's; returns the file to open, or the folder of the files.

    `now` is the date shown, `ladder` the study at all of its scales.
    """
    folder = folder or results.report_folder
    if form == "html":
        page = report_page(results, now=now, ladder=ladder)
        return _written(folder, {"report.html": page.encode()}) / "report.html"
    own = folder / f"report-{form}"
    if form == "csv":
        return _written(own, csv_files(results))
    blocks = report_document(results, now=now, ladder=ladder)
    if form == "md":
        return _written(own, markdown_files(blocks, "report.md")) / "report.md"
    parts = {
        "table.tex": latex_table(paper_numbers(results)),
        "methods.tex": "\n\n".join(map(latex_text, methods(results))) + "\n",
    }
    files = latex_files(blocks, "report.tex") | {name: text.encode() for name, text in parts.items()}
    return _written(own, files) / "report.tex"


def report_page(results: Results, *, now: datetime, ladder: ScaleLadder | None = None) -> str:
    """The report as one HTML page; arguments as for `write_in_format`."""
    return page_of(report_document(results, now=now, ladder=ladder), title=results.title)


def _written(folder: Path, files: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomically(folder / name, content)
    return folder
