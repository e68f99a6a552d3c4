"""A comparison as documents: every number with its interval, its baseline and its seeds, in every form."""

import base64
import csv
import gzip
import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from fixtures_answers import with_line
from fixtures_document import Tags, printed
from fixtures_home import TRUTH, changed, make_home, planned_run, write_run
from plotly.offline import get_plotlyjs

from ablations.findings.results import Results, read_results
from ablations.fit.curve_file import read_curves
from ablations.home.home import Home
from ablations.home.plan import PlannedRun
from ablations.home.state import State
from ablations.report.documents.blocks import Folded, Table, Text
from ablations.report.documents.comparison import brief_comparison, brief_notes, explanation, report_document
from ablations.report.documents.comparison_tables import comparison_table, hours_table, numbers_table, paper_numbers
from ablations.report.documents.grid import grid_blocks
from ablations.report.documents.marks import marks_said
from ablations.report.formats import report_page, write_in_format
from ablations.report.writers.csv_files import sheet_text
from ablations.report.writers.latex import latex_table
from ablations.report.writers.page import heat_colour
from ablations.study.resolve import load_resolved

FIGURES, VECTOR = ("curves", "differences"), ("pdf", "svg")
NOW = datetime(2025, 11, 20, 12, 30, tzinfo=UTC)


def words(results: Results) -> str:
    """All text of the report, as a terminal shows it."""
    return " ".join(printed(report_document(results, now=NOW), width=2000).split())


def brief(results: Results, width: int = 200) -> list[str]:
    return printed(brief_comparison(results), width=width).splitlines()


@pytest.fixture(scope="module")
def said(decided) -> str:
    """The report on three seeds of each variant."""
    return words(decided)


def test_the_report_is_one_file_that_needs_no_network(finished):
    path = write_in_format(finished, "html", now=NOW)
    text = path.read_text()
    page = Tags(text)
    assert path == finished.sweep.folder / "report.html"
    assert not [one for _, attrs in page.found for one in attrs if one in ("src", "href")]
    packed = text.partition('id="packed">')[2].partition("</script>")[0]
    drawn = gzip.decompress(base64.b85decode(packed)).decode().removeprefix(get_plotlyjs())
    assert drawn.count("Plotly.newPlot(") == drawn.count("layOut(") == 2
    assert len(text) < 2_000_000
    assert "2000 measured device-hours each" in words(
        replace(finished, plan=changed(finished.sweep, compute_name="measured device-hours").plan)
    )


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("md", {"report.md", "curves.png", "differences.png"}),
        ("csv", {"curves.csv", "fits.csv", "comparison.csv"}),
        ("latex", {"report.tex", "table.tex", "methods.tex", *(f"{one}.{kind}" for one in FIGURES for kind in VECTOR)}),
    ],
)  # fmt: skip
def test_a_format_of_several_files_is_a_folder(finished, form, names):
    path = write_in_format(finished, form, now=NOW)
    folder = path if form == "csv" else path.parent
    assert {file.name for file in folder.iterdir()} == names
    assert form != "latex" or b"arXiv 2510.13786" in (folder / "methods.tex").read_bytes()


def test_curves_as_csv_are_the_curves_that_were_read(decided):
    folder = write_in_format(decided, "csv", now=NOW)
    again = read_curves(folder / "curves.csv")
    assert len(again) == len(list(csv.DictReader(io.StringIO((folder / "fits.csv").read_text())))) == 9
    own = decided.runs[0].curve
    assert again[0].compute.tolist() == own.compute.tolist()
    assert again[0].score.tolist() == own.score.tolist()
    lines = list(csv.DictReader(io.StringIO((folder / "comparison.csv").read_text())))
    assert [line["variant"] for line in lines] == list(TRUTH)
    assert decided.compared("loo-loss").answers["ceiling"].estimate == float(lines[1]["ceiling_difference"])


def test_text_in_a_sheet_is_no_formula():
    rows = [{"a": "=1+1", "b": -0.5}, {"a": "@x", "b": 2}, {"a": "plain\x1b[31m", "b": None}]
    (header, *lines) = csv.reader(io.StringIO(sheet_text(rows)))
    assert header == ["a", "b"]
    assert lines == [["'=1+1", "-0.5"], ["'@x", "2"], ["plain\\x1b[31m", ""]]


def test_the_report_says_how_it_was_made(finished):
    text = words(finished)
    for one in ("command platform sweep sweeps/loo.yaml", str(finished.sweep.home.path), "2025-11-20 12:30 UTC",
                "code 4f1c2d", "3, at scale laptop, 2000 modelled GPU-hours each"):  # fmt: skip
        assert one in text
    for one in ("with the seed (0)", "up to 2,000 modelled GPU-hours", "R_0 anchored", "at commit 4f1c2d"):
        assert one in text[text.index(" Methods ") :]
    for name in TRUTH:
        assert f"{finished.variant(name).fits[0].asymptote} (1 seed)" in text
    assert "loo-loss 95.0% 4.0% 1.0% 69.0% 31.0% 4,000 2.0% 27.6%" in text


def test_every_difference_names_its_baseline_and_its_rule(decided, said):
    line = decided.compared("loo-loss")
    level, ceiling, compute = line.answers.values()
    difference = f"{ceiling.estimate:+.3f} [{ceiling.lo:+.3f}, {ceiling.hi:+.3f}] in A against scalerl (3 seeds)"
    against = f"{level.estimate:+.3f} [{level.lo:+.3f}, {level.hi:+.3f}] against scalerl"
    ratio = f"{compute.estimate:.2f} [{compute.lo:.2f}, {compute.hi:.2f}] times its compute"
    verdicts = "loo-loss: lower at equal compute; ceiling down; more compute to the common target"
    assert f"{verdicts}. {line.asymptote} (3 seeds); level {line.level:.3f}, {against}; {difference}; {ratio}" in said
    assert re.search(r"recipe: of levels 0\.00\d\d from 9 repeated runs; of A .* runs; of ln compute .* runs\.", said)
    assert "0.59, 1.77, 2600" in said
    assert "two A within 0.02 count as equal, regardless of their intervals" in said
    for name, form in (("level", "+.3f"), ("ceiling", "+.3f"), ("compute", ".2f")):
        one = line.answers[name]
        assert f"[{one.joint_lo:{form}}, {one.joint_hi:{form}}]" in said
        assert one.joint_lo < one.lo < one.hi < one.joint_hi
    assert 'Intervals under "corrected" are corrected for 2 comparisons (Bonferroni)' in said


def test_verdicts_that_occur_are_explained_and_no_others(said):
    assert "level: level down the 95 % interval of the difference in level lies below 0" in said
    assert "ceiling: ceiling down the 95 % interval of the difference in A lies below 0" in said
    assert "compute: more compute the 95 % interval of the compute ratio lies above 1" in said
    assert "fit: collapsed" not in said


def test_cells_have_the_numbers_that_they_show(decided):
    lines = {line.name: line for line in decided.comparison.variants}
    for table in (comparison_table(decided), numbers_table(decided)):
        headings = [one.heading for one in table.columns]
        for row in table.rows:
            line, cells = lines[row[0].text], dict(zip(headings, row, strict=True))
            assert cells["A [95 %]"].number == line.asymptote.A
            if line.name != "scalerl":
                for question in decided.questions:
                    assert cells[decided.heading(question)].number == line.answers[question.name].estimate
            assert float(cells["C_mid"].text.replace(",", "")) == pytest.approx(cells["C_mid"].number, rel=1e-3)
    tones = [[cell.tone for cell in row][3:] for row in comparison_table(decided).rows]  # after variant, changes, seeds
    assert [tone[:4] for tone in tones] == [[""] * 4, ["bad", "bad", "", "bad"], ["bad", "faint", "", "bad"]]


def test_unfinished_runs_and_runs_without_a_fit_are_named(tmp_path):
    sweep = make_home(tmp_path, fraction=0.5, state="running")
    folder = sweep.run(planned_run("loo-loss", 0).id)
    folder.write_status(replace(folder.read_status(), code_versions=("aaaaaa+dirty",)))
    folder.metrics.write_text("[]\n{}\n")
    results = read_results(sweep)
    text = words(results)
    assert "trained with 2 versions of the code: 4f1c2d, aaaaaa+dirty." in text
    assert "3 of 3 runs have not reached the budget." in text
    assert "loo-loss: no comparison. loo-loss-s0:" in text
    assert "metrics.jsonl:1: not a metrics row" in text
    folded = next(one for one in report_document(results, now=NOW) if isinstance(one, Folded))
    weights = [one.weight for one in results.remarks]
    assert (folded.title, len(folded.blocks)) == ("2 more warnings", weights.count("warning") - 2)


def test_the_report_says_what_the_pass_rate_is_of(finished, tmp_path):
    assert "Task:" not in words(finished)  # of a recipe that no version of ours wrote
    sweep = make_home(tmp_path)
    recipe = load_resolved("scalerl", "smoke")
    run = PlannedRun(seed=0, id=recipe.identity(0))
    write_run(sweep.home, run.id, TRUTH["scalerl"])
    (sweep.run(run.id).path / "recipe.json").unlink()
    sweep.run(run.id).create(recipe, 0)
    sweep = changed(sweep, variants=(replace(sweep.plan.variants[0], runs=(run,)), *sweep.plan.variants[1:]))
    assert "Task: given 3:k9a2, write the three smallest symbols, 29a." in words(read_results(sweep))


def test_the_latex_table_has_mathematical_headings_and_stars_but_no_prose(decided):
    table = latex_table(paper_numbers(decided))
    headings = next(line for line in table.splitlines() if "variant" in line)
    assert headings == r"variant & $\Delta$level & $A$ & $\Delta A$ & $C/C_{\mathrm{ref}}$ \\"
    # A of loo-curriculum is the reference's, its C_mid half as large again (fixtures_home.TRUTH).
    (line,) = [line for line in table.splitlines() if line.startswith("loo{-}curriculum")]
    cells = line.removesuffix(r" \\").split(" & ")
    assert [cell.endswith("$^{*}$") for cell in cells] == [False, True, False, False, True]
    assert not re.search("[a-z]{4}", "".join(cells[1:]))


def test_a_command_names_a_home_that_it_would_not_find_by_itself(decided):
    *_, further, explain = brief(decided, width=300)
    where = f"--home {decided.sweep.home.path}`"
    assert further == f"Next: `platform forecast loo {where} looks beyond this budget."
    assert explain == f"`platform compare loo --explain {where} also shows the changes and the method."


def late_rate(results, run_id):
    """The mean pass rate of a run over the last third of its compute, from its log."""
    rows = map(json.loads, results.sweep.run(run_id).metrics.read_text().splitlines())
    rates = {row["compute_gpu_hours"]: row["pass_rate"] for row in rows if row["kind"] == "eval"}
    return np.mean([rate for compute, rate in rates.items() if compute >= 2 / 3 * max(rates)])


def test_of_many_variants_the_last_lines_name_the_one_that_leads(many_variants, decided):
    results = read_results(many_variants)
    levels = {one.name: np.mean([late_rate(results, run.id) for run in one.runs]) for one in results.plan.variants}
    *_, leader, further, _ = brief(results, width=1000)
    assert leader.startswith(f"{max(levels, key=levels.__getitem__)} (")
    assert "leads scalerl by" in leader
    assert further.startswith("Next: ")
    assert not any("leads" in line for line in brief(decided, width=1000))  # of three, whom a glance ranks


def test_a_report_says_what_the_runs_have_cost(many_variants):
    page = report_page(read_results(many_variants), now=datetime(2026, 11, 29, tzinfo=UTC))
    assert "48 runs, 90,000 modelled GPU-hours spent." in page  # 1,875 each


@pytest.mark.parametrize("width", [80, 200])
def test_a_comparison_is_a_line_per_variant_and_three_below(decided, width):
    home = Home(Path("ablation-runs").absolute())
    lines = brief(replace(decided, sweep=replace(decided.sweep, home=home)), width=width)
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("loo at scale laptop, 2000 modelled GPU-hours per run, 95 % intervals")
    (own,) = [line for line in lines if line.startswith("scalerl ")]
    level = f"{decided.compared('scalerl').level:.3f}"
    assert f"ref {level if width > 80 else level[1:]}" in own
    assert lines[2 + len(decided.variants) :] == [
        *(["Too narrow for seeds, A [95 %], C_mid, B, cost, fit."] if width == 80 else []),
        "* holds jointly for all 2 comparisons; = no difference, at most ±0.04 (ceiling)",
        "Next: `platform forecast loo` looks beyond this budget.",
        "`platform compare loo --explain` also shows the changes and the method.",
    ]


def test_marks_say_what_holds_for_all_what_shows_no_difference_and_which_seed_collapsed(decided):
    assert all(answer.is_held for answer in decided.compared("loo-loss").answers.values())
    lines = brief(decided)
    assert next(line for line in lines if line.startswith("loo-loss")).count("]*") == 3
    assert "*" not in next(line for line in lines if line.startswith("scalerl"))
    answers = {"level": {"verdict": "no difference seen"}, "ceiling": {"verdict": "cannot tell"}}
    lines = brief(with_line(decided, "loo-loss", answers=answers, fit_verdict="collapsed"))
    (row,) = [line for line in lines if line.startswith("loo-loss! ")]
    assert [row.count(mark) for mark in ("]=", "]?", "]*")] == [1, 1, 1]
    meaning = "= no difference, at most ±0.025 (level), ±0.04 (ceiling); ? cannot tell, wider or open; ! a seed"
    assert meaning in "\n".join(lines)
    only_wide = {"level": {"verdict": "cannot tell"}, "ceiling": {"verdict": "cannot tell"}}
    doubtful = with_line(with_line(decided, "loo-loss", answers=only_wide), "loo-curriculum", answers=only_wide)
    assert marks_said(doubtful).endswith("; ? cannot tell, wider than ±0.025 (level), ±0.04 (ceiling) or open")
    ratio = {"compute": {"verdict": "no difference seen"}}
    assert "×÷1.22 (compute)" in marks_said(with_line(decided, "loo-loss", answers=ratio))  # sqrt(1.5)


def test_a_single_comparison_has_no_star(finished):
    pair = changed(finished.sweep, variants=finished.plan.variants[:2])
    assert "*" not in "".join(brief(read_results(pair)))


def test_the_explanation_says_what_each_variant_changes_and_what_the_star_means(finished, decided):
    said = explanation(finished)
    assert [line for line in said if " changes " in line] == [
        "loo-loss changes loss.type = dapo.",
        "loo-curriculum changes curriculum.type = uniform.",
    ]
    assert "It comes directly from the evaluations; no curve is fitted." in " ".join(said)
    star = "*: also differs with intervals corrected for 2 comparisons (Bonferroni), so that all hold at once"
    assert any(one.startswith(star) for one in explanation(decided))


def test_where_the_hours_went_is_a_line_per_variant(finished, tmp_path):
    table = hours_table(finished)
    assert [column.heading for column in table.columns] == [
        "variant", "generators decode", "generators wait for prompts", "generators wait for weights",
        "trainers forward, backward", "trainers wait for rollouts", "tokens/s", "MFU of generators", "MFU of trainers",
    ]  # fmt: skip
    shares = ["95.0%", "4.0%", "1.0%", "69.0%", "31.0%", "4,000", "2.0%", "27.6%"]
    assert [[cell.text for cell in row] for row in table.rows] == [[name, *shares] for name in TRUTH]
    sweep = make_home(tmp_path)
    for path in tmp_path.glob("runs/*/metrics.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        new = {"device_s", "tokens_per_s", "mfu"}
        kept = [{name: value for name, value in row.items() if name not in new} for row in rows]
        path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    without = read_results(sweep)
    assert hours_table(without) is None
    assert isinstance(brief_comparison(without, explain=True)[-1], Text)
    assert brief_comparison(finished, explain=True)[-1] == table


def test_a_finished_run_whose_log_was_changed_is_named_below_the_table(decided):
    first, *others = decided.variants
    lost = replace(first.runs[0], curve=None, fit=None, reason="metrics.jsonl has changed", state=State.DONE)
    spoiled = replace(decided, variants=(replace(first, runs=(lost, *first.runs[1:])), *others))
    assert f"{lost.name}: metrics.jsonl has changed" in brief_notes(spoiled)
    waiting = replace(lost, state=State.PENDING)
    unbegun = replace(decided, variants=(replace(first, runs=(waiting, *first.runs[1:])), *others))
    assert not any("metrics.jsonl" in note for note in brief_notes(unbegun))


def test_a_cell_of_a_grid_is_as_warm_as_its_difference_is_large_relative_to_the_others_of_its_question(grid):
    results = read_results(grid)
    tables = [one for one in grid_blocks(results) if isinstance(one, Table)]
    level = next(one for one in tables if one.name == "grid-level")
    heats = {cell.number or 0.0: cell.heat for row in level.rows for cell in row if cell.heat}
    largest = max(heats, key=abs)
    assert heats == pytest.approx({number: number / abs(largest) for number in heats})
    compute = next(one for one in tables if one.name == "grid-compute")
    assert all((cell.number < 1) == (cell.heat > 0) for row in compute.rows for cell in row if cell.heat)
    coloured = sum(heat_colour(cell) != "" for table in tables for row in table.rows for cell in row)
    assert report_page(results, now=NOW).count('style="background: rgba(') == coloured > 0
