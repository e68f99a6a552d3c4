"""The fit of a variant as a picture and as a small HTML page for MLflow's own viewer, which loads no other files.

The page of a Plotly figure would include all of Plotly, 4.9 MB for every variant.
"""

from base64 import b64encode
from html import escape

from ablations.findings.results import Results
from ablations.report.columns import MLFLOW, columns
from ablations.report.static import PAGE_IN, curves_picture
from ablations.report.words.comparison import ResultRow, method
from ablations.terminal.visible import made_visible
from ablations.text import at_scale

STYLE = (
    "body{font:14px/1.5 system-ui,sans-serif;margin:24px;max-width:60em;color:#1f2328;background:#fff}"
    "th{text-align:left;font-weight:600;padding-right:2em;vertical-align:top}"
    "td{padding-right:2em;overflow-wrap:anywhere}img{max-width:100%}"
)


def fit_picture(results: Results, name: str) -> bytes:
    """The curves of the variant and of the reference with their uncertainty, as a PNG of about 100 kB."""
    pair = {results.plan.reference, name}
    return curves_picture(results, "png", width_in=PAGE_IN, shown=pair, dpi=130)


def fit_page(results: Results, name: str, picture: bytes) -> str:
    """The variant beside the reference: the picture (PNG), and the words and numbers of `platform compare`."""
    plan = results.plan
    shown = [results.variant(one) for one in dict.fromkeys((name, plan.reference))]
    said = [ResultRow(results=results, variant=variant) for variant in shown]
    rows = "".join(
        f"<tr><th>{_text(column.heading)}</th>{''.join(f'<td>{_text(column.cell(row))}</td>' for row in said)}</tr>"
        for column in columns(results, MLFLOW)
    )
    names = "".join(f"<th>{_text(variant.name)}</th>" for variant in shown)
    figure = f'<img alt="pass rate against compute" src="data:image/png;base64,{b64encode(picture).decode()}">'
    remarks = [one.text for one in results.remarks]
    notes = "".join(f"<p>{_text(note)}</p>" for note in [*remarks, method(results), *results.reasons] if note)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_text(name)}</title>'
        f"<style>{STYLE}</style></head><body>"
        f"<h1>{_text(name)}</h1><p>Sweep {_text(plan.sweep)}{_text(at_scale(plan.scale))}. "
        f"C_mid and cost in {_text(plan.compute_name)}.</p>"
        f"{figure}<table><tr><th></th>{names}</tr>{rows}</table>{notes}</body></html>\n"
    )


def _text(text: str) -> str:
    return escape(made_visible(text))
