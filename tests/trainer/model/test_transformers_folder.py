"""A folder of weights is read whole: what is missing, left over or damaged is named, and nothing is drawn instead."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from trainer.tiny_transformers import CONFIGS, CPU, make_folder

from scalerl.model.llama import Llama
from scalerl.model.transformers_load import empty
from scalerl.recipe import LlamaModel

QUERY = "model.layers.0.self_attn.q_proj.weight"
EXPERT = "model.layers.1.block_sparse_moe.experts.2.w1.weight"


@pytest.fixture(scope="module", params=["qwen2", "mixtral"])
def family(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    make_folder(folder, CONFIGS[request.param])
    return CONFIGS[request.param], load_file(folder / "model.safetensors"), folder


def loaded(family, folder, change):
    config, weights, whole = family
    changed = {name: tensor.clone() for name, tensor in weights.items()}
    change(changed)
    (folder / "config.json").write_bytes((whole / "config.json").read_bytes())
    save_file(changed, folder / "model.safetensors", metadata={"format": "pt"})
    policy = empty(config, CPU)
    state = torch.random.get_rng_state()
    policy.load_weights(folder)
    assert torch.equal(state, torch.random.get_rng_state())
    return policy


def test_a_whole_folder_fills_every_number(family, tmp_path):
    policy = loaded(family, tmp_path, lambda weights: None)
    own = policy.exported_weights()
    assert own.keys() == family[1].keys()
    assert all(torch.equal(own[name], tensor) for name, tensor in family[1].items())


CHANGES = {
    "missing": (lambda weights: weights.pop(QUERY), f"missing: {QUERY}"),
    "several missing": (
        lambda weights: [weights.pop(name) for name in sorted(weights) if "self_attn" in name],
        "missing: .*, .* and [0-9]+ more",
    ),
    "left over": (lambda weights: weights.update({"model.extra.weight": torch.ones(3)}), "unexpected: model.extra.w"),
    "a layer too many": (
        lambda weights: weights.update({QUERY.replace("layers.0", "layers.2"): torch.ones(16, 16)}),
        "unexpected: model.layers.2.self_attn.q_proj.weight",
    ),
    "another shape": (
        lambda weights: weights.update({QUERY: torch.ones(3, 16)}),
        r"of another shape: model.layers.0.self_attn.q_proj.weight \(\[3, 16\] instead of \[16, 16\]\)",
    ),
    "NaN": (lambda weights: weights[QUERY].view(-1)[7].fill_(torch.nan), f"NaN or infinite values in {QUERY}"),
    "infinity": (
        lambda weights: weights["model.embed_tokens.weight"][40].fill_(-torch.inf),  # no probe reads that row
        "NaN or infinite values in model.embed_tokens.weight",
    ),
    "integers": (
        lambda weights: weights.update({QUERY: torch.ones(16, 16, dtype=torch.int8)}),
        r"not floating-point: .*q_proj.weight \(I8\); quantised weights cannot be trained",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_tensor_that_does_not_fit_is_named(family, tmp_path, change):
    how, message = CHANGES[change]
    with pytest.raises(ValueError, match=message):
        loaded(family, tmp_path, how)


def test_a_head_that_the_configuration_ties_may_not_have_other_numbers(tmp_path):
    config = CONFIGS["qwen2"]
    make_folder(tmp_path, config)
    weights = load_file(tmp_path / "model.safetensors")
    same = weights["model.embed_tokens.weight"]
    for numbers, fits in ((same, True), (same + 1, False)):
        whole = (config, {**weights, "lm_head.weight": numbers.clone()}, tmp_path)
        if fits:
            loaded(whole, tmp_path, lambda weights: None)
        else:
            with pytest.raises(ValueError, match=r"ties lm_head\.weight to model\.embed_tokens\.weight, but model"):
                loaded(whole, tmp_path, lambda weights: None)


def test_files_that_are_missing_cut_or_no_json_are_named(tmp_path):
    model = make_folder(tmp_path / "whole", CONFIGS["mixtral"])
    folder = tmp_path / "parts"
    model.save_pretrained(folder, max_shard_size="4KB")
    parts = sorted(folder.glob("*.safetensors"))
    assert len(parts) > 2
    content = parts[1].read_bytes()
    parts[1].write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=f"{parts[1].name} is damaged or truncated"):
        empty(model.config, CPU).load_weights(folder)
    parts[1].unlink()
    with pytest.raises(ValueError, match=f"index.json lists {parts[1].name}, missing from the folder"):
        empty(model.config, CPU).load_weights(folder)
    (folder / "model.safetensors.index.json").write_text(json.dumps([1]))
    with pytest.raises(ValueError, match=r"index\.json is damaged"):
        empty(model.config, CPU).load_weights(folder)


def test_a_warm_start_of_the_built_in_model_is_read_whole_too(tmp_path):
    policy = Llama(LlamaModel(hidden=16, layers=1, heads=2, mlp=16), 48, CPU)
    policy.init_weights(torch.Generator().manual_seed(0))
    policy.save(tmp_path, eos_token_id=1)
    path = tmp_path / "model.safetensors"
    whole = load_file(path)
    lacking = {name: tensor for name, tensor in whole.items() if name != QUERY}
    save_file(lacking, path)
    with pytest.raises(ValueError, match=f"missing: {QUERY}"):
        policy.load_weights(tmp_path)
    save_file({**whole, QUERY: whole[QUERY] * torch.nan}, path)
    with pytest.raises(ValueError, match=f"NaN or infinite values in {QUERY}"):
        policy.load_weights(tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"cannot read .*model\.safetensors"):
        policy.load_weights(tmp_path)
