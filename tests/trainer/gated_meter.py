"""An evaluator that decodes nothing before a file is there, for tests of what happens while evaluations are pending."""

import time
from pathlib import Path

from trainer.attempts import attempt

from scalerl.evaluation.meter import Meter
from scalerl.generator.generator import Generator
from scalerl.generator.request import Finished, StepWork
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.recipe import ResolvedRecipe
from scalerl.run import assemble
from scalerl.run.meter import make_meter

GATE = "gate"


def gated_meter(recipe: ResolvedRecipe, seed: int, start: Path) -> tuple[Generator, Meter]:
    """As of a run; the gate lies beside the folder of warm starts."""
    generator, meter = make_meter(recipe, seed, start)
    gate = start.parent.parent / GATE
    assert isinstance(generator, TorchGenerator)
    step = generator.step

    def gated_step() -> tuple[list[Finished], StepWork]:
        if gate.exists():
            return step()
        time.sleep(0.01)
        return [], StepWork()

    generator.step = gated_step
    return generator, meter


def gated_attempt(path: Path, budget: float, warm_starts: Path) -> None:
    """An attempt at the run whose evaluator is gated."""
    assemble.make_meter = gated_meter
    attempt(path, budget, warm_starts, None)
