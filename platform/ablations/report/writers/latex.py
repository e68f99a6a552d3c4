"""Documents for LaTeX: one file that compiles by itself (pdflatex, lualatex, tectonic), tables by booktabs, figures as
PDF and SVG beside it.

User-written text is escaped character by character; a character that plain LaTeX cannot set becomes its code point.
"""

import re
from collections.abc import Iterator, Sequence

from ablations.report.documents.blocks import Blocks, Cell, Column, Figure, Folded, Heading, Table, Text, code_parts
from ablations.report.figures.chart import elided
from ablations.report.writers.markdown import pictures_of
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
CELL = re.compile(r"(>= )?([+-]?\d[\d,.]*)?( ?\[(…|[+-]?\d[\d,.]*), (…|[+-]?\d[\d,.]*)\])?( at [\d,.e+-]+)?([*=?])?")
LONGEST_LATEX_NAME = 40
STAR = "$^{*}$"
MATHEMATICS = {"Δlevel": r"$\Delta$level", "A": "$A$", "ΔA": r"$\Delta A$", "C/C_ref": r"$C/C_{\mathrm{ref}}$"}
"""Headings in math mode."""
MOST_LATEX_COLUMNS = 7
"""Maximum number of columns of a table; a wider one continues in a second table with the same first column."""
WIDE_ROW = 85
"""Characters of a row beyond which a table is made smaller."""
LATEX_SECTIONS = {1: "section", 2: "subsection", 3: "paragraph"}
BEGIN = r"""\documentclass[10pt,a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}  % without it letters may be bitmaps
\usepackage{textcomp,booktabs,graphicx}
\usepackage[margin=18mm]{geometry}
\sloppy
\begin{document}"""


def latex_files(blocks: Blocks, name: str) -> dict[str, bytes]:
    """The document as a file of this name, and its figures as PDF and SVG, by file name."""
    text = "\n\n".join([BEGIN, *filter(None, _written(blocks)), r"\end{document}"]) + "\n"
    return {name: text.encode()} | pictures_of(blocks, "pdf", "svg")


def _written(blocks: Blocks) -> Iterator[str]:
    for one in blocks:
        match one:
            case Heading():
                yield rf"\{LATEX_SECTIONS[one.level]}*{{{latex_text(elided(one.text, 120))}}}"
            case Text(kind="warning" | "error"):
                yield rf"\paragraph{{Note.}} {latex_text(one.text)}"
            case Text(kind="lead"):
                yield rf"\textbf{{{latex_text(one.text)}}}"
            case Text():
                yield latex_text(one.text)
            case Table():
                yield from _tables(one)
                yield from map(latex_text, one.notes)
            case Figure():
                yield (
                    f"\\begin{{figure}}[htbp]\n\\centering\n\\includegraphics[width=\\linewidth]{{{one.name}.pdf}}\n"
                    f"\\caption{{{latex_text(one.caption)}}}\n\\end{{figure}}"
                )
            case Folded():
                yield from _written([Heading(text=one.title), *one.blocks])


def _tables(table: Table) -> Iterator[str]:
    """The table in parts that are narrow enough, then its prose as lists."""
    prose = [at for at, one in enumerate(table.columns) if one.kind == "prose"]
    others = [at for at in range(1, len(table.columns)) if at not in prose]
    title = table.title
    for start in range(0, len(others), MOST_LATEX_COLUMNS - 1):
        shown = [0, *others[start : start + MOST_LATEX_COLUMNS - 1]]
        lines = _tabular([table.columns[at] for at in shown], [[row[at] for at in shown] for row in table.rows])
        if sum(max(len(line) for row in table.rows for line in row[at].text.split("\n")) for at in shown) > WIDE_ROW:
            lines = [r"\resizebox{\linewidth}{!}{%", *lines, "}"]
        caption = [rf"\caption{{{latex_text(title)}}}"] if title else []
        yield "\n".join([r"\begin{table}[htbp]", r"\centering\small", *lines, *caption, r"\end{table}"])
        title = f"{table.title}, continued" if table.title else ""
    for at in prose:
        said = [(row[0].text if at else "", row[at].text) for row in table.rows if row[at].text]
        head = table.columns[at].heading if len(prose) > 1 or others else ""
        items = [rf"\item[{latex_text(elided(name, 80))}] {latex_text(text)}" for name, text in said]
        if items:
            yield rf"\paragraph{{{latex_text(head)}}}" if head else ""
            yield "\n".join([r"\begin{description}", *items, r"\end{description}"])


def latex_table(table: Table) -> str:
    """The table alone, for \\input; user-written text is escaped."""
    return "\n".join([r"% needs \usepackage{booktabs}", *_tabular(table.columns, table.rows), ""])


def _tabular(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """A table by booktabs, line by line."""
    head = [MATHEMATICS.get(one.heading) or latex_text(one.heading) for one in columns]
    body = [[latex_text(elided(name.text, LONGEST_LATEX_NAME)), *map(_in_cell, cells)] for name, *cells in rows]
    first, *lines = (rf"{' & '.join(line)} \\" for line in (head, *body))
    begin = rf"\begin{{tabular}}{{@{{}}{'l' * len(columns)}@{{}}}}"
    return [begin, r"\toprule", first, r"\midrule", *lines, r"\bottomrule", r"\end{tabular}"]


def _in_cell(cell: Cell) -> str:
    lines = [latex_number(line) for line in cell.text.split("\n")]
    stacked = r" \\ ".join(lines)
    return stacked if len(lines) == 1 else rf"\shortstack[l]{{{stacked}}}"


def latex_text(text: str) -> str:
    """`text` escaped so that LaTeX sets it literally; text between backticks is set as code."""
    parts = (("".join(map(_letter, part)), is_code) for part, is_code in code_parts(made_visible(text)))
    return "".join(rf"\texttt{{{part}}}" if is_code else part for part, is_code in parts)


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
    bound, estimate, interval, lo, hi, at, mark = found.groups()
    least = r"\ge " if bound else ""
    said = [f"${least}{_mathematics(estimate)}$"] if estimate else []
    if interval:
        said.append(f"$[{_mathematics(lo)},\\, {_mathematics(hi)}]$")
    return "~".join(said) + latex_text(at or "") + (STAR if mark == "*" else mark or "")


def _mathematics(number: str) -> str:
    return r"\ldots" if number == "…" else number.replace(",", "{,}")
