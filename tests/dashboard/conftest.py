"""What every test of a page needs."""

import sys

import pytest

from ablations.cli.serve import TOKEN_VARIABLE


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
