"""A snapshot is taken whatever other processes write beside the code."""

from ablations.home.home import Home
from ablations.pools import code_snapshot
from scalerl.model.kernels.kept_code import DIGEST


def test_neither_what_is_being_written_nor_machine_code_of_other_sources_is_copied(tmp_path, monkeypatch):
    package = tmp_path / "package"
    for digest in (DIGEST, "4f1c2d9b8a7e6d5c"):
        (package / "__pycache__" / digest).mkdir(parents=True)
        (package / "__pycache__" / digest / "kernel.nbc").write_bytes(b"code")
    (package / "rule.py").write_text("RULE = 1\n")
    for name in ("rule.cpython-311.pyc.140", f"{DIGEST}/kernel.nbi.tmp.9d0c", f"{DIGEST}/kernels.lock"):
        (package / "__pycache__" / name).symlink_to("gone")  # listed, and no longer there when it is copied
    monkeypatch.setattr(code_snapshot, "PACKAGES", {"scalerl": package})
    snapshot = code_snapshot.take_snapshot(Home(tmp_path / "home"))
    copied = {str(path.relative_to(snapshot)) for path in snapshot.rglob("*") if not path.is_dir()}
    assert copied == {"CODE_VERSION", "scalerl/rule.py", f"scalerl/__pycache__/{DIGEST}/kernel.nbc"}
