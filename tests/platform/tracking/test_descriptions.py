"""What MLflow is told of variants and runs, in names that it accepts and in text that does nothing on its page."""

from dataclasses import replace

import pytest
from fixtures_home import make_plan

from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.tracking.descriptions import (
    as_markdown,
    datasets_of,
    description_of,
    metric_name,
)


def test_a_run_is_told_by_its_tags_and_differs_by_its_params():
    plan = make_plan(seeds=(0, 1))
    variant = plan.variants[1]
    described = description_of(plan, variant, ["b", "a", "b"], {}, variant.runs[1])
    assert described.tags == {
        "kind": "seed",
        "sweep": "loo",
        "scale": "laptop",
        "reference": "scalerl",
        "variant": "loo-loss",
        "axis": "loss",
        "changes": "loss.type = dapo",
        "seed": "1",
        "code": "a, b",
    }
    assert described.params == {"loss.type": "dapo"}
    parent = description_of(plan, variant, [], {})
    assert (parent.tags["kind"], parent.tags["seed"]) == ("variant", "0, 1")
    assert parent.tags["code"] == "not said"
    assert parent.fingerprint != described.fingerprint


def test_the_reference_varies_nothing_and_has_its_own_values_of_what_others_vary():
    plan = make_plan()
    recipe = {"loss": {"type": "cispo", "max_ratio": 5.0}, "curriculum": {"type": "no_positive"}, "logits": "fp32"}
    described = description_of(plan, plan.variants[0], ["a"], recipe)
    assert (described.tags["axis"], described.tags["changes"]) == ("none", "nothing")
    assert described.params == {"loss.type": "cispo", "curriculum.type": "no_positive"}
    assert description_of(plan, plan.variants[0], ["a"], {}).params == {}


def test_several_changes_are_several_axes_and_params():
    overrides = {"curriculum.type": "uniform", "batch.prompts": 32, "tasks": [{"type": "countdown"}]}
    variant = PlannedVariant(name="both", overrides=overrides, runs=(PlannedRun(seed=0, id="0" * 12),))
    described = description_of(make_plan(), variant, [], {})
    assert described.tags["axis"] == "batch.prompts, curriculum, tasks"
    expected = {"curriculum.type": "uniform", "batch.prompts": "32", "tasks": '[{"type": "countdown"}]'}
    assert described.params == expected


HOSTILE = ['train/<img src="x">', "eval/../../etc", "downstream/aime 🏆/pass_at_1", "a//b", "/a", "x\x1b[2J", "n" * 300]


@pytest.mark.parametrize("name", HOSTILE)
def test_mlflow_accepts_every_name_of_a_metric(name):
    from mlflow.utils.validation import _validate_metric

    _validate_metric(metric_name(name), 1.0, 0, 0)


def test_names_that_mlflow_takes_stay_and_others_stay_apart():
    assert metric_name("train/staleness_mean") == "train/staleness_mean"
    assert metric_name("downstream/aime: 24/pass_at_1") == "downstream/aime: 24/pass_at_1"
    assert len({metric_name(name) for name in ("a<b", "a>b", "a_b", "n" * 300, "n" * 301)}) == 5


def test_a_doc_stays_text_on_mlflows_page():
    doc = "Which <b>loss</b>?\n![x](http://elsewhere/x.png) & *more*\x1b[2J"
    assert as_markdown(doc) == (
        "Which &lt;b&gt;loss&lt;/b&gt;?\n\\!\\[x\\]\\(http://elsewhere/x.png\\) &amp; \\*more\\*\\\\x1b\\[2J"
    )


def test_text_of_others_becomes_visible_in_every_tag_and_param():
    text = "a \x1b]0;f\x07 \u202eg"
    variant = PlannedVariant(name=text, overrides={text: [text]}, runs=(PlannedRun(seed=0, id="0" * 12),))
    described = description_of(replace(make_plan(), scale=text), variant, [text], {})
    assert described.name == described.tags["scale"] == described.tags["code"] == "a \\x1b]0;f\\x07 \\u202eg"
    (dataset,) = datasets_of({"tasks": [{"name": text * 100}]})
    texts = "".join([*described.tags.values(), *described.params, *described.params.values(), dataset.name])
    assert not {"\x1b", "\x07", "\u202e"} & set(texts)
    assert len(dataset.name) == 500  # of MLflow


def test_tasks_are_data_sets_with_what_they_are_for():
    task = {"type": "k_smallest", "name": None, "symbols": 12}
    aime = {"type": "jsonl", "name": "aime", "path": "aime.jsonl"}
    found = datasets_of({"tasks": [task], "evaluation": {"downstream": [aime]}})
    assert [(one.name, one.context) for one in found] == [("k_smallest", "training"), ("aime", "evaluation")]
    assert found[0].digest != datasets_of({"tasks": [task | {"symbols": 13}]})[0].digest
    assert len(found[0].digest) <= 36  # of MLflow
