"""What a submission may cost is agreed to before anything is changed."""


def files(home):
    """Every file of the sweep with its content, but for locks."""
    paths = [path for path in (home / "sweeps").rglob("*") if path.is_file() and "lock" not in path.name]
    return {path: path.read_bytes() for path in paths}


def test_options_without_effect_are_refused(study):
    refused = study.platform("sweep", str(study.file), "--hold", code=2)
    assert "--executor slurm" in refused


def test_a_cost_that_nobody_agreed_to_changes_nothing(study):
    study.write(resources="confirm_above_device_hours: 0.1")
    refused = study.platform("sweep", str(study.file), "--executor", "slurm", code=2)
    assert "--yes" in refused
    assert study.queued() == []
    assert files(study.home) == {}

    study.submit("--hold")
    study.platform("cancel", "small", "--variant", "loo-loss")
    study.until_states(loo_loss="cancelled", scalerl="queued")
    before = files(study.home)
    refused = study.platform("sweep", str(study.file), "--executor", "slurm", "--budget", "2", code=2)
    assert "3 jobs" in refused
    assert files(study.home) == before
    refused = study.platform("sweep", str(study.file), "--executor", "slurm", code=2)
    assert "1 job on" in refused
    assert study.states()["loo-loss"] == "cancelled"
    assert len(study.queued()) == 2


def test_nothing_is_asked_where_nothing_is_submitted(study):
    study.write(resources="confirm_above_device_hours: 0.1")
    study.submit("--hold")
    said = study.platform("sweep", str(study.file), "--executor", "slurm")
    assert "processor-hours" not in said
    assert len(study.submissions()) == 1
