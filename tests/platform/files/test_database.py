"""A path goes into the URL of a database and comes back as it was, whatever characters it has."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy
from places import ODD_NAMES

from ablations.files.database import sqlite_path, sqlite_url


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_database_is_made_where_its_path_says_and_nowhere_else(tmp_path, name):
    path = tmp_path / name / "store.db"
    path.parent.mkdir()
    engine = sqlalchemy.create_engine(sqlite_url(path))
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("create table seen (number integer)"))
    engine.dispose()
    with closing(sqlite3.connect(path)) as there:
        assert there.execute("select name from sqlite_master").fetchall() == [("seen",)]
    assert list(tmp_path.iterdir()) == [path.parent]
    assert sqlite_path(sqlite_url(path)) == path


def test_the_url_of_a_path_without_such_characters_is_the_path():
    assert sqlite_url(Path("/home/ada/my runs/mlflow.db")) == "sqlite:////home/ada/my runs/mlflow.db"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///runs/mlflow.db", Path("runs/mlflow.db")),
        ("sqlite:////srv/runs%20a/mlflow.db?timeout=5", Path("/srv/runs a/mlflow.db")),
        ("sqlite+pysqlite:////srv/a%3Fb.db", Path("/srv/a?b.db")),
        ("sqlite://", None),
        ("sqlite:///:memory:", None),
        ("http://mlflow:5000", None),
        ("/srv/mlruns", None),
    ],
)
def test_the_file_of_a_url_is_known(url, path):
    assert sqlite_path(url) == path
