"""Text from elsewhere in a whole push: MLflow gets all of it, as text that neither page nor terminal obeys."""

import json
import shutil
from dataclasses import replace

from fixtures_home import make_home

from ablations.tracking.ledger import default_tracking_uri, read_ledger
from ablations.tracking.synchroniser import push_sweep

HOSTILE = (
    "\"a\" 'b' <script>c</script> ![d](http://elsewhere.invalid/d.png) `e` $\\frac{ \U0001f3c6 \x1b]0;f\x07 \u202eg"
)
LONG = HOSTILE + "h" * (200 - len(HOSTILE))
SHOWN = LONG.replace("\x1b", "\\x1b").replace("\x07", "\\x07").replace("\u202e", "\\u202e")


def test_every_character_arrives_and_none_acts(tmp_path, empty_store):
    from mlflow import MlflowClient

    sweep = make_home(tmp_path, state="running")
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    home, plan = sweep.home, sweep.plan
    variant = replace(plan.variants[1], name=LONG, overrides={f"loss.{LONG}": LONG, "tasks": [LONG * 50]})
    variants = (plan.variants[0], variant, plan.variants[2])
    replace(plan, doc=LONG, scale=LONG, variants=variants).write(home.plan_file("loo"))
    folder = home.run(variant.runs[0].id)
    folder.write_status(replace(folder.read_status(), code_versions=(LONG,)))
    recipe = {"tasks": [{"type": "jsonl", "name": LONG}], LONG: LONG}
    (folder.path / "recipe.json").write_text(json.dumps({"seed": 0, "recipe": recipe}))
    rows = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    folder.metrics.write_text("".join(json.dumps(row | {LONG: 1.0}) + "\n" for row in rows))

    sweep = sweep.reread()
    report = push_sweep(sweep)
    assert (report.rows_left, report.reason) == (0, "")
    assert read_ledger(sweep).is_current(sweep, None)
    client = MlflowClient(default_tracking_uri(home))
    experiment = client.get_experiment_by_name("loo")
    assert experiment is not None
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert runs.keys() >= {SHOWN, f"{SHOWN} seed 0", "scalerl", "loo-curriculum"}
    for run in (runs[SHOWN], runs[f"{SHOWN} seed 0"]):
        assert (run.data.tags["variant"], run.data.tags["scale"], run.data.tags["code"]) == (SHOWN, SHOWN, SHOWN)
        assert SHOWN in run.data.params.values()
        assert [one.dataset.name for one in run.inputs.dataset_inputs] == [SHOWN]
        texts = [
            *run.data.tags.values(),
            *run.data.params.values(),
            *run.data.metrics,
            experiment.tags["mlflow.note.content"],
        ]
        assert not {"\x1b", "\x07", "\u202e"} & set("".join(texts))
    assert list(runs[f"{SHOWN} seed 0"].data.metrics.values()).count(1.0) >= 2  # the column, of both kinds of rows
