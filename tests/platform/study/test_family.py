"""Scales that a sweep file makes from one."""

import pytest
from places import REPOSITORY

from ablations.errors import FileError
from ablations.files.source import read_yaml
from ablations.study.expand import expand
from ablations.study.family import ScaleFamily
from ablations.study.resolve import load_resolved, planned_scale

BENCH = REPOSITORY / "recipes/scales/bench_november.yaml"


@pytest.fixture
def study(tmp_path):
    """Writes a sweep file with a family and expands it at one of its scales."""

    def made(family: str, scale: str):
        path = tmp_path / "made.yaml"
        path.write_text(f"name: made\nreference: scalerl\nscales: {family}\naxes:\n  loss.type: [dapo]\n")
        return expand(path, scale=scale)

    return made


@pytest.mark.parametrize(
    ("scale", "written"), [("bench_november", "bench_november"), ("bench_november-size16", "bench_16x")]
)
def test_a_family_by_model_size_makes_the_runs_of_the_scales_that_were_written_by_hand(study, scale, written):
    family = study("{of: bench_november, model_size: [1, 4, 16]}", scale)
    assert family.scale == scale
    assert family.reference.recipe.identity(0) == load_resolved("scalerl", written).identity(0)


def test_lists_go_together_and_name_what_differs(study):
    family = "{of: bench_november, model_size: [0.25, 1, 2.25], length: [1, 1, 2], batch: [1, 1, 2]}"
    names = ScaleFamily(of="bench_november", model_size=(0.25, 1, 2.25), length=(1, 1, 2), batch=(1, 1, 2)).names
    assert names == ("bench_november-size0.25", "bench_november", "bench_november-size2.25-length2-batch2")
    # Of it: 2 heads of 32, mlp 128, 8 + 11 tokens, 16 prompts, a unit of 200. Three heads are 2.25 times as large.
    assert study(family, names[2]).made == {
        "model.heads": 3, "model.hidden": 96, "model.mlp": 192,
        "generation.thinking": 16, "generation.answer": 22,
        "batch.prompts": 32,
        "compute_unit_gpu_hours": 1800.0,
    }  # fmt: skip
    assert study(family, names[0]).made == {
        "model.heads": 1, "model.hidden": 32, "model.mlp": 64, "compute_unit_gpu_hours": 50.0,
    }  # fmt: skip
    assert study(family, "bench_november").made == {}
    recipe = study(family, names[2]).reference.recipe
    assert (recipe.model.hidden, recipe.generation.max_tokens, recipe.batch.prompts) == (96, 16 + 1 + 22, 32)


def test_a_model_that_does_not_think_has_longer_answers_alone_and_no_other_size():
    smollm = planned_scale(REPOSITORY / "recipes/scales/smollm.yaml")
    source = read_yaml(BENCH)
    longer = ScaleFamily(of="smollm", length=(1, 2)).overrides("smollm-length2", smollm, source)
    assert [(one.path, one.value) for one in longer] == [
        ("generation.answer", 48),
        ("compute_unit_gpu_hours", pytest.approx(0.0002)),
    ]
    with pytest.raises(FileError, match="the model is pretrained, and has one size"):
        ScaleFamily(of="smollm", model_size=(1, 4)).overrides("smollm-size4", smollm, source)
