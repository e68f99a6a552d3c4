"""Where machine code is kept, and compiling without a place to keep it."""

import numba
import pytest

from scalerl.model.kernels import compiled as module


def twice(x):
    return 2 * x


@pytest.fixture
def unwritable(monkeypatch):
    """No folder in which numba could keep machine code."""

    def refuse(*_, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function 'twice': no locator available for file")
        return kept(**options)

    kept = numba.njit
    monkeypatch.setattr(numba, "njit", refuse)


def test_functions_are_compiled_where_nothing_can_be_written(unwritable):
    assert module.kernel(twice)(21) == 42


def test_the_folder_of_machine_code_changes_with_the_source_of_any_kernel(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "__file__", str(tmp_path / "compiled.py"))
    (tmp_path / "rows.py").write_text("a = 1")
    before = module._folder()
    (tmp_path / "rows.py").write_text("a = 2")
    assert module._folder() != before
    assert vars(numba.config)["CACHE_DIR"] == ""
