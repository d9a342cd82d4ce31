"""Readable quantities: rounded up, and read back as what they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.requests.rounding import MI, cpu_text, memory_text, readable_bytes, readable_cores
from kube.objects.quantity import parse_quantity


@pytest.mark.parametrize(
    ("cores", "text"),
    [(0.0, "10m"), (0.0123, "15m"), (0.5, "500m"), (0.501, "510m"), (1.201, "1210m"), (2.0, "2"), (4.11, "4150m")],
)
def test_cpu(cores: float, text: str) -> None:
    assert cpu_text(readable_cores(cores)) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0.0, "16Mi"),
        (63.2 * MI, "64Mi"),
        (65 * MI, "80Mi"),
        (1024 * MI, "1Gi"),
        (1025 * MI, "1088Mi"),
        (1e10, "9728Mi"),
    ],
)
def test_memory(count: float, text: str) -> None:
    assert memory_text(readable_bytes(count)) == text


@given(st.floats(0, 500), st.floats(0, 2.0**42))
def test_rounding_never_lowers_and_is_read_back(cores: float, count: float) -> None:
    assert parse_quantity(cpu_text(readable_cores(cores))) >= cores * (1 - 1e-6)
    assert parse_quantity(memory_text(readable_bytes(count))) >= count - 1
    assert readable_cores(readable_cores(cores)) == pytest.approx(readable_cores(cores))
