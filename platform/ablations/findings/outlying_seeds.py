"""Outlying seeds, as findings about their runs.

"scalerl-s2 has been .107 below its siblings since step 80": the comparison's own test finds the run, and the log the
step.
"""

from ablations.answers.outliers import Unlike
from ablations.diagnosis.diagnose import Diagnosis
from ablations.diagnosis.history import History
from ablations.findings.results import Results

UNLIKE = "unlike its siblings"


def unlike_seeds(results: Results) -> dict[str, Unlike]:
    """The runs that lie far from the other seeds of their variant, by name."""
    unlike = results.comparison.unlike if results.comparison else ()
    return {one.run: one for one in unlike if one.run}


def unlike_finding(one: Unlike, history: History) -> Diagnosis:
    """The finding about the run of this history."""
    after = () if one.since is None else (row for row in history.steps if row["compute_gpu_hours"] >= one.since)
    since = next((int(row["step"]) for row in after), None)
    side = "below" if one.apart < 0 else "above"
    return Diagnosis(
        rule=UNLIKE,
        text=f"its level lies {abs(one.apart):.3f} {side} that of the other seeds of {one.variant}, which lie "
        f"{one.ratio:.1f} times as far apart as seeds of other variants",
        since_step=since,
        how_sure="likely",
        cost_share=None if since is None else history.share_since(since),
        change="no setting, since its siblings have the same; compare its rollouts with theirs from there on, and "
        "train more seeds to see how often it happens",
    )
