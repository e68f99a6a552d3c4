"""Loads what runs of our own trainer need, without running any of it: for a process that forks runs."""

import numpy as np
import torch

import scalerl.model.kernels.sampling
import scalerl.model.kernels.step
import scalerl.model.kernels.train
import scalerl.run.loop
import scalerl.tasks.k_smallest  # noqa: F401
from scalerl.model.kernels.compiled import load_kept


def preload() -> None:
    """Load the kept machine code of the kernels; the imports of this file have loaded the rest."""
    load_kept()


def seed_anew() -> None:
    """Seed the global generators in a fork, which has copies of those of its parent; Python does so with its own."""
    np.random.seed()
    torch.default_generator.seed()
