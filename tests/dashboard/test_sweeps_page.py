"""The page of all sweeps: what leads and when each will end."""

import time
from dataclasses import replace

from dashboard.app_pages import open_page
from fixtures_home import make_home


def test_a_card_says_which_variant_leads_and_when_the_sweep_will_end(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    folder = sweep.run(sweep.plan.runs[0].id)
    begun = {"state": "running", "heartbeat": time.time(), "compute_gpu_hours": 1000.0, "wall_s": 500.0}
    folder.write_status(replace(folder.read_status(), **begun))
    page = open_page(monkeypatch, tmp_path, "sweeps")
    assert "highest pass rate: scalerl, 0.6" in page.caption[1].value.replace("\\", "")
    (bar,) = page.get("progress")
    assert "; about 8.3 min left" in bar.proto.text.replace("\\", "")  # 1,000 of 2,000 GPU-hours took 500 s
