"""The page of all sweeps: what leads, when each will end, and which has the words that are looked for."""

import time
from dataclasses import replace

from dashboard.app_pages import messages, open_page
from fixtures_home import changed, make_home


def test_a_card_says_which_variant_leads_and_when_the_sweep_will_end(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    folder = sweep.run(sweep.plan.runs[0].id)
    begun = {"state": "running", "heartbeat": time.time(), "compute_gpu_hours": 1000.0, "wall_s": 500.0}
    folder.write_status(replace(folder.read_status(), **begun))
    page = open_page(monkeypatch, tmp_path, "sweeps")
    assert "highest pass rate: scalerl, 0.6" in page.caption[1].value.replace("\\", "")
    (bar,) = page.get("progress")
    assert "; about 8.3 min left" in bar.proto.text.replace("\\", "")  # 1,000 of 2,000 GPU-hours took 500 s
    folder.write_status(replace(folder.read_status(), state="done", compute_gpu_hours=3000.0))
    page = open_page(monkeypatch, tmp_path, "sweeps")
    assert "highest pass rate: not comparable, since some runs" in page.caption[1].value.replace("\\", "")


def test_sweeps_are_found_by_name_or_question_and_a_damaged_one_is_named(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    changed(sweep, sweep="more", doc="Another question.").write_plan()
    damaged = changed(sweep, sweep="damaged")
    damaged.write_plan()
    (damaged.folder / "plan.json").write_text("{")
    page = open_page(monkeypatch, tmp_path, "sweeps")
    assert "not a plan" in messages(page).replace("\\", "")
    assert set(page.dataframe[0].value["sweep"]) == {"loo", "more", "damaged"}
    page.text_input[0].set_value("Another").run()
    assert list(page.dataframe[0].value["sweep"]) == ["more"]
    assert page.query_params["find"] == "Another"
