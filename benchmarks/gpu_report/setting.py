"""What a part is told."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Size = TypeVar("Size")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """`Setting(device="cuda", limit_s=600.0, scratch=Path("/tmp/x"), model=None)`."""

    device: str
    """`cuda` or `cpu`."""
    limit_s: float
    """Seconds after which the part is ended."""
    scratch: Path
    """Folder that is deleted when the part has ended."""
    model: Path | None = None
    """Folder of a pretrained model, if one was given."""

    @property
    def is_cuda(self) -> bool:
        """True on a GPU."""
        return self.device == "cuda"

    def of(self, *, cuda: Size, cpu: Size) -> Size:
        """The size for this device."""
        return cuda if self.is_cuda else cpu
