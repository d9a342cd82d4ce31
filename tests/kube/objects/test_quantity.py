from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.errors import InputError
from kube.objects.quantity import parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0.0),
        ("100m", 0.1),
        ("1", 1.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("+2", 2.0),
        ("-1.5Gi", -1.5 * 2**30),
        ("1n", 1e-9),
        ("250u", 0.00025),
        ("3k", 3e3),
        ("3M", 3e6),
        ("3G", 3e9),
        ("3T", 3e12),
        ("3P", 3e15),
        ("3E", 3e18),
        ("3Ki", 3 * 2.0**10),
        ("3Mi", 3 * 2.0**20),
        ("3Gi", 3 * 2.0**30),
        ("3Ti", 3 * 2.0**40),
        ("3Pi", 3 * 2.0**50),
        ("3Ei", 3 * 2.0**60),
        ("-9Ei", -(2.0**63)),  # capped, as upstream
        ("1e3", 1000.0),
        ("1E3", 1000.0),
        ("12.5e-1", 1.25),
        ("1e+2", 100.0),
        ("0.1n", 1e-9),  # more than nothing is at least the smallest there is
        ("-0.1n", -1e-9),
        (2, 2.0),
        (0.25, 0.25),
    ],
)
def test_quantities(text: str | float, value: float) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text",
    # The first line is TestQuantityParseFail of apimachinery's quantity_test.go.
    [
        *("1.1.M", "1+1.0M", "0.1mi", "0.1am", "aoeu", ".5i", "1i", "-3.01i", "-3.01e-", " 1", "1 "),
        *("", ".", "+", "m", "Ki", "1K", "1ki", "1e", "1Ee3", "0x10", "1_000", "١", "nan", "inf"),
        *("1e31", "1e999999", "9" * 99, "1" * 10_000 + "x"),
        *(math.nan, math.inf, 10**400, -(10**5000), True, None, [], b"1"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else type(value).__name__,
)
def test_nonsense_is_refused(text: str | float) -> None:
    with pytest.raises(InputError, match="quantity"):
        parse_quantity(text)


@given(st.decimals(-(10**9), 10**9, places=3), st.sampled_from(["n", "u", "m", "", "k", "M", "G", "e-2", "e4"]))
def test_decimal_quantities_are_the_nearest_float(number: Decimal, suffix: str) -> None:
    exponents = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "e-2": -2, "e4": 4}
    exact = number.scaleb(exponents[suffix])
    if exact and abs(exact) < Decimal("1e-9"):
        exact = Decimal("1e-9").copy_sign(exact)
    assert parse_quantity(f"{number:f}{suffix}") == float(exact)
