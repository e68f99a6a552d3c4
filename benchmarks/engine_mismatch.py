"""How far the log-probs of a generator lie from the learner's at equal weights: vLLM's, and those of the built-in
generator that sums its head in parts.

    python benchmarks/engine_mismatch.py            # needs `make engines`; a minute

All begin with the warm start of scale `bench_november`, and generate three batches with the weights that score them. A
row has the distribution of |log pi_gen - log pi_train| over the policy's own tokens, in nats. Writes
`results/engine_mismatch.json`.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from record import write_record

from ablations.files.lookup import files_of
from scalerl.cluster.cluster import Cluster
from scalerl.recipe import ResolvedRecipe
from scalerl.run.assemble import assemble
from scalerl.schedules.ppo_off_policy import generate

BATCHES = 3
PERCENTILES = (50, 90, 99)


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for logits in ("fp32", "bf16"):
            for parts in (1, 2, 4, 8):
                generator = {"type": "torch", "head_parts": parts}
                rows.append(measured(Path(folder), logits=logits, parameters="fp32", generator=generator))
            for parameters in ("fp32", "mixed"):
                rows.append(measured(Path(folder), logits=logits, parameters=parameters, generator={"type": "vllm"}))
    write_record("engine_mismatch", {"rows": rows})


def measured(folder: Path, **settings: Any) -> dict[str, Any]:
    """One row: what was set, and the distribution."""
    scale = yaml.safe_load(files_of("scale")["bench_november"].read_text())
    off_policy = {"off_policy": {"type": "ppo_off_policy", "k": 1}, "curriculum": {"type": "uniform"}}
    scale.pop("resources")
    recipe = ResolvedRecipe.model_validate(scale | off_policy | settings)
    cluster = assemble(recipe, 0, folder).cluster
    try:
        gaps = np.concatenate([gaps_of_batch(cluster) for _ in range(BATCHES)])
    finally:
        cluster.close()
    row = settings | {"tokens": len(gaps), "mean": float(gaps.mean()), "largest": float(gaps.max())}
    row |= {f"p{percentile}": float(np.percentile(gaps, percentile)) for percentile in PERCENTILES}
    print(row, flush=True)
    return row


@torch.inference_mode()
def gaps_of_batch(cluster: Cluster) -> np.ndarray:
    """Of every token of a new batch that the policy chose itself."""
    generate(cluster)
    policy = cluster.learner.policy
    assert policy is not None
    gaps = []
    for group in cluster.pending.pop():
        for rollout in group.rollouts:
            tokens = torch.tensor([[*rollout.prompt.tokens, *rollout.tokens.tolist()]])
            scored = policy.score(tokens, 1.0).logprobs_BT[0, len(rollout.prompt.tokens) :].numpy()
            gaps.append(np.abs(scored - rollout.logprobs)[~rollout.forced])
    return np.concatenate(gaps)


if __name__ == "__main__":
    main()
