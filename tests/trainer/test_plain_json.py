"""JSON of a home folder that someone has edited."""

import pytest

from scalerl.plain_json import parsed_json


def test_json_that_is_nested_too_deeply_is_a_value_error_like_any_other():
    assert parsed_json(b'{"a": [1, null]}') == {"a": [1, None]}
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed_json("[" * 100_000)
    with pytest.raises(ValueError, match="Expecting"):
        parsed_json(b'{"a": ')
