import pytest
from filelock import FileLock

from ablations.home.state import State, is_locked

MEANINGS = {
    "is_finished": {"done", "stopped"},
    "is_failure": {"failed", "lost", "timed out", "out of memory", "node failed"},
    "is_retried": {"failed", "lost", "timed out", "out of memory", "node failed", "preempted"},
    "waits": {"pending", "queued", "requeued"},
    "is_active": {"running", "queued", "requeued"},
    "ends_attempt": {"done", "stopped", "failed", "cancelled"},
}


@pytest.mark.parametrize("question", MEANINGS)
def test_each_question_is_answered_yes_for_exactly_these_states(question):
    assert {str(state) for state in State if getattr(state, question)} == MEANINGS[question]


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
