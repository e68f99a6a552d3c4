"""The page of a study at several scales, and its picture."""

import shutil

from dashboard.app_pages import figures_of, open_page
from fixtures_home import make_home, make_ladder

from ablations.answers.questions import COMPUTE, LEVEL
from ablations.findings.results import open_sweep
from ablations.findings.scale_ladder import ladders_of, scale_ladder
from ablations.report.figures.ladder import ladder_chart


def test_a_study_at_two_scales_has_its_picture_and_table(monkeypatch, tmp_path):
    home = make_ladder(tmp_path)
    page = open_page(monkeypatch, home.path, "ladder")
    assert len(figures_of(page)) == 1
    table = page.dataframe[0].value
    assert list(table.columns) == ["variant", "smoke", "bench", "trend", "over scales", "forecast"]
    assert table["over scales"].tolist() == ["carries"]
    assert "the differences at two scales have opposite signs" in " ".join(one.value for one in page.caption)


def test_studies_that_differ_in_scale_alone_are_one(tmp_path):
    home = make_ladder(tmp_path)
    for name in ("steps@smoke+1f0c9a", "steps@bench+1f0c9a", "other@smoke", "plain"):
        shutil.copytree(home.sweep("steps@smoke"), home.sweep(name))
    assert {study: set(names) for study, names in ladders_of(home).items()} == {
        "steps": {"steps@smoke", "steps@bench"},
        "steps+1f0c9a": {"steps@smoke+1f0c9a", "steps@bench+1f0c9a"},
    }


def test_a_home_without_such_a_study_says_what_makes_one(monkeypatch, tmp_path):
    make_home(tmp_path)
    page = open_page(monkeypatch, tmp_path, "ladder")
    assert "scales: [smoke, bench]" in page.info[0].value


def test_the_picture_has_every_difference_with_its_interval_and_the_forecast_open(tmp_path):
    home = make_ladder(tmp_path)
    found = scale_ladder([open_sweep(f"steps@{scale}", home.path) for scale in ("smoke", "bench")])
    ladder = found.of("loss.type=dapo", "level")
    assert ladder is not None
    (panel,) = ladder_chart(found, LEVEL).panels
    (series,) = panel.marks
    intervals = [*map(ladder.interval, (rung.difference for rung in ladder.rungs)), ladder.forecast(found.at)]
    assert series.y == [one.estimate for one in intervals]
    assert series.y_ends == ([one.lo for one in intervals], [one.hi for one in intervals])
    assert series.is_filled == [True, True, False]
    assert series.legend == "loss.type=dapo: carries"
    assert ladder_chart(found, COMPUTE).panels[0].y.is_log
