"""A grid is answered as a grid: its cells, its own values, its main effects, in every output."""

import csv
import io
from datetime import UTC, datetime

import pytest
from fixtures_document import printed

from ablations.findings.grid import grid_of
from ablations.findings.results import Results, read_results
from ablations.report.documents.comparison import brief_comparison, report_document
from ablations.report.documents.grid import effect_tables
from ablations.report.formats import report_page
from ablations.report.writers.csv_files import csv_files
from ablations.report.writers.markdown import markdown_document

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def results(grid) -> Results:
    return read_results(grid)


def test_the_reference_is_a_cell_and_numbers_stand_by_size(results):
    grid = results.grid
    assert grid.axes == {"loss.type": ("cispo", "dapo"), "batch.prompts": ("16", "32", "64")}
    assert grid.cells["cispo", "16"] == "scalerl"
    assert grid.cells["dapo", "32"] == "dapo,32"
    assert grid.own == grid.bases == {"loss.type": "cispo", "batch.prompts": "16"}
    assert [(one.axis, one.value, one.num_pairs) for one in grid.effects] == [
        ("loss.type", "dapo", 3), ("batch.prompts", "32", 2), ("batch.prompts", "64", 2),
    ]  # fmt: skip
    assert grid.effects[0].answers["level"].verdict == "level down"


def test_every_output_has_the_cells_and_the_effects_under_one_name(results):
    effect = effect_tables(results)[0].rows[0][1].text.rstrip()
    assert effect.startswith("-0.0")
    markdown = markdown_document(report_document(results, now=NOW))
    assert f"| dapo | {effect[:-1]}" in markdown
    assert "main effects, against loss.type cispo, batch.prompts 16" in markdown
    page = report_page(results, now=NOW)
    assert effect in page
    terminal = printed(brief_comparison(results), width=160)
    assert "level − scalerl, by batch.prompts (down) and loss.type (across)" in terminal
    assert "° scalerl's own value: loss.type cispo, batch.prompts 16." in terminal
    for text in (markdown, page, terminal):
        assert "dapo,32" in text
        assert "loss.type=dapo" not in text
    (row, *_) = csv.DictReader(io.StringIO(csv_files(results)["main_effects.csv"].decode()))
    assert float(row["level_difference"]) == results.grid.effects[0].answers["level"].estimate
    (first, second) = results.grid.interactions
    assert (first.first, first.second) == (("loss.type", "dapo"), ("batch.prompts", "32"))
    level = max((first, second), key=lambda one: abs(one.answers["level"].estimate)).answers["level"]
    for text in (markdown, page, terminal):
        assert "Does the effect of loss.type on the level depend on batch.prompts?" in text.replace("\\", "")
    size = f"{level.estimate:+.3f} [{level.joint_lo:+.3f}, {level.joint_hi:+.3f}]"
    assert f"a difference of {size}, the largest of 2 and corrected for them." in " ".join(terminal.split())
    assert results.to_json()["grid"]["interactions"][0]["level_difference"] == first.answers["level"].estimate
    (told, *_) = results.to_json()["grid"]["effects"]
    assert (told["axis"], told["value"], told["against"], told["pairs"]) == ("loss.type", "dapo", "cispo", 3)


def test_variants_without_crossed_axes_are_no_grid(results):
    fits = {variant.name: variant.fits for variant in results.variants}
    names = list(fits)
    paired = {names[0]: {}, names[1]: {"a": "1", "b": "1"}, names[2]: {"a": "2", "b": "2"}}
    assert grid_of(paired, fits, results.comparison) is None
    alone = {name: {"a": "1"} for name in names}
    assert grid_of(alone, fits, results.comparison) is None


def test_without_the_references_cell_the_first_value_is_the_base(results):
    fits = {variant.name: variant.fits for variant in results.variants}
    axes = {name: one for name, one in results.plan.axes.items() if name != "scalerl"} | {"scalerl": {}}
    grid = grid_of(axes, fits, results.comparison)
    assert grid.own == {}
    assert grid.bases == {"loss.type": "cispo", "batch.prompts": "16"}
    assert {one.value: one.num_pairs for one in grid.effects} == {"dapo": 2, "32": 1, "64": 1}
