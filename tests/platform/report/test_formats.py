"""The report in every format, read by other programs: nothing that people wrote is obeyed, and numbers stay numbers."""

import csv
import io
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import markdown as python_markdown
import pytest
from fixtures_home import TRUTH, make_home

from ablations.findings.results import Results, read_results
from ablations.fit.curve_file import read_curves
from ablations.report.csv_files import sheet_text
from ablations.report.document import document_of
from ablations.report.formats import write_in_format
from ablations.report.latex import latex_files, latex_number, latex_table, latex_text
from ablations.report.markdown import markdown_text

NOW = datetime(2026, 11, 24, 2, 0, tzinfo=UTC)
HOSTILE = (
    "=1+1 <img src=x onerror=alert(1)> ![p](https://elsewhere.example/x.png) **b** `c` $x$ \\input{/etc/passwd} "
    '\x1b[31m \u202e @who www.elsewhere.example | # 😀 & % ~ ^ {a} _b_ ‘q’ "q"' + "x" * 80
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Results:
    """The same with a question and a setting that want to be obeyed."""
    sweep = make_home(tmp_path_factory.mktemp("hostile"))
    first, second, third = sweep.plan.variants
    changed = replace(second, overrides={"loss.type": HOSTILE})
    plan = replace(sweep.plan, doc=HOSTILE, variants=(first, changed, third))
    return read_results(replace(sweep, plan=plan))


class Tags(HTMLParser):
    """Elements of a page and the addresses that they name."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.addresses: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs) -> None:
        self.names.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data) -> None:
        self.text += data


def test_curves_as_csv_are_the_curves_that_were_read(decided):
    folder = write_in_format(decided, "csv", now=NOW)
    again = read_curves(folder / "curves.csv")
    assert len(again) == 9
    first = again[0]
    own = decided.runs[0].curve
    assert own is not None
    assert first.compute.tolist() == own.compute.tolist()
    assert first.score.tolist() == own.score.tolist()
    lines = list(csv.DictReader(io.StringIO((folder / "comparison.csv").read_text())))
    assert [line["variant"] for line in lines] == list(TRUTH)
    compared = decided.compared("loo-loss")
    assert compared is not None
    assert compared.answers["ceiling"].estimate == float(lines[1]["delta_A"])
    assert len(list(csv.DictReader(io.StringIO((folder / "fits.csv").read_text())))) == 9


def test_text_in_a_sheet_is_no_formula():
    rows = [{"a": "=1+1", "b": -0.5}, {"a": "@x", "b": 2}, {"a": "plain\x1b[31m", "b": None}]
    (header, *lines) = csv.reader(io.StringIO(sheet_text(rows)))
    assert header == ["a", "b"]
    assert lines == [["'=1+1", "-0.5"], ["'@x", "2"], ["plain\\x1b[31m", ""]]


def test_markdown_shows_what_was_written_and_obeys_nothing(hostile):
    path = write_in_format(hostile, "md", now=NOW)
    page = Tags()
    page.feed(python_markdown.markdown(path.read_text(), extensions=["tables"]))
    assert sorted(page.addresses) == ["curves.png", "differences.png"]
    assert not page.names & {"script", "strong", "em", "code", "a"}
    assert "**b** `c` $x$" in page.text
    assert "![p](https://elsewhere.example/x.png)" in page.text
    assert "\\x1b[31m \\u202e" in page.text
    assert all((path.parent / name).read_bytes().startswith(b"\x89PNG") for name in page.addresses)


@pytest.mark.parametrize("text", ["- a", "1. a", "# a", "> a", "+ a", "=== a", "a * b", "a|b", "[a](b)", "<b>", "_a_"])
def test_no_text_begins_markup(text):
    page = Tags()
    page.feed(python_markdown.markdown(markdown_text(text), extensions=["tables"]))
    assert page.names == {"p"}
    assert page.text == text


def test_latex_is_escaped_by_hand():
    assert latex_text("a_b & 5 % {x} $y$ #1 ~ ^ \\end") == (
        r"a\_b \& 5 \% \{x\} \$y\$ \#1 \textasciitilde{} \textasciicircum{} \textbackslash{}end"
    )
    assert latex_text("run `platform show a_b` or ` alone") == (
        r"run \texttt{platform show a\_b} or \textasciigrave{} alone"
    )
    assert latex_text("--") == "{-}{-}"
    assert latex_text("é😀") == r"é\texttt{U+1F600}"
    assert latex_number("-0.05 [-0.13, …]") == r"$-0.05$~$[-0.13,\, \ldots]$"
    assert latex_number(">= 0.59") == r"$\ge 0.59$"
    assert latex_number("10,400 [9,500, 12,000]") == r"$10{,}400$~$[9{,}500,\, 12{,}000]$"
    assert latex_number("") == ""


def test_latex_has_a_table_a_methods_paragraph_and_figures(hostile):
    path = write_in_format(hostile, "latex", now=NOW)
    written = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert written.keys() == {
        "report.tex", "table.tex", "methods.tex", "curves.pdf", "curves.svg", "differences.pdf", "differences.svg",
    }  # fmt: skip
    table = written["table.tex"].decode()
    assert table.count(r"\\") == 4  # the heading and three variants
    assert {line.count("&") for line in table.splitlines() if line.endswith(r"\\")} == {4}
    text = written["report.tex"].decode()
    assert r"\input{/etc" not in text
    assert "\x1b" not in text
    assert text.count(r"\begin{") == text.count(r"\end{")
    assert written["curves.pdf"].startswith(b"%PDF")
    assert b"arXiv 2510.13786" in written["methods.tex"]


def test_the_latex_table_has_mathematical_headings_and_stars_but_no_prose(decided):
    table = latex_table(decided)
    headings = next(line for line in table.splitlines() if "variant" in line)
    assert headings == r"variant & $\Delta$level & $A$ & $\Delta A$ & $C/C_{\mathrm{ref}}$ \\"
    # A of loo-curriculum is the reference's, its C_mid half as large again (fixtures_home.TRUTH).
    (line,) = [line for line in table.splitlines() if line.startswith("loo{-}curriculum")]
    cells = line.removesuffix(r" \\").split(" & ")
    assert [cell.endswith("$^{*}$") for cell in cells] == [False, True, False, False, True]
    assert not re.search("[a-z]{4}", "".join(cells[1:]))
    report = latex_files(document_of(decided, now=NOW), {})["report.tex"].decode()
    assert r"Comparison with \texttt{scalerl}" in report


def test_the_html_escapes_all_and_asks_for_nothing(hostile):
    text = write_in_format(hostile, "html", now=NOW).read_text()
    page = Tags()
    page.feed(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
    assert "img" not in page.names
    assert not page.addresses
    assert len(text) < 6_000_000
