"""Tries one user function on made-up values; runs as a separate program, because the function may never end.

    python -P -m scalerl.checks.own_trial < request.json

The request is `{"setting": "loss", "own": {...}}` with the settings of `scalerl.recipe.own.Own`, or of the task whose
environment it is. The answer, the last line of the output, is `{"found": "...", "remedy": "..."}`; the remedy is empty
if nothing is wrong.
"""

import ast
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from math import isfinite
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from scalerl.checks.own_curriculum_trial import trial_of_curriculum
from scalerl.checks.own_environment_trial import trial_of_environment
from scalerl.checks.own_inputs import OWN_KINDS, OwnKind, else_off_the_mask, seeded
from scalerl.checks.own_task_trial import trial_of_task
from scalerl.objective.losses import LossInputs
from scalerl.quantities import counted
from scalerl.recipe import CustomTask, Own, OwnLoss
from scalerl.recipe.episodes import Episodes
from scalerl.recipe.own_function import OwnFailed, call_own, function_of, place_of

TRIED_SHAPE = (8, 24)
"""Rows and columns of the tensors on which a function is tried."""
TIMED_SHAPE = (64, 128)
"""Rows and columns of the tensors on which a function is timed."""
MOST_TIMES = 50
"""Limit on a function's time, as a multiple of the built-in function's time."""
ALWAYS_FAST_S = 0.02
"""Duration below which a call never counts as slow."""
LEAST_CALLS, TIMED_CALLS, PATIENCE_S = 3, 20, 1.0
"""Minimum number of timed calls, their number if they are fast, and the seconds during which slow calls are
repeated."""
REMEDIES = {
    "shape": "return the record whose tensors have the axes in their names; docs/own.md lists them",
    "finite": "look for a division by 0, or a logarithm or exponential of a large number",
    "changes": "compute on a copy, as in `x = x.clone()`",
    "mask": "use torch.where(mask, x, 0.0) before x is multiplied, summed or averaged",
    "gradient": "let logprobs_BT carry a gradient on the mask and nowhere else",
    "random": "a run must be repeatable: compute from the inputs alone",
    "device": "take the device from an input: `given.logprobs_BT.new_zeros(...)`, or device=given.logprobs_BT.device",
    "slow": "use operations on whole tensors instead of loops over tokens",
    "error": "correct the function, or the parameters in the file that names it",
}
"""Advice by kind of problem."""
OwnProblem = tuple[str, str]
"""Reason why a function cannot be used, with file and line unless these are where it starts, and the remedy:
`("ignores the mask: its loss_BT is not 0 off mask_BT", "use torch.where(...)")`."""


def main() -> None:
    """Read the request, try the function and write the answer."""
    request = json.load(sys.stdin)
    setting = request["setting"]
    settings = {"task": CustomTask, "loss": OwnLoss, "environment": Episodes}.get(setting, Own)
    print(json.dumps(tried(setting, settings.model_validate(request["own"]))), flush=True)
    os._exit(0)  # what the user's files do at the end of a process must not follow the answer


def tried(setting: str, given: Own | Episodes) -> dict[str, str]:
    """The trial's answer: the function's first problem, or its time."""
    own = cast(Own, given.environment) if isinstance(given, Episodes) else given
    if isinstance(given, Episodes):
        trial = trial_of_environment(given)
    elif isinstance(own, CustomTask):
        trial = trial_of_task(own)
    elif setting == "curriculum":
        trial = trial_of_curriculum(own)
    else:
        trial = trial_of_function(setting, own)
    try:
        start = f"{place_of(own, function_of(own))}: {own.function_name} "
        found, remedy = next(trial)
    except OwnFailed as error:
        return {"found": str(error), "remedy": REMEDIES["error"]}
    return {"found": start + found if remedy and f": {own.function_name} " not in found else found, "remedy": remedy}


def trial_of_function(setting: str, own: Own) -> Iterator[OwnProblem]:
    """Problems of a function, and its time."""
    kind = OWN_KINDS[setting]
    yield from own_problems(setting, own)
    given = kind.inputs(own, *TIMED_SHAPE, 0)
    mine, theirs = shortest_s(lambda one: call_own(own, one), given), shortest_s(kind.built_in, given)
    size = f"{TIMED_SHAPE[0]} x {TIMED_SHAPE[1]} numbers" if kind.places else counted(len(given), "answer")
    found = f"takes {_ms(mine)} for {size}"
    if mine > max(ALWAYS_FAST_S, MOST_TIMES * theirs):
        yield f"{found}, but {kind.built_in_name} takes {_ms(theirs)}", REMEDIES["slow"]
    yield f"{found}; {kind.built_in_name} takes {_ms(theirs)}", ""


def own_problems(setting: str, own: Own) -> Iterator[OwnProblem]:
    """Problems of a function, in the order of the checks."""
    kind = OWN_KINDS[setting]
    yield from device_words(own, forbids_host=setting == "loss")
    for given in kind.inputs(own, *TRIED_SHAPE, 0):
        leaf = given.logprobs_BT.clone().requires_grad_() if isinstance(given, LossInputs) else None
        passed = _copied(given) if leaf is None else replace(_copied(given), logprobs_BT=leaf * 1.0)
        found = seeded(0, call_own, own, passed)
        yield from shape_problems(kind, given, found)
        yield from change_problems(given, passed)
        yield from finite_problems(kind, given, found)
        if not _same(found, seeded(1, call_own, own, _copied(given))):
            yield "returns something different when called again with the same inputs", REMEDIES["random"]
        yield from mask_problems(kind, own, given, found)
        if leaf is not None:
            yield from gradient_problems(found.loss_BT, leaf, given.mask_BT)
            yield from device_problems(own, given)


def device_words(own: Own, *, forbids_host: bool) -> Iterator[OwnProblem]:
    """Places where the function's files name a device: `torch.device("cuda")`, `device="cpu"`, `x.cuda()`."""
    for name in own.files:
        path = Path(own.folder) / name
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and (word := _device_named(node)) and (forbids_host or word != "cpu"):
                yield f"{path}:{node.lineno}: {own.function_name} names the device {word!r}", REMEDIES["device"]


def _device_named(call: ast.Call) -> str | None:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if called == "cuda":
        return "cuda"
    values = [keyword.value for keyword in call.keywords if keyword.arg == "device"]
    values += call.args if called in ("device", "to") else []
    words = [one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return words[0].partition(":")[0] if words else None


def shape_problems(kind: OwnKind, given: Any, found: Any) -> Iterator[OwnProblem]:
    """Problems of the output's type, and of its tensors' axes and number types."""
    if not isinstance(found, kind.output):
        names = ", ".join(f"{one.name}=..." for one in fields(kind.output))
        yield f"returns a {type(found).__name__}; must return {kind.output.__name__}({names})", REMEDIES["shape"]
        return
    rows_and_columns = dict(zip("BT" if hasattr(given, "mask_BT") else "PG", TRIED_SHAPE, strict=True))
    for name in kind.places:
        got: Any = getattr(found, name)
        axes = name.rpartition("_")[2]
        if not isinstance(got, Tensor) or got.shape != tuple(rows_and_columns[axis] for axis in axes):
            shape = f"of shape {tuple(got.shape)}" if isinstance(got, Tensor) else f"as a {type(got).__name__}"
            wanted = ", ".join(f"{axis}={rows_and_columns[axis]}" for axis in axes)
            yield f"returns {name} {shape}; its axes are {wanted}", REMEDIES["shape"]
        elif (got.dtype == torch.bool) != name.startswith(("clipped", "is_")):
            wanted = "True and False" if name.startswith(("clipped", "is_")) else "floating-point numbers"
            yield f"returns {name} of {got.dtype}; must be {wanted}", REMEDIES["shape"]


def change_problems(given: Any, passed: Any) -> Iterator[OwnProblem]:
    """Inputs that the function changed."""
    for name, before in vars(given).items():
        if isinstance(before, Tensor) and not _equal(before, getattr(passed, name)):
            yield f"changes its input {name}", REMEDIES["changes"]


def finite_problems(kind: OwnKind, given: Any, found: Any) -> Iterator[OwnProblem]:
    """NaN or infinite values, with their number on the mask."""
    for name, mask in kind.places.items():
        values = getattr(found, name).detach()
        bad = ~values.isfinite()
        on_the_mask = int((bad & getattr(given, mask)).sum()) if mask else 0
        if on_the_mask:
            where = f"at {on_the_mask} of {counted(int(getattr(given, mask).sum()), 'place')} of the mask"
            yield f"makes {name} NaN or infinite {where}", REMEDIES["finite"]
        elif bad.any():
            yield f"makes {name} NaN or infinite off the mask", REMEDIES["finite"]
    for name in () if kind.places else [one.name for one in fields(kind.output)]:
        value = getattr(found, name)
        if not isinstance(value, int | float) or not isfinite(value):
            yield f"returns {name} {value!r} for {given}; must be a finite number", REMEDIES["finite"]


def mask_problems(kind: OwnKind, own: Own, given: Any, found: Any) -> Iterator[OwnProblem]:
    """Values off the mask that are not 0, or that affect values on the mask."""
    masks = {mask for mask in kind.places.values() if mask} or {name for name in vars(given) if name == "mask_PG"}
    for mask in masks:
        on_BT = getattr(given, mask)
        for name, its_mask in kind.places.items():
            if its_mask and (getattr(found, name).detach()[~on_BT] != 0).any():
                yield f"ignores the mask: its {name} is not 0 off {mask}", REMEDIES["mask"]
        other = seeded(0, call_own, own, else_off_the_mask(kind, own, given, mask))
        for name, its_mask in kind.places.items():
            one, two = getattr(found, name).detach(), getattr(other, name).detach()
            one, two = (one[on_BT], two[on_BT]) if its_mask else (one, two)
            if not torch.allclose(one.double(), two.double(), rtol=1e-6, atol=1e-8):
                yield f"ignores the mask: its {name} depends on values where {mask} is False", REMEDIES["mask"]


def gradient_problems(loss_BT: Tensor, leaf_BT: Tensor, mask_BT: Tensor) -> Iterator[OwnProblem]:
    """Problems of the gradient: missing, off the mask, or not finite."""
    slope_BT = None
    if loss_BT.requires_grad:
        (slope_BT,) = torch.autograd.grad(loss_BT.sum(), leaf_BT, allow_unused=True)
    if slope_BT is None or not (slope_BT[mask_BT] != 0).any():
        yield "gives logprobs_BT no gradient", REMEDIES["gradient"]
    elif not slope_BT.isfinite().all():
        yield "makes the gradient of logprobs_BT NaN or infinite", REMEDIES["finite"]
    elif (slope_BT[~mask_BT] != 0).any():
        yield "gives logprobs_BT a gradient off the mask", REMEDIES["gradient"]


def device_problems(own: Own, given: LossInputs) -> Iterator[OwnProblem]:
    """Tensors created on another device than the inputs', found with tensors that hold no data."""
    there = {name: one.to("meta") for name, one in vars(given).items() if isinstance(one, Tensor)}
    try:
        found = call_own(own, replace(given, **there)).loss_BT
    except OwnFailed as error:
        # Other errors only say that such tensors have no numbers to look at.
        if "not on the expected device" in str(error) or "same device" in str(error):
            where = str(error).partition(f": {own.function_name} raised")[0]
            yield f"{where}: {own.function_name} mixes its inputs with tensors on another device", REMEDIES["device"]
        return
    if found.device.type != "meta":
        yield f"returns a tensor on {found.device}, whichever device its inputs are on", REMEDIES["device"]


def shortest_s(function: Callable[[Any], Any], inputs: tuple[Any, ...]) -> float:
    """Shortest time among several calls with all inputs, with the backward pass for a loss.

    Calls are repeated for up to PATIENCE_S: other work on the machine delays some, but not all of many. On several
    threads it would delay all, since the threads wait for each other in every operation.
    """
    took: list[float] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        while len(took) < LEAST_CALLS or (
            sum(took) < PATIENCE_S and (len(took) < TIMED_CALLS or min(took) > ALWAYS_FAST_S)
        ):
            fresh = [_copied(one) for one in inputs]
            began = time.perf_counter()
            for given in fresh:
                if isinstance(given, LossInputs):
                    leaf = given.logprobs_BT.requires_grad_()
                    function(replace(given, logprobs_BT=leaf)).loss_BT.sum().backward()
                else:
                    function(given)
            took.append(time.perf_counter() - began)
    finally:
        torch.set_num_threads(threads)
    return min(took)


def _ms(time_s: float) -> str:
    return f"{1000 * time_s:.2g} ms"


def _equal(left: Tensor, right: Tensor) -> bool:
    left, right = left.detach(), right.detach()
    return torch.equal(left.nan_to_num(1e30), right.nan_to_num(1e30)) if left.is_floating_point() else left.equal(right)


def _same(left: Any, right: Any) -> bool:
    pairs = [(getattr(left, one.name), getattr(right, one.name)) for one in fields(left)]
    return all(_equal(a, b) if isinstance(a, Tensor) else a == b for a, b in pairs)


def _copied(given: Any) -> Any:
    return replace(given, **{name: one.clone() for name, one in vars(given).items() if isinstance(one, Tensor)})


if __name__ == "__main__":
    main()
