"""What a push of weights costs under Hugging Face's names against the policy's own, by model size.

    python benchmarks/weight_push.py

A push here is what the virtual cluster does: copy the learner's weights, then fill the generator's policy from the
copy. Own names copy and load the state dict; Hugging Face's split the fused matrices first and fuse them again. The two
take turns; medians of the processor time on one thread. Writes `results/weight_push.json`.
"""

import statistics
import time
from collections.abc import Callable

import torch
from record import write_record

from scalerl.model.build import empty_policy
from scalerl.model.policy import Policy
from scalerl.recipe import LlamaModel

SIZES = {
    "smoke": LlamaModel(hidden=32, layers=2, heads=2, mlp=96),
    "laptop": LlamaModel(hidden=64, layers=4, heads=2, mlp=192),
    "50 M": LlamaModel(hidden=768, layers=6, heads=12, mlp=2560),
}
ROUNDS = 31


def main() -> None:
    torch.set_num_threads(1)
    found = {}
    for name, shape in SIZES.items():
        learner, generator = (empty_policy(shape, torch.device("cpu")) for _ in range(2))
        learner.init_weights(torch.Generator().manual_seed(0))
        seconds: dict[str, list[float]] = {names: [] for names in PUSHES}
        for _ in range(ROUNDS):
            for names, push in PUSHES.items():
                seconds[names].append(processor_seconds(push, learner, generator))
        medians = {names: statistics.median(each[1:]) for names, each in seconds.items()}
        found[name] = {
            "parameters": learner.num_parameters(),
            **{f"{names}_ms": 1e3 * median for names, median in medians.items()},
            "ratio": medians["hugging_face"] / medians["own"],
        }
        print(name, found[name])
    write_record("weight_push", {"rounds": ROUNDS - 1, "sizes": found})


def push_own(learner: Policy, generator: Policy) -> None:
    """Under the policy's own names."""
    generator.load_state_dict({name: tensor.clone() for name, tensor in learner.state_dict().items()})


def push_hugging_face(learner: Policy, generator: Policy) -> None:
    """Under the names of the model's file."""
    generator.import_weights({name: tensor.clone() for name, tensor in learner.exported_weights().items()})


PUSHES = {"own": push_own, "hugging_face": push_hugging_face}


def processor_seconds(push: Callable[[Policy, Policy], None], learner: Policy, generator: Policy) -> float:
    """Processor time of one push."""
    start = time.process_time()
    push(learner, generator)
    return time.process_time() - start


if __name__ == "__main__":
    main()
