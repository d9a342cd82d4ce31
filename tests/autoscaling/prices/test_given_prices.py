from __future__ import annotations

import pytest

from autoscaling.prices.given_prices import GivenPrices
from base.errors import InputError
from tests.autoscaling.prices.priced_nodes import node

SPOT = {"karpenter.sh/capacity-type": "spot"}
PRICES = GivenPrices(
    {
        "m5.large": 0.1,
        "m5.large spot": 0.03,
        "c5.large": 0.2,
        "pool=web": 0.5,
        "pool=web,topology.kubernetes.io/region=eu": 0.6,
        "16 cores, 64 GiB": 0.9,
    },
    "settings",
)


@pytest.mark.parametrize(
    ("kind", "cores", "labels", "expected"),
    [
        ("m5.large", 2, {}, 0.1),
        ("m5.large", 2, SPOT, 0.03),
        ("c5.large", 2, SPOT, None),  # a price on demand does not hold for spot capacity
        ("m5.large", 2, {"pool": "web"}, 0.5),  # labels before the type
        ("m5.large", 2, {"pool": "web", "topology.kubernetes.io/region": "eu"}, 0.5),  # the first that matches
        ("other", 16, {}, 0.9),  # by its group
        ("m5.large", 16, {}, 0.1),  # the type before the group
        ("", 2, {}, None),
    ],
)
def test_labels_come_before_the_type_and_the_type_before_the_group(
    kind: str, cores: float, labels: dict[str, str], expected: float | None
) -> None:
    price = PRICES.price_of(node("n", kind, cores, cores * 4, labels=labels))
    assert (None if price is None else price.per_hour) == expected


def test_labels_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(InputError, match="label selector"):
        GivenPrices({"a b=c": 1.0}, "settings")
