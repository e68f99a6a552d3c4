import pytest
from places import REPOSITORY

from ablations.errors import FileError
from ablations.running.make_plan import make_plan
from ablations.study.expand import Study, expand
from scalerl.recipe import Uniform
from scalerl.recipe.axes import Dapo, Interruption, LengthPenalty, Pipeline, PpoOffPolicy

TINY = str(REPOSITORY / "tests/data/recipes/scales/tiny.yaml")
LOO = REPOSITORY / "sweeps/loo.yaml"


@pytest.fixture
def expanded(tmp_path):
    """Writes the body of a sweep of `scalerl` on the tiny scale and expands it."""

    def expand_body(body: str, **options) -> Study:
        path = tmp_path / "test.yaml"
        path.write_text(f"name: test\nreference: scalerl\nscale: {TINY}\n{body}")
        return expand(path, **options)

    return expand_body


def names(study: Study) -> list[str]:
    return [variant.name for variant in study.variants]


def test_leave_one_out_reverts_one_axis_at_a_time():
    study = expand(LOO, scale=TINY)
    reference = study.reference.recipe
    reverted = {
        "off_policy": PpoOffPolicy(k=8),
        "loss": Dapo(clip_low=0.2, clip_high=0.26),
        "aggregation": "sample",
        "advantage": "prompt",
        "logits": "bf16",
        "zero_variance": "keep",
        "curriculum": Uniform(),
        "length_control": LengthPenalty(cache=1 / 7),
    }
    assert (reference.off_policy, reference.length_control) == (Pipeline(k=8), Interruption())
    assert names(study) == ["scalerl", *(f"loo-{axis}" for axis in reverted)]
    for variant, (axis, value) in zip(study.variants[1:], reverted.items(), strict=True):
        assert variant.recipe == reference.model_copy(update={axis: value})


def test_a_variant_of_a_grid_knows_its_value_on_each_axis_and_the_reference_its_own(expanded):
    study = expanded("grid:\n  batch.prompts: [8, 16]\n  logits: [fp32, bf16]\n")
    assert names(study) == ["scalerl", "8,bf16", "16,fp32", "16,bf16"]
    assert [variant.axes for variant in study.variants] == [
        {"batch.prompts": prompts, "logits": logits} for prompts in ("8", "16") for logits in ("fp32", "bf16")
    ]
    apart = expanded("grid:\n  batch.prompts: [4, 16]\n  logits: [fp32, bf16]\n")
    assert apart.reference.axes == {"logits": "fp32"}


def test_a_change_never_lists_a_value_that_the_reference_has(expanded):
    study = expanded("grid:\n  batch.prompts: [8, 16]\n  logits: [fp32, bf16]\n")
    assert [variant.overrides for variant in study.variants] == [
        {}, {"logits": "bf16"}, {"batch.prompts": 16}, {"batch.prompts": 16, "logits": "bf16"},
    ]  # fmt: skip
    blocks = expanded("variants:\n  mine: {loss: {type: cispo}, curriculum: {type: uniform}, logits: fp32}\n")
    assert blocks.variants[1].overrides == {"curriculum.type": "uniform"}


def test_claims_and_published_values_of_a_grid_may_use_the_whole_name(expanded):
    body = (
        "grid:\n  batch.prompts: [8, 16]\n  logits: [fp32, bf16]\n"
        "published: {'batch.prompts=16,logits=bf16': {A: 0.6, B: 1.5, C_mid: 300}}\n"
        "claims:\n  - {variant: '16,fp32', against: 'batch.prompts=8,logits=bf16', of: level, says: up, "
        "source: here}\n"
    )
    plan = make_plan(expanded(body), "grid", budget=None, command="")
    assert [*plan.published] == ["16,bf16"]
    assert [(claim["variant"], claim["against"]) for claim in plan.claims] == [("16,fp32", "8,bf16")]


def test_exclude_leaves_out_every_combination_it_matches_and_forms_in_one_file_add_up(expanded):
    study = expanded(
        "leave_one_out: {revert_to: baseline, axes: {loss: }}\n"
        "zip:\n  batch.prompts: [4, 16]\n  batch.generations: [8, 2]\n"
        "grid:\n  cluster.slots: [2, 3]\n  logits: [fp32, bf16]\n  off_policy.k: [4, 8]\n"
        "exclude:\n  - {cluster.slots: 3, logits: bf16}\n  - {off_policy.k: 4}\n"
        "variants: {mine: {loss.max_ratio: 4, batch.prompts: 16}}\n"
    )
    assert names(study) == ["scalerl", "loo-loss", "4,8", "16,2", "2,fp32,8", "2,bf16,8", "3,fp32,8", "mine"]
    assert [(v.recipe.batch.prompts, v.recipe.batch.generations) for v in study.variants[2:4]] == [(4, 8), (16, 2)]


def test_a_setting_of_the_command_line_holds_for_every_variant_before_its_own(expanded):
    body = "axes:\n  size:\n    big: {batch.prompts: {times: 2}}\n"
    study = expanded(body, sets=["batch.prompts=5", "loss={type: grpo}"])
    assert [variant.recipe.batch.prompts for variant in study.variants] == [5, 10]
    assert [variant.recipe.loss.type for variant in study.variants] == ["grpo", "grpo"]
    assert study.sets == ("batch.prompts=5", "loss={type: grpo}")


def test_a_scale_on_the_command_line_replaces_the_sweeps(expanded, tmp_path):
    (tmp_path / "wide.yaml").write_text("batch: {prompts: 100}\n")
    study = expanded("axes:\n  size:\n    big: {batch.prompts: {times: 2}}\n", scale="wide.yaml")
    assert study.scale == "wide"
    assert [variant.recipe.batch.prompts for variant in study.variants] == [100, 200]
    with pytest.raises(FileError, match=r"--scale tinny\.yaml: no file tinny\.yaml"):
        expanded("axes: {logits: [bf16]}\n", scale="tinny.yaml")


def test_the_problems_of_all_variants_are_reported_together(expanded):
    with pytest.raises(FileError) as caught:
        expanded("variants:\n  a: {batch.prompts: 0}\n  b: {logits: fp16}\n  c: {logits: bf16}\n")
    assert [problem.place.line for problem in caught.value.problems] == [5, 6]


BASE = "base: {length_control.type: none, batch: {prompts: {times: 2}}}\n"


def test_base_changes_the_reference_and_every_variant(expanded):
    study = expanded(BASE + "variants:\n  dapo: {loss.type: dapo}\n  penalty: {length_control.type: penalty}\n")
    reference, dapo, penalty = (variant.recipe for variant in study.variants)
    assert (reference.length_control.type, reference.batch.prompts) == ("none", 16)
    assert dapo == reference.model_copy(update={"loss": Dapo()})
    assert (penalty.length_control, penalty.batch.prompts) == (LengthPenalty(), 16)
    assert study.reference.overrides == {}


def test_a_setting_of_the_command_line_replaces_that_of_base(expanded):
    study = expanded(BASE + "axes: {loss.type: [dapo]}\n", sets=["length_control.type=interruption"])
    assert (study.reference.recipe.length_control, study.reference.recipe.batch.prompts) == (Interruption(), 16)
