"""Tries one function of the user's own on made-up values; a program of its own, because the function may never end.

    python -P -m scalerl.checks.own_trial < request.json

The request is `{"kind": "loss", "own": {...}}` with the settings of `scalerl.recipe.own.Own`. The answer, the last line
of the output, is `{"found": "...", "remedy": "...", "is_broken": true}`.
"""

import ast
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scalerl.objective.losses import LossInputs, LossOutputs, cispo, named_loss
from scalerl.quantities import counted
from scalerl.recipe import Own, OwnLoss
from scalerl.recipe.own_function import OwnFailed, function_of, place_of

MOST_TIMES = 50
"""Times that a function may take as long as the built-in one."""
ALWAYS_FAST_S = 0.02
"""Time of a call that is never too long."""
TIMED_CALLS = 3
MASKED = "use torch.where(given.mask_BT, x, 0.0) before x is multiplied, summed or averaged"
REMEDIES = {
    "shape": "return a record whose tensors have the axes in their names; docs/own.md lists them",
    "finite": "look for a division by 0, or a logarithm or exponential of a large number",
    "changes": "compute on a copy, as in `x = x.clone()`",
    "mask": MASKED,
    "gradient": "let only logprobs_BT on the mask carry a gradient",
    "random": "a run must be repeatable: compute from the inputs alone",
    "device": "take the device from an input: `given.logprobs_BT.new_zeros(...)`, or device=given.logprobs_BT.device",
    "slow": "use operations on whole tensors instead of loops over tokens",
    "error": "correct the function, or the parameters in the file that names it",
}
"""Advice by kind of problem."""


@dataclass(frozen=True, kw_only=True)
class OwnProblem:
    """Why a function cannot be used: `OwnProblem(kind="mask", found="its loss is not 0 off the mask", where="a.py:3")`."""

    kind: str
    found: str
    where: str = ""
    """File and line; empty for the start of the function."""


def main() -> None:
    """Read the request, try the function and write the answer."""
    request = json.load(sys.stdin)
    own = KINDS[request["kind"]].settings.model_validate(request["own"])
    print(json.dumps(tried(request["kind"], own)))


def tried(kind: str, own: Own) -> dict[str, Any]:
    """The answer: the first problem of the function, or how long it takes."""
    try:
        function = function_of(own)
        problem = next(_problems(kind, own), None)
    except OwnFailed as error:
        return {"found": str(error), "remedy": REMEDIES["error"], "is_broken": True}
    if problem is not None:
        where = problem.where or place_of(own, function)
        return {"found": f"{where}: {own.name} {problem.found}", "remedy": REMEDIES[problem.kind], "is_broken": True}
    mine, theirs = KINDS[kind].seconds(own)
    found = f"takes {_ms(mine)} for {KINDS[kind].size}"
    if mine > max(ALWAYS_FAST_S, MOST_TIMES * theirs):
        slow = f"{place_of(own, function)}: {own.name} {found}, but {KINDS[kind].built_in} {_ms(theirs)}"
        return {"found": slow, "remedy": REMEDIES["slow"], "is_broken": True}
    return {"found": f"{found}; {KINDS[kind].built_in} takes {_ms(theirs)}", "remedy": "", "is_broken": False}


def _problems(kind: str, own: Own) -> Iterator[OwnProblem]:
    yield from device_words(own, forbids_host=kind == "loss")
    yield from KINDS[kind].problems(own)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.2g} ms"


def device_words(own: Own, *, forbids_host: bool) -> Iterator[OwnProblem]:
    """Places where the function's files name a device: `torch.device("cuda")`, `device="cpu"`, `x.cuda()`."""
    for name in own.files:
        path = Path(own.folder) / name
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and (word := _device_named(node)) and (forbids_host or word != "cpu"):
                yield OwnProblem(kind="device", found=f"names the device {word!r}", where=f"{path}:{node.lineno}")


def _device_named(call: ast.Call) -> str | None:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if called == "cuda":
        return "cuda"
    values = [keyword.value for keyword in call.keywords if keyword.arg == "device"]
    values += call.args if called in ("device", "to") else []
    words = [one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return words[0].partition(":")[0] if words else None


def loss_inputs(rollouts: int, tokens: int, *, start: bool, seed: int = 0) -> LossInputs:
    """Made-up inputs of a loss: a mask with prompt, forced and padding tokens, and one row without own tokens."""
    drawn = torch.Generator().manual_seed(seed)
    shape = (rollouts, tokens)
    logprobs = -torch.rand(shape, generator=drawn) * 3
    mask = torch.rand(shape, generator=drawn) < 0.7
    mask[:, : tokens // 4], mask[0, tokens // 2 :], mask[-1] = False, False, False
    noise = torch.randn((2, *shape), generator=drawn) * 0.3
    advantage = torch.randn((rollouts, 1), generator=drawn).expand(shape)
    return LossInputs(
        logprobs_BT=logprobs,
        behaviour_BT=torch.where(mask, logprobs + noise[0], 0.0),
        advantage_BT=torch.where(mask, advantage, 0.0),
        mask_BT=mask,
        start_BT=logprobs + noise[1] if start else None,
    )


def loss_problems(own: Own) -> Iterator[OwnProblem]:
    """What is wrong with a loss, the first of all checks that fails first."""
    assert isinstance(own, OwnLoss)
    given = loss_inputs(6, 24, start=own.start)
    leaf = given.logprobs_BT.clone().requires_grad_()
    passed = replace(_copied(given), logprobs_BT=leaf * 1.0)
    found = _seeded(0, lambda: named_loss(own, passed))
    yield from shape_problems(found, LossOutputs, {"loss_BT": given.mask_BT, "clipped_BT": given.mask_BT})
    yield from change_problems(given, passed)
    mask, loss = given.mask_BT, found.loss_BT.detach()
    yield from finite_problems("loss_BT", loss, mask)
    if not _same(loss, _seeded(1, lambda: named_loss(own, _copied(given))).loss_BT.detach()):
        yield OwnProblem(kind="random", found="returns another loss when it is called again with the same inputs")
    if (loss[~mask] != 0).any():
        yield OwnProblem(kind="mask", found="ignores the mask: its loss is not 0 off the mask")
    other = named_loss(own, _else_off_the_mask(given)).loss_BT.detach()
    if not torch.allclose(loss[mask], other[mask], rtol=1e-6, atol=1e-8):
        yield OwnProblem(kind="mask", found="ignores the mask: its loss on the mask depends on values off the mask")
    yield from gradient_problems(found.loss_BT, leaf, mask)
    yield from device_problems(own, given)


def gradient_problems(loss_BT: Tensor, leaf_BT: Tensor, mask_BT: Tensor) -> Iterator[OwnProblem]:
    """No gradient, or one that is off the mask or not finite."""
    if not loss_BT.requires_grad:
        yield OwnProblem(kind="gradient", found="gives logprobs_BT no gradient")
        return
    (slope_BT,) = torch.autograd.grad(loss_BT.sum(), leaf_BT, allow_unused=True)
    if slope_BT is None or not (slope_BT[mask_BT] != 0).any():
        yield OwnProblem(kind="gradient", found="gives logprobs_BT no gradient")
        return
    yield from finite_problems("the gradient of logprobs_BT", slope_BT, torch.ones_like(mask_BT))
    if (slope_BT[~mask_BT] != 0).any():
        yield OwnProblem(kind="gradient", found="gives logprobs_BT a gradient off the mask")


def device_problems(own: OwnLoss, given: LossInputs) -> Iterator[OwnProblem]:
    """A tensor made elsewhere than on the inputs' device, found on tensors that have no numbers."""
    there = {name: one.to("meta") for name, one in vars(given).items() if isinstance(one, Tensor)}
    try:
        found = named_loss(own, replace(given, **there)).loss_BT
    except OwnFailed as error:
        # Other errors only say that such tensors have no numbers to look at.
        if "not on the expected device" in str(error) or "same device" in str(error):
            where = str(error).partition(f": {own.name} raised")[0]
            yield OwnProblem(kind="device", found="mixes tensors of its own device with its inputs", where=where)
        return
    if found.device.type != "meta":
        yield OwnProblem(kind="device", found=f"returns a tensor on {found.device}, wherever its inputs are")


def shape_problems(found: Any, record: type, like: Mapping[str, Tensor]) -> Iterator[OwnProblem]:
    """Another record, or tensors with other axes or types of numbers than those of the same names in `like`."""
    if not isinstance(found, record):
        names = ", ".join(f"{one.name}=..." for one in fields(record))
        yield OwnProblem(
            kind="shape", found=f"returns a {type(found).__name__}; must return {record.__name__}({names})"
        )
        return
    for name, tensor in like.items():
        got: Tensor = getattr(found, name)
        axes = name.rpartition("_")[2]
        if got.shape != tensor.shape:
            wanted = ", ".join(f"{axis}={size}" for axis, size in zip(axes, tensor.shape, strict=True))
            yield OwnProblem(kind="shape", found=f"returns {name} of shape {tuple(got.shape)}; its axes are {wanted}")
        elif (got.dtype == torch.bool) != name.startswith(("clipped", "is_")):
            yield OwnProblem(kind="shape", found=f"returns {name} of {got.dtype}")


def change_problems(given: Any, passed: Any) -> Iterator[OwnProblem]:
    """Inputs that are not what they were."""
    for name, before in vars(given).items():
        if isinstance(before, Tensor) and not _same(before, getattr(passed, name).detach()):
            yield OwnProblem(kind="changes", found=f"changes its input {name}")


def finite_problems(name: str, values: Tensor, where: Tensor) -> Iterator[OwnProblem]:
    """NaN or infinity, with how many of the values `where` is True are so."""
    bad = int((~values.isfinite() & where).sum())
    if bad or not values.isfinite().all():
        place = f"at {bad} of {counted(int(where.sum()), 'token')} of the mask" if bad else "off the mask"
        yield OwnProblem(kind="finite", found=f"makes {name} NaN or infinite {place}")


def _same(left: Tensor, right: Tensor) -> bool:
    return torch.equal(left.nan_to_num(1e30), right.nan_to_num(1e30)) if left.is_floating_point() else left.equal(right)


def _seeded(seed: int, call: Callable[[], Any]) -> Any:
    """The result with all random number generators in the same state for the same seed."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
    return call()


def _copied(given: Any) -> Any:
    return replace(given, **{k: v.clone() for k, v in vars(given).items() if isinstance(v, Tensor)})


def _else_off_the_mask(given: LossInputs) -> LossInputs:
    """The same inputs with other values off the mask."""
    other = loss_inputs(*given.mask_BT.shape, start=given.start_BT is not None, seed=2)
    mixed = {
        name: torch.where(given.mask_BT, one, getattr(other, name) - 1)
        for name, one in vars(given).items()
        if isinstance(one, Tensor) and name != "mask_BT"
    }
    return replace(given, **mixed)


def loss_seconds(own: Own) -> tuple[float, float]:
    """Seconds of the function and of CISPO, forward and backward, on 64 rollouts of 128 tokens."""
    assert isinstance(own, OwnLoss)
    given = loss_inputs(64, 128, start=own.start)

    def seconds(loss: Callable[[LossInputs], LossOutputs]) -> float:
        took = []
        for _ in range(TIMED_CALLS):
            leaf = given.logprobs_BT.clone().requires_grad_()
            began = time.perf_counter()
            loss(replace(given, logprobs_BT=leaf)).loss_BT.sum().backward()
            took.append(time.perf_counter() - began)
        return min(took)

    return seconds(lambda given: named_loss(own, given)), seconds(lambda given: cispo(given, min_ratio=0, max_ratio=5))


@dataclass(frozen=True, kw_only=True)
class OwnKind:
    """How functions of one kind are tried."""

    settings: type[Own]
    problems: Callable[[Own], Iterator[OwnProblem]]
    seconds: Callable[[Own], tuple[float, float]]
    """Seconds of the function and of the built-in one."""
    size: str
    """What they take so long for."""
    built_in: str


KINDS = {
    "loss": OwnKind(
        settings=OwnLoss, problems=loss_problems, seconds=loss_seconds, size="64 x 128 tokens", built_in="cispo"
    ),
}

if __name__ == "__main__":
    main()
