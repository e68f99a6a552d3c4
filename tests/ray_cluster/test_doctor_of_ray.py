"""`platform doctor --ray` on a real cluster of two nodes, and without one."""

import json

import pytest
from ray_cluster.study import RayStudy

from ablations.home.home import Home
from ablations.ray import doctor


def checks(printed):
    """The level and the text of each check, by part and name."""
    found = json.loads(printed[printed.index("{") :])["checks"]
    return {(one["part"].partition(" (")[0], one["check"]): (one["level"], one["found"]) for one in found}


@pytest.mark.studies
def test_each_node_is_examined_and_nothing_is_left(cluster, tmp_path):
    study = RayStudy(cluster=cluster, folder=tmp_path)
    seen = checks(study.platform("doctor", "--ray", "--json"))
    (name,) = {part for part, _ in seen if part.startswith("node ")}  # both have the name of this host
    assert seen["Ray", "cluster"][1].endswith("2 nodes with 2 CPUs; a run may have up to 2 nodes")
    assert seen[name, "home folder"] == ("ok", "read and written from both sides")
    assert seen[name, "lock of node"] == ("ok", "held on the node, seen as held here")
    assert seen[name, "code"][0] == "ok"
    assert seen[name, "GPUs"][1].startswith("Ray offers none")
    study.until_nothing_is_left()
    assert not study.home.exists()


def test_without_a_cluster_the_doctor_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "check_here", lambda home, uri, here: ())
    monkeypatch.setattr("ablations.ray.driver_process.find_spec", lambda _: None)
    (found,) = doctor.examine_ray(Home(tmp_path / "home"), "", print)
    assert (found.part, found.check, found.level) == ("Ray", "cluster", "error")
    assert "pip install 'ablations[ray]'" in f"{found.found} {found.remedy}"
    assert not (tmp_path / "home").exists()
