"""Claims in a sweep file: what is refused, and every study of the paper at every scale that it may have."""

import re
from pathlib import Path

import pytest
from places import REPOSITORY

from ablations.errors import FileError
from ablations.files.lookup import files_of
from ablations.study.expand import expand
from ablations.study.sweep import load_sweep

STUDIES = sorted((REPOSITORY / "sweeps/paper").glob("*.yaml"))
SWEEP = "name: s\nreference: scalerl\nscale: smoke\nvariants: {bf16: {logits: bf16}}\nclaims:\n"


def written(tmp_path, claims: str, more: str = "") -> Path:
    path = tmp_path / "s.yaml"
    path.write_text(SWEEP + claims + more)
    return path


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("{variant: bf61, of: ceiling, says: up, source: x}", "unknown variant 'bf61'; did you mean 'bf16'?"),
        ("{variant: scalerl, of: ceiling, says: up, source: x}", "'scalerl' is compared with itself"),
        ("{variant: bf16, of: compute, says: up, by: 0.9, source: x}", "for compute, write a ratio above 1"),
        (
            "{variant: bf16, of: level, says: up, by: 1.2, source: x}",
            "a difference in pass rate must be between 0 and 1",
        ),
        ("{variant: bf16, of: ceiling, says: fades, by: 0.1, source: x}", "by: no effect with `says: fades`"),
    ],
)
def test_a_claim_that_means_nothing_is_refused_with_its_line(tmp_path, claim, message):
    with pytest.raises(FileError, match=re.escape(message)) as refused:
        expand(written(tmp_path, f"  - {claim}\n"))
    assert "s.yaml:6" in str(refused.value)


def test_a_study_of_one_scale_refuses_another(tmp_path):
    path = written(tmp_path, "  - {variant: bf16, of: level, says: up, source: x}\n", "fixed_scale: true\n")
    assert len(expand(path, scale="smoke").variants) == 2
    with pytest.raises(FileError, match="its variants are written for scale smoke"):
        expand(path, scale="laptop")


def test_every_study_of_the_paper_is_found_by_name_and_claims_something():
    assert len(STUDIES) >= 28
    for path in STUDIES:
        sweep = load_sweep(path)
        assert (files_of("study")[path.stem], sweep.name) == (path, path.stem)
        assert sweep.doc.endswith("?")
        assert sweep.claims


@pytest.mark.parametrize("scale", ["smoke", "bench", "8b"])
def test_every_study_of_the_paper_can_be_expanded_or_says_why_not(scale):
    for path in STUDIES:
        is_fixed = (sweep := load_sweep(path)).fixed_scale and sweep.scale != scale
        refused = "fixed_scale" if is_fixed else NOT_AT_A_CLUSTER.get(path.stem) if scale == "8b" else None
        if refused is None:
            study = expand(path, scale=scale, with_files=False)
            assert len(study.runs) == len(study.variants) * len(study.sweep.seeds)
        else:
            with pytest.raises(FileError, match=refused):
                expand(path, scale=scale, with_files=False)


NOT_AT_A_CLUSTER = {
    "size": "unknown key 'hidden'",
    "transfer": "unknown key 'hidden'",
    "critic": "learner 'deepspeed' keeps weights and moments in FP32",
    "precision": "unknown key 'products'",
}
"""Models there are pretrained, so that no setting changes their width, DeepSpeed keeps FP32 weights, and vLLM has no
setting for the factors of its products."""
