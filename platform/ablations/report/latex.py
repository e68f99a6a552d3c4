"""The report for LaTeX: a booktabs table, the text, and figures as PDF and SVG.

    report.tex         compiles by itself (pdflatex, lualatex, tectonic) and shows everything for a paper
    table.tex          the table alone, for \\input; needs booktabs
    methods.tex        the methods paragraph alone
    curves.pdf, curves.svg, differences.pdf, differences.svg

User-written text is escaped character by character; a character that plain LaTeX cannot set becomes its code point.
"""

import re
from collections.abc import Mapping, Sequence

from ablations.report.document import Document, DocumentRow
from ablations.report.grid_tables import GridTable
from ablations.report.style import elided

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
LONGEST_LATEX_NAME = 40


def latex_files(document: Document, figures: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files by name; `figures` are the figure files beside them."""
    texts = {
        "report.tex": _report(document),
        "table.tex": latex_table(document.headings, document.rows),
        "methods.tex": _methods(document),
    }
    return {name: text.encode() for name, text in texts.items()} | dict(figures)


def latex_text(text: str) -> str:
    """`text` escaped so that LaTeX sets it literally."""
    return "".join(_letter(one) for one in text)


def _letter(one: str) -> str:
    if one in SPECIAL:
        return SPECIAL[one]
    # Latin-1 and accented Latin Extended-A have characters in font encoding T1.
    if " " <= one <= "~" or ("\u00c0" <= one <= "\u017f" and one not in "×÷ĿŀŉĦħŦŧſĸ"):
        return one
    return rf"\texttt{{U+{ord(one):04X}}}"


def latex_number(cell: str) -> str:
    """A number with its interval in math mode: `$-0.049$ $[-0.071, -0.027]$`; any other cell as text."""
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


def latex_table(headings: Sequence[str], rows: Sequence[DocumentRow]) -> str:
    """The table of a comparison by booktabs, with user-written text escaped."""
    *numbers, verdicts = headings
    align = "l" + "r" * (len(numbers) - 1) + "l"
    lines = [
        "% needs \\usepackage{booktabs}",
        rf"\begin{{tabular}}{{@{{}}{align}@{{}}}}",
        r"\toprule",
        " & ".join(map(latex_text, (*numbers, verdicts))) + r" \\",
        r"\midrule",
    ]
    for row in rows:
        name, *cells, said = row.cells
        shown = [latex_text(elided(name, LONGEST_LATEX_NAME)), *map(latex_number, cells), latex_text(said)]
        lines.append(" & ".join(shown) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _methods(document: Document) -> str:
    return "\n\n".join(map(latex_text, document.methods)) + "\n"


def _report(document: Document) -> str:
    changes = [rf"\item[{latex_text(elided(name, 80))}] {latex_text(text)}" for name, text in document.changes]
    legends = [("curves", document.curves_legend), ("differences", document.differences_legend)]
    figures = [
        f"\\begin{{figure}}[p]\n\\centering\n\\includegraphics[width=0.75\\linewidth,height=0.85\\textheight,keepaspectratio]{{{name}.pdf}}\n"
        f"\\caption{{{latex_text(legend)}}}\n\\end{{figure}}"
        for name, legend in legends
    ]
    parts = [
        r"\documentclass[10pt,a4paper]{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage[utf8]{inputenc}",
        r"\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}  % without it letters may be bitmaps",
        r"\usepackage{textcomp,booktabs,graphicx}",
        r"\usepackage[margin=20mm]{geometry}",
        r"\sloppy",
        r"\begin{document}",
        rf"\section*{{{latex_text(elided(document.title, 120))}}}",
        latex_text(document.doc),
        *(rf"\paragraph{{Note.}} {latex_text(text)}" for text in document.warnings),
        r"\subsection*{What was found}",
        _items([rf"\item {latex_text(text)}" for text in document.findings], "itemize"),
        latex_text(document.advice),
        r"\subsection*{What each variant changes}",
        _items(changes, "description"),
        r"\begin{table}[p]" + "\n" + r"\centering" + "\n" + r"\resizebox{\linewidth}{!}{\input{table.tex}}" + "\n"
        r"\caption{Comparison, with 95 \% intervals.}" + "\n" + r"\end{table}",
        *map(_grid_table, document.grid),
        latex_text(document.grid_notes) if document.grid else "",
        *figures,
        r"\subsection*{Methods}",
        r"\input{methods.tex}",
        r"\end{document}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _grid_table(table: GridTable) -> str:
    rows = [" & ".join(map(latex_text, table.headings))]
    rows += [" & ".join([latex_text(name), *map(latex_number, cells)]) for name, *cells in table.rows]
    head, *body = (rf"{row} \\" for row in rows)
    tabular = [
        rf"\begin{{tabular}}{{@{{}}l{'r' * (len(table.headings) - 1)}@{{}}}}",
        *(r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"),
    ]
    lines = [r"\begin{table}[p]", r"\centering", r"\resizebox{\linewidth}{!}{%", *tabular, "}"]
    return "\n".join([*lines, rf"\caption{{{latex_text(table.title)}}}", r"\end{table}"])


def _items(items: list[str], kind: str) -> str:
    return "\n".join([rf"\begin{{{kind}}}", *items, rf"\end{{{kind}}}"]) if items else ""
