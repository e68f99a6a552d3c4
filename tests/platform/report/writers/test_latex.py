"""A document with every kind of block for LaTeX: nothing that people wrote is obeyed."""

import re

import pytest
from fixtures_document import DOCUMENT, LEVELS

from ablations.report.documents.blocks import Cell, table_of_rows
from ablations.report.writers.latex import latex_files, latex_number, latex_table, latex_text


def test_every_block_is_written_and_nothing_is_obeyed():
    files = latex_files(DOCUMENT, "report.tex")
    assert files.keys() == {"report.tex", "curves.pdf", "curves.svg"}
    assert files["curves.pdf"].startswith(b"%PDF")
    text = files["report.tex"].decode()
    said = [
        *(r"\section*{loo}", r"\textbf{loo", r"\texttt{platform", "Levels are", r"\paragraph{Note.} 2 of 3"),
        *(r"\subsection*{Comparison}", r"\begin{tabular}", r"\caption{levels of loo}", r"\item[loo{-}loss] entropy"),
        *(r"\includegraphics[width=\linewidth]{curves.pdf}", r"\caption{Thin is measured.}", "All words", "Method"),
    ]
    places = [text.index(one) for one in said]
    assert places == sorted(places)
    assert text.count(r"\begin{") == text.count(r"\end{")
    assert r"\input{/etc" not in text
    assert text.isascii()


def test_a_table_is_set_in_math_mode_with_stars():
    table = latex_table(LEVELS)
    assert table.startswith(r"% needs \usepackage{booktabs}")
    assert {line.count(" & ") for line in table.splitlines() if line.endswith(r"\\")} == {4}
    assert r"\shortstack[l]{lower \\ $-0.049$~$[-0.071,\, \ldots]$$^{*}$}" in table
    headings = ("Δlevel", "A", "ΔA", "C/C_ref")
    rows = [{"variant": "a", **dict.fromkeys(headings, Cell("1"))}]
    head = latex_table(table_of_rows(rows, name="numbers")).splitlines()[3]
    assert head == r"variant & $\Delta$level & $A$ & $\Delta A$ & $C/C_{\mathrm{ref}}$ \\"


def test_a_table_that_is_too_wide_goes_on_in_another():
    rows = [{"variant": f"v{row}", **{f"c{at}": str(at) for at in range(14)}} for row in range(2)]
    text = latex_files([table_of_rows(rows, name="wide", title="all")], "a.tex")["a.tex"].decode()
    heads = re.findall(r"variant & (.*?) \\\\", text)
    assert [head.split(" & ") for head in heads] == [
        [f"c{at}" for at in part] for part in (range(6), range(6, 12), (12, 13))
    ]
    assert text.count(r"\caption{all, continued}") == 2


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a_b & 5 % {x} $y$ #1", r"a\_b \& 5 \% \{x\} \$y\$ \#1"),
        ("~ ^ \\end", r"\textasciitilde{} \textasciicircum{} \textbackslash{}end"),
        ("run `platform show a_b` or ` alone", r"run \texttt{platform show a\_b} or \textasciigrave{} alone"),
        ("--", "{-}{-}"),
        ("é😀", r"é\texttt{U+1F600}"),
    ],
)  # fmt: skip
def test_text_is_escaped_by_hand(text, written):
    assert latex_text(text) == written


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("-0.05 [-0.13, …]", r"$-0.05$~$[-0.13,\, \ldots]$"),
        (">= 0.59", r"$\ge 0.59$"),
        ("10,400 [9,500, 12,000]*", r"$10{,}400$~$[9{,}500,\, 12{,}000]$$^{*}$"),
        ("", ""),
    ],
)
def test_a_number_is_in_math_mode(cell, written):
    assert latex_number(cell) == written
