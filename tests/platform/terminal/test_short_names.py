"""Variants of a grid by their values."""

from ablations.terminal.short_names import axes_in, legend, meant, short_names, shown_names

GRID = [
    f"loss.type={loss},batch.prompts={prompts},sampling.max_tokens={length}"
    for loss in ("dapo", "grpo")
    for prompts in (16, 32)
    for length in (2048, 1e-05)
]


def test_a_variant_of_a_grid_is_called_by_its_values_and_others_by_their_names():
    names = short_names(["scalerl", "loo-loss", "batch=small", *GRID])
    assert [names[name] for name in GRID[:3]] == ["dapo,16,2048", "dapo,16,1e-05", "dapo,32,2048"]
    assert [names[name] for name in ("scalerl", "loo-loss", "batch=small")] == ["scalerl", "loo-loss", "batch=small"]
    assert len(set(names.values())) == len(names) == 11


def test_names_that_would_clash_stay_whole():
    clashing = ["batch=small,rate=low", "length=small,rate=low", "batch=large,rate=low"]
    assert [*short_names(clashing).values()] == ["batch=small,rate=low", "length=small,rate=low", "large,low"]


def test_a_study_shortens_only_where_a_name_is_long():
    assert shown_names(["batch=small,rate=low"]) == {"batch=small,rate=low": "batch=small,rate=low"}
    assert shown_names(["scalerl", *GRID])[GRID[0]] == "dapo,16,2048"
    long = "a-name-of-its-own-that-is-very-long"
    assert shown_names([long, "batch=small,rate=low"]) == {long: long, "batch=small,rate=low": "batch=small,rate=low"}


def test_the_legend_names_the_axes_of_the_values():
    axes = {"scalerl": {}} | {short: dict(axes_in(name)) for name, short in short_names(GRID).items()}
    assert legend(axes) == ["dapo,16,2048 and 7 more: values of loss.type, batch.prompts, sampling.max_tokens"]
    assert legend({"scalerl": {"batch": "large"}, "batch=small": {"batch": "small"}}) == []


def test_both_names_can_be_typed():
    assert meant("dapo,32,2048", GRID) == "loss.type=dapo,batch.prompts=32,sampling.max_tokens=2048"
    assert meant(GRID[0], GRID) == GRID[0]
    assert meant(GRID[0], ["scalerl", "dapo,16,2048"]) == "dapo,16,2048"
    assert meant("dapo,64", GRID) == "dapo,64"
    assert meant("small,low", ["batch=small,rate=low"]) == "batch=small,rate=low"
