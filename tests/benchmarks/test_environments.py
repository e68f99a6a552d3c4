"""Every environment without a library takes its step, and the record of those with one has no episode that differed."""

import json
import multiprocessing

import environments
import pytest
from record import RESULTS


@pytest.mark.studies
@pytest.mark.parametrize("name", ["guess", "own"])
def test_an_environment_without_a_library_trains_a_step_and_repeats(name, tmp_path, monkeypatch):
    # The server of forks of this worker belongs to other tests, and holds what they imported.
    monkeypatch.setattr(environments, "PROCESSES", multiprocessing.get_context("spawn"))
    (tmp_path / "my_games.py").write_text(environments.OWN_GAME)
    row = environments.within_limit(name, tmp_path)
    assert "reason" not in row
    assert row["same"] == environments.SEEDS
    assert row["seconds"] > 0


def test_what_cannot_train_is_recorded_with_its_reason_and_what_trains_repeats():
    rows = json.loads((RESULTS / "environments.json").read_text())["rows"]
    trained = [row for row in rows if "seconds" in row]
    assert {row["same"] for row in trained} == {environments.SEEDS}
    assert all(row["reason"] for row in rows if row not in trained)
    of = {library: sum(row["environment"].startswith(library) for row in trained) for library in ("textarena", "gem")}
    assert of == {"textarena": 55, "gem": 24}
