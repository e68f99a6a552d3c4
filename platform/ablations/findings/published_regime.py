"""The regime of large runs in fourteen numbers: the paper's (arXiv 2510.13786) where it publishes one, else a range of
public runs.

Ranges are of dense models of 1 to 32 billion parameters unless the source says otherwise. A number that is derived says
from what.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PublishedNumber:
    """A number of large runs: `PublishedNumber(name="reach", title="C_end / C_mid", low=6.3, high=6.3, ...)`."""

    name: str
    title: str
    low: float
    high: float
    of_paper: bool
    """True for a number of the paper itself, given or derived; False for a range of public runs."""
    source: str


LARGE_RUNS = (
    PublishedNumber(
        name="passes",
        title="times each prompt is drawn over a run",
        low=9.8,
        high=10.7,
        of_paper=True,
        source="2510.13786 A.6: an epoch is about 1,500 GPU-hours or 1,089 steps of 48 prompts, a run 16,000 hours",
    ),
    PublishedNumber(
        name="retired",
        title="share of prompts retired at the end",
        low=0.25,
        high=0.60,
        of_paper=False,
        source="all-right groups: .40 to .62 late in DAPO (2503.14476 figure 3b), .18 to .28 in MiMo",
    ),
    PublishedNumber(
        name="staleness",
        title="age of a trained token's weights, in steps",
        low=1.0,
        high=4.0,
        of_paper=False,
        source="1.2 to 2.2 in MiMo's public log; 3.5 is the mean of PPO-off-policy-8; 2510.13786 §3.1 bounds it by 8",
    ),
    PublishedNumber(
        name="log_ratio_lag_0",
        title="absolute log ratio of trainer and generator at lag 0, in nats",
        low=0.006,
        high=0.03,
        of_paper=False,
        source="BF16 bodies: .006 (open-instruct, 4B), .011 (vllm-project/vime #64), .025 to .029 (MiMo)",
    ),
    PublishedNumber(
        name="log_ratio",
        title="absolute log ratio of all trained tokens, in nats",
        low=0.015,
        high=0.08,
        of_paper=False,
        source="MiMo's public log by lag: .044 at 1, .065 at 2, .078 at 3, at a learning rate of 3e-6; less at 5e-7",
    ),
    PublishedNumber(
        name="update",
        title="update of one step over the weights, |dw| / |w|",
        low=4e-6,
        high=5e-5,
        of_paper=False,
        source="derived: AdamW at 5e-7 moves a weight by .23 to 1 of it, rms of weights .01 to .03; about 1 % of BF16 "
        "weights change in a step (2602.11456)",
    ),
    PublishedNumber(
        name="entropy_start",
        title="entropy of a token at the start, in nats",
        low=0.4,
        high=1.3,
        of_paper=False,
        source=".4 (MiMo), .72 (DAPO figure 7c), 1.0 to 1.6 (JustRL, 2512.16649)",
    ),
    PublishedNumber(
        name="entropy_end",
        title="entropy of a token at the end, in nats",
        low=0.05,
        high=0.5,
        of_paper=False,
        source="held at .2 (Skywork-OR1, 2505.22312), .43 to .47 (MiMo), .53 (DAPO); under .1 without a remedy",
    ),
    PublishedNumber(
        name="equal_rewards",
        title="share of groups with equal rewards",
        low=0.25,
        high=0.60,
        of_paper=False,
        source="2510.13786 A.16: less than .40 at 80 prompts; .28 to .41 (MiMo), up to .62 all right alone (DAPO)",
    ),
    PublishedNumber(
        name="cut",
        title="share of answers cut at their limit",
        low=0.01,
        high=0.05,
        of_paper=True,
        source="2510.13786 A.15: below .05 in 90 % of training; 10 to 15 % foretell a collapse",
    ),
    PublishedNumber(
        name="gain",
        title="held-out pass rate gained over a run",
        low=0.2,
        high=0.4,
        of_paper=False,
        source="2510.13786 table 1: .60 at 16,000 GPU-hours; its start is not in the text, elsewhere it is .20 to .57 "
        "(JustRL, MiMo)",
    ),
    PublishedNumber(
        name="reach",
        title="compute over that of half of the gain, C_end / C_mid",
        low=6.3,
        high=6.3,
        of_paper=True,
        source="2510.13786 table 1: 16,000 / 2,542",
    ),
    PublishedNumber(
        name="length",
        title="mean answer over its token limit",
        low=0.2,
        high=0.55,
        of_paper=False,
        source=".12 to .25 (PipelineRL, 2509.19128), .22 (DAPO figure 7a), .27 to .53 (JustRL)",
    ),
    PublishedNumber(
        name="run_to_run_sd",
        title="standard deviation of runs of one recipe",
        low=0.0075,
        high=0.0175,
        of_paper=True,
        source="2510.13786 A.5: A of three runs lies within .015",
    ),
)
