"""The page of every key of a sweep file: its example is a sweep file."""

import re

from ablations.study.expand import expand
from ablations.study.reference import sweep_reference


def test_its_example_is_a_study_and_so_is_each_form_with_it(tmp_path):
    lines = re.findall(r"^    (\S.*|  \S.*)$", sweep_reference().partition("## Changes of a variant")[0], re.MULTILINE)
    example = "\n".join(lines) + "\n"
    file = tmp_path / "batches.yaml"
    file.write_text(example)
    names = [variant.name for variant in expand(file).variants]
    assert names == ["scalerl", "batch.prompts=24", "batch.prompts=96"]
    shown = dict(re.findall(r"^\| `(axes|grid|leave_one_out|variants): ([^`]*)` \|", sweep_reference(), re.MULTILINE))
    bare = re.sub(r"axes:\n.*\n", "", example)
    expected = {"axes": "batch=small", "grid": "dapo,24", "variants": "warm"}
    for form, written in shown.items():
        file.write_text(f"{bare}{form}: {written}\n")
        assert expected.get(form, "loo-loss") in [variant.name for variant in expand(file).variants]
