"""SQLite URLs and the paths in them. A path is escaped in its URL; otherwise `?` would end it and `%20` mean a space.

    >>> sqlite_url(Path("/home/ada/runs/mlflow.db"))
    'sqlite:////home/ada/runs/mlflow.db'
    >>> sqlite_url(Path("/home/ada/runs%20a/mlflow.db"))
    'sqlite+pysqlite:////home/ada/runs%2520a/mlflow.db'

SQLAlchemy is imported inside functions: the command line must start quickly.
"""

from pathlib import Path


def sqlite_url(path: Path) -> str:
    """The URL with which SQLAlchemy, and so MLflow and Optuna, open the file."""
    from sqlalchemy.engine import URL

    plain = f"sqlite:///{path.absolute()}"
    url = URL.create("sqlite+pysqlite", database=str(path.absolute())).render_as_string(hide_password=False)
    # MLflow creates the folders of a URL that begins with sqlite:///, but does not unescape them.
    return plain if url.partition(":")[2] == plain.partition(":")[2] else url


def sqlite_path(url: str) -> Path | None:
    """The file that an SQLite URL names; None for any other URL and for an in-memory database.

    Raises sqlalchemy.exc.ArgumentError if the SQLite URL cannot be parsed.
    """
    if not url.startswith("sqlite"):
        return None
    from sqlalchemy.engine import make_url

    database = make_url(url).database
    return None if database in (None, "", ":memory:") else Path(database)
