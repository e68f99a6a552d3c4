"""The numbers that the paper publishes."""

import pytest

from ablations.findings.published import published


def test_table_1_is_as_published():
    fits = published()
    assert len(fits) == 20
    assert (fits["ScaleRL"].A, fits["ScaleRL"].B, fits["ScaleRL"].C_mid) == (0.610, 1.92, 2542)
    assert (fits["ScaleRL-Scout"].A, fits["ScaleRL math+code, code"].B) == (0.710, 1.09)
    assert pytest.approx(0.09) == fits["FP32 logits"].A - fits["BF16 logits"].A
    assert all(fit.source for fit in fits.values())
