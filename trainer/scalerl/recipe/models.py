"""The policy's model: `llama` or `moe` made from scratch, or `pretrained`, loaded by `transformers` from a folder.

A model is identified by its content. A pretrained model has `path_sha256` in its identity, not its `path`: moving the
folder keeps the runs, changing its weights makes new ones.
"""

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from scalerl.durable import file_sha256
from scalerl.frozen import Count, Frozen, Parameters
from scalerl.plain_json import parsed_json

NUM_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
"""Names that families use for the number of experts; the first is Mixtral's."""
IN_A_BLOCK = re.compile(r"\.\d+\.")


class LlamaModel(Frozen):
    """A Llama-architecture decoder made from scratch."""

    type: Literal["llama"] = "llama"
    hidden: Annotated[int, Field(ge=8, le=1_000_000, multiple_of=8)] = 64
    """Width of the residual stream."""
    layers: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Decoder blocks."""
    heads: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Attention heads; hidden / heads must be an even number."""
    mlp: Annotated[int, Field(ge=8, le=10_000_000)] = 192
    """Width of the gated feed-forward layer."""
    tokenizer: Literal["symbols", "characters"] = "symbols"
    """One token per symbol of the synthetic tasks, or per byte of any text."""

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        check_heads(self.hidden, self.heads)
        return self


class MoeModel(Frozen):
    """A Mixtral-architecture mixture of experts made from scratch (arXiv 2401.04088)."""

    type: Literal["moe"] = "moe"
    hidden: Annotated[int, Field(ge=8, le=1_000_000, multiple_of=8)] = 64
    """Width of the residual stream."""
    layers: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Decoder blocks."""
    heads: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Attention heads; hidden / heads must be an even number."""
    mlp: Annotated[int, Field(ge=8, le=10_000_000)] = 96
    """Width of one expert, a gated feed-forward layer."""
    experts: Annotated[int, Field(ge=2, le=100_000)] = 8
    """Experts per block."""
    experts_per_token: Count = 2
    """Experts that each token is routed to; must be below `experts`."""
    router_loss: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    """Weight of the load-balancing loss of each trained sequence (arXiv 2412.19437), also in the warm start; 0 turns it
    off, Mixtral uses 0.001."""
    tokenizer: Literal["symbols", "characters"] = "symbols"
    """One token per symbol of the synthetic tasks, or per byte of any text."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_heads(self.hidden, self.heads)
        if self.experts_per_token >= self.experts:
            raise ValueError(
                f"experts_per_token {self.experts_per_token} must be below experts {self.experts}, or nothing is "
                f"routed; use model type llama for a dense model"
            )
        return self


class Shape(Frozen):
    """Sizes of a pretrained decoder, which `platform plan` uses if the folder is not on this machine.

    Llama 3.1 8B has 8,030,261,248 parameters, a vocabulary of 128,256, hidden 4096, 32 layers with 32 heads of size 128
    and 8 key-value heads, and mlp 14,336.
    """

    parameters: Parameters
    """Parameters stored, with a tied head counted once."""
    active_parameters: Parameters | None = None
    """Parameters used per token; null is all of them. A mixture of experts counts only the experts a token uses."""
    vocabulary: Count
    """Rows of the head's matrix."""
    hidden: Count
    """Width of the residual stream."""
    layers: Count
    """Decoder blocks."""
    heads: Count
    """Attention heads."""
    kv_heads: Count
    """Key-value heads."""
    head_size: Count
    """Size of one head's key."""
    mlp: Count
    """Width of the feed-forward layer per token; for a mixture of experts, the total over the experts a token uses."""


class PretrainedModel(Frozen):
    """A causal language model in a local folder: config.json, safetensors (sharded or not) and its tokenizer."""

    type: Literal["pretrained"] = "pretrained"
    path: str
    """Folder, relative to where the command is run; stored as an absolute path. A run's identity has its hash
    instead."""
    path_sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    """Hash of the folder's configuration, weights and tokenizer; filled in."""
    router_loss: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    """Weight of the load-balancing loss of each trained sequence, as in `moe`; only for a mixture of experts."""
    shape: Shape | None = None
    """Sizes of the model, for `platform plan` on a machine without the folder. A run reads them from the folder, so
    they are not part of its identity."""

    @model_validator(mode="before")
    @classmethod
    def _read_folder(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("path"), str) or data.get("path_sha256"):
            return data
        folder = Path(data["path"]).expanduser().resolve()
        config = read_config(folder)
        if data.get("router_loss") and not any(config.get(name) for name in NUM_EXPERTS):
            raise ValueError(
                f"router_loss {data['router_loss']} has no effect on {folder}: {config.get('model_type')} has no "
                f"experts; remove router_loss"
            )
        return {**data, "path": str(folder), "path_sha256": model_sha256(folder)}


def check_heads(hidden: int, heads: int) -> None:
    """Raises ValueError unless `hidden` divides into heads of even size, as rotary positions need."""
    if hidden % (2 * heads):
        raise ValueError(f"hidden {hidden} must divide into {heads} heads of even size")


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of a model's folder; raises ValueError naming what the folder lacks."""
    if not folder.is_dir():
        raise ValueError(f"path {folder} is not a folder; name the folder with the model's config.json")
    missing = [
        what
        for pattern, what in (
            ("config.json", "config.json"),
            ("*.safetensors", "weights (*.safetensors)"),
            ("tokenizer*", "a tokenizer (tokenizer.json)"),
        )
        if not any(folder.glob(pattern))
    ]
    if missing:
        raise ValueError(
            f"path {folder} has no {' and no '.join(missing)}; `save_pretrained` of transformers writes them"
        )
    try:
        return parsed_json((folder / "config.json").read_text())
    except ValueError as error:
        raise ValueError(f"path {folder}: config.json is not JSON ({error})") from None


def model_sha256(folder: Path) -> str:
    """Hash of a model's content: every file except those that are only for people or tools."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".safetensors", ".jinja", ".model", ".txt"):
            status = path.stat()
            total.update(f"{path.name} {_hash(path, status.st_size, status.st_mtime_ns)}\n".encode())
    return total.hexdigest()


@lru_cache(maxsize=1024)
def _hash(path: Path, size: int, modified_ns: int) -> str:
    """SHA-256 of a file, cached while its size and time stay the same."""
    return file_sha256(path)


def stored_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of the tensors in a folder's safetensors files, by name."""
    return {name: shape for path in folder.glob("*.safetensors") for name, shape in _header(path).items()}


def _header(path: Path) -> dict[str, tuple[int, ...]]:
    """Shapes in a file's header: 8 bytes of length, then JSON."""
    with path.open("rb") as file:
        header = parsed_json(file.read(int.from_bytes(file.read(8), "little")))
    return {name: tuple(one["shape"]) for name, one in header.items() if name != "__metadata__"}


def linear_layers(folder: Path) -> dict[str, tuple[int, int]]:
    """Sizes (out, in) of the linear layers in the blocks of a folder's model, by name, without experts and routers.

    >>> linear_layers(Path("qwen"))
    {'model.layers.0.self_attn.q_proj': (896, 896), ...}
    """
    config = parsed_json((folder / "config.json").read_text())
    experts = next((number for name in NUM_EXPERTS if (number := config.get(name))), 0)
    found: dict[str, tuple[int, int]] = {}
    for name, shape in stored_shapes(folder).items():
        layer, _, kind = name.rpartition(".")
        is_matrix = kind == "weight" and len(shape) == 2 and IN_A_BLOCK.search(name) is not None
        if is_matrix and ".experts." not in name and shape[0] != experts:
            found[layer] = shape[0], shape[1]
    return found


def _type_of(data: Any) -> Any:
    return data.get("type", "llama") if isinstance(data, dict) else getattr(data, "type", None)


Model = Annotated[
    Annotated[LlamaModel, Tag("llama")]
    | Annotated[MoeModel, Tag("moe")]
    | Annotated[PretrainedModel, Tag("pretrained")],
    Discriminator(_type_of),
]
"""`{hidden: 64}` alone is a llama."""


def context_of(model: Model) -> int | None:
    """Maximum positions of a pretrained model; None for a model made from scratch, which has no limit."""
    if model.type != "pretrained":
        return None
    config = read_config(Path(model.path))
    found = config.get("max_position_embeddings") or config.get("text_config", {}).get("max_position_embeddings")
    return int(found) if found else None
