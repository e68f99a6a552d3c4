"""The report of a sweep in every format: `report.html`, or a folder of files beside it.

html     report.html                    one file that opens anywhere
md       report-md/report.md            with its figures as PNG
csv      report-csv/curves.csv, ...     numbers in full, for other programs
latex    report-latex/report.tex, ...   a booktabs table, a methods paragraph, figures as PDF and SVG
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from ablations.findings.results import Results
from ablations.findings.scale_ladder import ScaleLadder
from ablations.report.csv_files import csv_files
from ablations.report.document import document_of
from ablations.report.latex import latex_files
from ablations.report.markdown import markdown_files
from ablations.report.page import report_page
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
    from ablations.report.static import PAGE_IN, curves_picture, differences_picture

    document = document_of(results, now=now, ladder=ladder)
    if form == "md":
        figures = {
            "curves.png": curves_picture(results, "png", width_in=PAGE_IN, dpi=150),
            "differences.png": differences_picture(results, "png", width_in=PAGE_IN, dpi=150),
        }
        return _written(own, markdown_files(document, figures)) / "report.md"
    figures = {
        "curves.pdf": curves_picture(results, "pdf"),
        "curves.svg": curves_picture(results, "svg"),
        "differences.pdf": differences_picture(results, "pdf", width_in=PAGE_IN),
        "differences.svg": differences_picture(results, "svg", width_in=PAGE_IN),
    }
    return _written(own, latex_files(document, figures)) / "report.tex"


def _written(folder: Path, files: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomically(folder / name, content)
    return folder
