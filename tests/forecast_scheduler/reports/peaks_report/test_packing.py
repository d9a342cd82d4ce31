"""Packed curves come back as they were, to a 65,534th of the highest value."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from base.arrays import AnyFloats, Floats
from forecast_scheduler.reports.peaks_report.peaks_page import MISSING, packed

curves = arrays(np.float64, st.integers(1, 60), elements=st.floats(0, 1e12) | st.just(float("nan")))


def unpacked(piece: dict[str, Any]) -> AnyFloats:
    """What the page's script does, in one row."""
    counts = np.frombuffer(base64.b64decode(piece["counts"]), dtype="<u2")
    return np.where(counts == MISSING, np.nan, counts * float(piece["step"]))


@given(curves)
def test_curves_come_back_and_what_is_unknown_stays_unknown(curve: Floats) -> None:
    piece = packed(curve)
    if piece is None:
        assert np.isnan(curve).all()
        return
    back = unpacked(piece)
    assert (np.isnan(back) == np.isnan(curve)).all()
    highest = max(np.nanmax(curve), 1e-12)
    assert np.nanmax(np.abs(back - curve)) <= highest / 65_534 * 0.51
    assert len(piece["counts"]) <= 4 * (2 * curve.size // 3 + 1)


def test_the_highest_value_is_not_taken_for_a_gap() -> None:
    piece = packed(np.array([0.0, 7.5, np.nan, -1.0]))
    assert piece is not None
    assert np.allclose(unpacked(piece), [0.0, 7.5, np.nan, 0.0], equal_nan=True)
