"""A snapshot is taken whatever other processes write beside the code."""

from ablations.home.home import Home
from ablations.pools import code_snapshot


def test_what_python_and_numba_are_about_to_write_is_not_copied(tmp_path, monkeypatch):
    package = tmp_path / "package"
    (package / "__pycache__" / "4f1c2d").mkdir(parents=True)
    (package / "rule.py").write_text("RULE = 1\n")
    (package / "__pycache__" / "4f1c2d" / "kernel.nbc").write_bytes(b"code")
    for name in ("rule.cpython-311.pyc.140", "4f1c2d/kernel.nbi.tmp.9d0c", "4f1c2d/kernels.lock"):
        (package / "__pycache__" / name).symlink_to("gone")  # listed, and no longer there when it is copied
    monkeypatch.setattr(code_snapshot, "PACKAGES", {"scalerl": package})
    snapshot = code_snapshot.take_snapshot(Home(tmp_path / "home"))
    copied = {str(path.relative_to(snapshot)) for path in snapshot.rglob("*") if not path.is_dir()}
    assert copied == {"CODE_VERSION", "scalerl/rule.py", "scalerl/__pycache__/4f1c2d/kernel.nbc"}
