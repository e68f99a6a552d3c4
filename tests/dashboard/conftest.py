"""What every test of a page needs."""

import sys

import pytest
from fixtures_home import make_home

from ablations.cli.serve import TOKEN_VARIABLE


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished sweep of three variants with one seed each; pages only read it."""
    return make_home(tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="session")
def decided(tmp_path_factory):
    """The same with three seeds, whose differences have intervals."""
    return make_home(tmp_path_factory.mktemp("decided"), seeds=(0, 1, 2))


@pytest.fixture(autouse=True)
def same_main():
    """Streamlit takes the place of __main__, which processes that other tests start would run again."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    """Pages that AppTest runs ask for no token; those of a server have their own."""
    monkeypatch.setenv(TOKEN_VARIABLE, "")
