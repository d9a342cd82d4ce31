from __future__ import annotations

import math

import pytest

from autoscaling.prices.list_prices import ListPrices, family, shipped_table
from tests.autoscaling.prices.priced_nodes import node

LIST = ListPrices(shipped_table())


def test_every_row_has_a_day_a_positive_price_and_is_there_once() -> None:
    table = shipped_table()
    assert len({(row.region, row.instance_type) for row in table}) == len(table) > 100
    assert all(0 < row.per_hour < 5 and row.vcpus > 0 and row.gib > 0 for row in table)
    assert {row.cloud for row in table} == {"aws", "gcp", "azure"}


@pytest.mark.parametrize(
    ("kind", "size", "where", "per_hour", "source"),
    [
        ("m5.xlarge", (4, 15.4), "us-east-1", 0.192, "list price of AWS, us-east-1, 2026-07-20"),
        ("m5.4xlarge", (16, 62), "us-east-1", 0.768, "list price of AWS, us-east-1, 2026-07-20, by vCPU"),
        ("c6g.large", (2, 3.7), "", 0.068, "list price of AWS, us-east-1, 2026-07-20, by vCPU"),
        ("t3.large", (2, 7.6), "us-east-1", 0.0832, "list price of AWS, us-east-1, 2026-07-20"),
        ("m5.xlarge", (4, 16), "eu-west-1", 0.192, "list price of AWS, us-east-1 in place of eu-west-1, 2026-07-20"),
        (
            "e2-highmem-8",
            (8, 62),
            "us-central1",
            0.361598,
            "list price of Google Cloud, us-central1, 2026-08-03, by vCPU",
        ),
        ("Standard_D4s_v5", (4, 15.6), "westeurope", 0.23, "list price of Azure, westeurope, 2026-06-18"),
        ("Standard_D8s_v5", (8, 31.3), "eastus", 0.384, "list price of Azure, eastus, 2026-06-18, by vCPU"),
    ],
)
def test_a_type_has_its_price_or_that_of_its_family_by_vcpu(
    kind: str, size: tuple[float, float], where: str, per_hour: float, source: str
) -> None:
    price = LIST.price_of(node("n", kind, *size, region=where))
    assert price is not None
    assert price.source == source
    assert price.per_hour == pytest.approx(per_hour, rel=1e-4)


@pytest.mark.parametrize(
    ("kind", "size", "labels"),
    [
        ("m5.xlarge", (4, 16), {"karpenter.sh/capacity-type": "spot"}),
        ("m5.xlarge", (4, 16), {"eks.amazonaws.com/capacityType": "SPOT"}),
        ("n2-standard-4", (4, 16), {"cloud.google.com/gke-spot": "true"}),
        ("Standard_D4s_v5", (4, 16), {"kubernetes.azure.com/scalesetpriority": "spot"}),
        ("m5.24xlarge", (96, 384), {}),  # larger than what was compared
        ("g5.2xlarge", (8, 32), {}),  # GPUs do not follow the vCPUs
        ("t3.nano", (2, 0.5), {}),  # not the memory of its family
        ("m5.2xlarge", (math.nan, math.nan), {}),
        ("m99.xlarge", (4, 16), {}),
        ("k3s", (4, 16), {}),
        ("", (4, 16), {}),
    ],
)
def test_what_the_table_cannot_know_has_no_price(kind: str, size: tuple[float, float], labels: dict[str, str]) -> None:
    assert LIST.price_of(node("n", kind, *size, labels=labels)) is None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("m5.xlarge", "m5"),
        ("c7i-flex.large", "c7i-flex"),
        ("n2-standard-4", "n2-standard"),
        ("Standard_D4as_v5", "Standard_Das_v5"),
        ("Standard_D4-2s_v5", ""),
        ("Standard_NC6s_v3", ""),
        ("c-4x-amd64-linux", ""),
    ],
)
def test_a_family_is_the_name_without_the_size(kind: str, expected: str) -> None:
    assert family(kind) == expected


@pytest.mark.parametrize(
    "labels", [{"kubernetes.io/os": "windows"}, {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}]
)
def test_what_the_price_of_a_type_leaves_out_gives_no_price(labels: dict[str, str]) -> None:
    assert LIST.price_of(node("n", "n1-standard-4", 4, 14.6)) is not None
    assert LIST.price_of(node("n", "n1-standard-4", 4, 14.6, labels=labels)) is None


def test_a_node_that_says_no_cores_has_no_price_by_them() -> None:
    assert LIST.price_of(node("n", "m5.4xlarge", 0, 0)) is None
