"""What a push of weights costs, by model size: under Hugging Face's names against the policy's own; through each store.

    python benchmarks/weight_push.py

A push here is what the virtual cluster does: copy the learner's weights, then fill the generator's policy from the
copy. Own names copy and load the state dict; Hugging Face's split the fused matrices first and fuse them again. The two
take turns; medians of the processor time on one thread.

Through a store the learner publishes, and a generator fetches, which checks every tensor; these are wall-clock times,
since files are written, and `crc32_ms` is the part that checksums take on each side.

To other nodes, which are agents on this machine, a store of the same weights publishes, brings them to every node and
has a process on each fetch them; the stores take turns. `carry_s` is from the end of publishing to the last node.
Writes `results/weight_push.json`.

    python benchmarks/weight_push.py nodes      only this last part; writes results/weight_push_nodes.json
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from push_to_nodes import ROUNDS_TO_NODES, to_other_nodes
from record import write_record

from scalerl.model.build import empty_policy
from scalerl.model.policy import Policy
from scalerl.recipe import LlamaModel
from scalerl.weights.folder import FolderStore
from scalerl.weights.manifest import checksum
from scalerl.weights.shared_memory import SharedMemoryStore
from scalerl.weights.store import WeightStore

SIZES = {
    "smoke": LlamaModel(hidden=32, layers=2, heads=2, mlp=96),
    "laptop": LlamaModel(hidden=64, layers=4, heads=2, mlp=192),
    "50 M": LlamaModel(hidden=768, layers=6, heads=12, mlp=2560),
}
ROUNDS = 31
LARGE = LlamaModel(hidden=768, layers=16, heads=12, mlp=2560)
"""About 130 M parameters, for other nodes."""


def main() -> None:
    torch.set_num_threads(1)
    large = empty_policy(LARGE, torch.device("cpu"))
    large.init_weights(torch.Generator().manual_seed(0))
    weights = {name: tensor.contiguous() for name, tensor in large.exported_weights().items()}
    to_nodes = {f"{nodes} nodes": to_other_nodes(weights, nodes) for nodes in (2, 3)}
    if sys.argv[1:] == ["nodes"]:
        write_record("weight_push_nodes", {"rounds": ROUNDS_TO_NODES - 2, "to_other_nodes": to_nodes})
        return
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
            **through_stores(learner),
        }
        print(name, found[name])
    record = {"rounds": ROUNDS - 1, "sizes": found, "rounds_to_nodes": ROUNDS_TO_NODES - 2, "to_other_nodes": to_nodes}
    write_record("weight_push", record)


def push_own(learner: Policy, generator: Policy) -> None:
    """Under the policy's own names."""
    generator.load_state_dict({name: tensor.clone() for name, tensor in learner.state_dict().items()})


def push_hugging_face(learner: Policy, generator: Policy) -> None:
    """Under the names of the model's file."""
    generator.import_weights({name: tensor.clone() for name, tensor in learner.exported_weights().items()})


def through_stores(learner: Policy) -> dict[str, object]:
    """Bytes, and for each store the median milliseconds of publishing and of fetching."""
    weights = learner.exported_weights()
    contiguous = [tensor.contiguous() for tensor in weights.values()]
    found: dict[str, object] = {
        "bytes": sum(tensor.numel() * tensor.element_size() for tensor in contiguous),
        "crc32_ms": 1e3 * median_seconds(lambda _: [checksum(tensor) for tensor in contiguous]),
    }
    with tempfile.TemporaryDirectory() as folder:
        stores: dict[str, WeightStore] = {
            "folder": FolderStore(Path(folder) / "weights", weights),
            "shared_memory": SharedMemoryStore(weights),
        }
        for name, store in stores.items():
            found[name] = {
                "publish_ms": 1e3
                * median_seconds(lambda n, store=store: store.publish(n, n, learner.exported_weights())),
                "fetch_ms": 1e3 * median_seconds(lambda _, store=store: store.fetch(ROUNDS, ROUNDS)),
            }
            store.close()
    return found


def median_seconds(call: Callable[[int], object]) -> float:
    """Wall-clock time of one call, which is told its number; the first of ROUNDS is not counted."""
    seconds = []
    for number in range(1, ROUNDS + 1):
        start = time.perf_counter()
        call(number)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


PUSHES = {"own": push_own, "hugging_face": push_hugging_face}


def processor_seconds(push: Callable[[Policy, Policy], None], learner: Policy, generator: Policy) -> float:
    """Processor time of one push."""
    start = time.process_time()
    push(learner, generator)
    return time.process_time() - start


if __name__ == "__main__":
    main()
