"""Records of tensors whose shapes are checked at construction: the letters after a field's last "_" are its axes.

LossOutputs(loss_BT=torch.zeros(4, 7), clipped_BT=torch.zeros(4, 1))
Rejected: LossOutputs: clipped_BT has shape (4, 1); its axes are B=4, T=7
"""

from functools import cache

from torch import Tensor

from scalerl.errors import Rejected


class Shaped:
    """Base of a dataclass of tensors. Equal letters mean equal sizes; fields that are None are not checked."""

    def __post_init__(self) -> None:
        sizes: dict[str, int] = {}
        for name, axes in named_axes(type(self)):
            tensor: Tensor | None = getattr(self, name)
            if tensor is None:
                continue
            shape = tuple(tensor.shape)
            if len(shape) != len(axes) or shape != tuple(map(sizes.setdefault, axes, shape)):
                wanted = ", ".join(f"{axis}={sizes[axis]}" if axis in sizes else axis for axis in axes)
                raise Rejected(f"{type(self).__name__}: {name} has shape {shape}; its axes are {wanted}")


@cache
def named_axes(record: type) -> tuple[tuple[str, str], ...]:
    """Fields with axes in their names: `(("loss_BT", "BT"), ("clipped_BT", "BT"))`."""
    names = [name for name in record.__annotations__ if name.rpartition("_")[2].isupper()]
    return tuple((name, name.rpartition("_")[2]) for name in names)
