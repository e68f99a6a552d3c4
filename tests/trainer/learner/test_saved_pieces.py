"""What ranks keep is put together again for any number of ranks, or it is refused."""

import pytest
import torch

from scalerl.learner.ranks import Ranks
from scalerl.learner.saved_pieces import KeptPiece, PieceFiles, pieces_of_whole, save_pieces

WHOLE = torch.arange(10.0).view(5, 2)


def piece(start, stop, kind="weights"):
    return KeptPiece(kind=kind, name="layer", start=start, values=WHOLE.flatten()[start:stop].clone())


def written(folder, *ranks):
    """One file of each rank's pieces."""
    paths = []
    for rank, pieces in enumerate(ranks):
        paths.append(folder / f"{rank}.safetensors")
        save_pieces(paths[-1], {"policy": pieces})
    return paths


def test_any_run_of_numbers_is_read_whoever_kept_them(tmp_path):
    paths = written(tmp_path, [piece(0, 4), piece(0, 10, "exp_avg")], [piece(4, 9)], [piece(9, 10)])
    files = PieceFiles(paths)
    source = files.of("policy", "weights")
    assert source.read("layer", 0, 10).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert source.read("layer", 3, 10).tolist() == [3, 4, 5, 6, 7, 8, 9]
    assert source.read("layer", 5, 7).tolist() == [5, 6]
    assert source.read("layer", 6, 6).tolist() == []
    assert "layer" in source
    assert "other" not in source
    assert files.of("policy", "exp_avg").read("layer", 2, 4).tolist() == [2, 3]
    assert "layer" not in files.of("critic", "weights")


def test_a_gap_is_refused_with_its_numbers(tmp_path):
    paths = written(tmp_path, [piece(0, 4)], [piece(6, 10)])
    files = PieceFiles(paths)
    with pytest.raises(ValueError, match=r"^no rank kept elements 4 to 8 of layer$"):
        files.of("policy", "weights").read("layer", 2, 8)


@pytest.mark.parametrize("world", [1, 2, 3, 7, 12])
def test_equal_parts_are_the_whole(world):
    pieces = [next(pieces_of_whole([("layer", WHOLE)], Ranks(rank=rank, world=world))) for rank in range(world)]
    assert torch.cat([one.values for one in pieces]).tolist() == list(range(10))
    assert [one.start for one in pieces] == [10 * rank // world for rank in range(world)]
    assert max(len(one.values) for one in pieces) <= -(-10 // world)
