"""The report for LaTeX: a booktabs table, the text, and figures as PDF and SVG.

    report.tex         compiles by itself (pdflatex, lualatex, tectonic) and shows everything for a paper
    table.tex          the table alone, for \\input; needs booktabs
    methods.tex        the methods paragraph alone
    curves.pdf, curves.svg, differences.pdf, differences.svg

User-written text is escaped character by character; a character that plain LaTeX cannot set becomes its code point.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from ablations.findings.results import Results
from ablations.report.columns import NUMBERS_ALONE, answers_of, columns, rows_of
from ablations.report.curves import CURVES_LEGEND
from ablations.report.document import Document
from ablations.report.grid_tables import GridTable
from ablations.report.style import elided
from ablations.terminal.visible import made_visible

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "-": "{-}",  # two in a row would be a dash
    "±": r"$\pm$",
    "−": r"$-$",
    "÷": r"$\div$",
    "°": r"$^\circ$",
    "…": r"\ldots{}",
    "\n": " ",
    "\t": " ",
}
CELL = re.compile(r"(>= )?([+-]?\d[\d,.]*)?( ?\[(…|[+-]?\d[\d,.]*), (…|[+-]?\d[\d,.]*)\])?([*=?])?")
CODE = re.compile("`([^`]+)`")
LONGEST_LATEX_NAME = 40
LATEX_HEADINGS = {"level": r"$\Delta$level", "A": "$A$", "ceiling": r"$\Delta A$", "compute": r"$C/C_{\mathrm{ref}}$"}
"""Headings of the table by question, and that of A."""
STAR = "$^{*}$"


def latex_files(document: Document, figures: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files by name; `figures` are the figure files beside the report."""
    texts = {
        "report.tex": _report(document),
        "table.tex": latex_table(document.results),
        "methods.tex": "\n\n".join(map(latex_text, document.methods)) + "\n",
    }
    return {name: text.encode() for name, text in texts.items()} | dict(figures)


def latex_text(text: str) -> str:
    """`text` escaped so that LaTeX sets it literally; text between backticks is set as code."""
    parts = ["".join(map(_letter, part)) for part in CODE.split(made_visible(text))]
    parts[1::2] = [rf"\texttt{{{code}}}" for code in parts[1::2]]
    return "".join(parts)


def _letter(one: str) -> str:
    if one in SPECIAL:
        return SPECIAL[one]
    # Latin-1 and accented Latin Extended-A have characters in font encoding T1.
    if " " <= one <= "~" or ("\u00c0" <= one <= "\u017f" and one not in "×÷ĿŀŉĦħŦŧſĸ"):
        return one
    return rf"\texttt{{U+{ord(one):04X}}}"


def latex_number(cell: str) -> str:
    """A number with its interval in math mode: `$-0.049$ $[-0.071, -0.027]$`; any other cell as text."""
    cell = cell.rstrip()
    if not (found := CELL.fullmatch(cell)) or not cell:
        return latex_text(cell)
    bound, estimate, interval, lo, hi, mark = found.groups()
    least = r"\ge " if bound else ""
    said = [f"${least}{_mathematics(estimate)}$"] if estimate else []
    if interval:
        said.append(f"$[{_mathematics(lo)},\\, {_mathematics(hi)}]$")
    return "~".join(said) + (mark or "")


def _mathematics(number: str) -> str:
    return r"\ldots" if number == "…" else number.replace(",", "{,}")


def latex_table(results: Results) -> str:
    """The numbers of a comparison by booktabs, a decided difference with a star; user-written text is escaped."""
    shown = columns(results, NUMBERS_ALONE)
    keys = [column.question.name if column.question else column.key for column in shown]
    rows = [[LATEX_HEADINGS.get(key) or latex_text(key) for key in keys]]
    for (name, *cells), (_, *answers) in zip(rows_of(results, shown), answers_of(results, shown), strict=True):
        written = [
            latex_number(cell) + STAR * (answer is not None and answer.differs)
            for cell, answer in zip(cells, answers, strict=True)
        ]
        rows.append([latex_text(elided(name, LONGEST_LATEX_NAME)), *written])
    return "\n".join([r"% needs \usepackage{booktabs}", *_tabular(rows, "l"), ""])


def _tabular(rows: Sequence[Sequence[str]], side: Literal["l", "r"]) -> list[str]:
    """A table by booktabs, line by line; the first row is its head, and columns behind the first align to a `side`."""
    head, *body = (rf"{' & '.join(row)} \\" for row in rows)
    begin = rf"\begin{{tabular}}{{@{{}}l{side * (len(rows[0]) - 1)}@{{}}}}"
    return [begin, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]


def _caption(results: Results) -> str:
    """The reference, and the meaning of the columns."""
    return (
        rf"Comparison with \texttt{{{latex_text(elided(results.plan.reference, LONGEST_LATEX_NAME))}}}, "
        r"with 95\,\% intervals: "
        r"$\Delta$level is the difference in pass rate at equal compute, $A$ the asymptote, $\Delta A$ its difference, "
        r"$C/C_{\mathrm{ref}}$ the ratio of compute to a common pass rate. A star marks an interval "
        "that excludes no difference."
    )


def _report(document: Document) -> str:
    results = document.results
    changes = [rf"\item[{latex_text(elided(name, 80))}] {latex_text(text)}" for name, text in document.changes]
    legends = [("curves", CURVES_LEGEND), ("differences", document.differences_legend)]
    figures = [
        f"\\begin{{figure}}[htbp]\n\\centering\n\\includegraphics{{{name}.pdf}}\n"
        f"\\caption{{{latex_text(legend)}}}\n\\end{{figure}}"
        for name, legend in legends
    ]
    parts = [
        r"\documentclass[10pt,a4paper]{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage[utf8]{inputenc}",
        r"\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}  % without it letters may be bitmaps",
        r"\usepackage{textcomp,booktabs,graphicx}",
        r"\usepackage[margin=18mm]{geometry}",
        r"\sloppy",
        r"\begin{document}",
        rf"\section*{{{latex_text(elided(results.title, 120))}}}",
        latex_text(results.plan.doc),
        rf"\textbf{{{latex_text(document.headline[0])}}} {latex_text(' '.join(document.headline[1:]))}",
        latex_text(document.task),
        *(rf"\paragraph{{Note.}} {latex_text(one.text)}" for one in results.remarks),
        *figures,
        r"\begin{table}[htbp]" + "\n" + r"\centering\small" + "\n" + r"\input{table.tex}" + "\n"
        rf"\caption{{{_caption(results)}}}" + "\n" + r"\end{table}",
        r"\subsection*{In words}",
        _items([rf"\item {latex_text(text)}" for text in document.findings], "itemize"),
        latex_text(document.advice),
        r"\subsection*{What each variant changes}",
        _items(changes, "description"),
        *map(_grid_table, (*document.grid, *document.ladder)),
        latex_text(document.grid_notes) if document.grid else "",
        latex_text(document.ladder_notes),
        r"\subsection*{Methods}",
        r"\input{methods.tex}",
        r"\end{document}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _grid_table(table: GridTable) -> str:
    rows = [list(map(latex_text, table.headings))]
    rows += [[latex_text(name), *map(latex_number, cells)] for name, *cells in table.rows]
    lines = [r"\begin{table}[p]", r"\centering", r"\resizebox{\linewidth}{!}{%", *_tabular(rows, "r"), "}"]
    return "\n".join([*lines, rf"\caption{{{latex_text(table.title)}}}", r"\end{table}"])


def _items(items: list[str], kind: str) -> str:
    return "\n".join([rf"\begin{{{kind}}}", *items, rf"\end{{{kind}}}"]) if items else ""
