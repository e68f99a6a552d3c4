from filelock import FileLock

from ablations.home.heartbeat import is_locked


def test_a_lock_is_looked_at_without_writing_as_it_may_be_another_users(tmp_path):
    path = tmp_path / "lock"
    assert not is_locked(path)
    assert not path.exists()
    with FileLock(path):
        assert is_locked(path)
        assert is_locked(path)
    path.write_text("whose it is")  # filelock empties a file that it takes
    assert not is_locked(path)
    assert path.read_text() == "whose it is"
    with FileLock(path, timeout=0):  # which the look does not hold
        assert is_locked(path)
