from __future__ import annotations

from dataclasses import replace

import pytest

from base.errors import InputError
from kube.objects.objects import PodInfo
from placement.devices.declared_devices import indices_of
from placement.devices.device_demand import GpuDemand, asks_by_name, demand_mistake, gpu_demand
from placement.node_rule_settings import DeviceOptions
from tests.placement.devices.device_world import GPU, IDX, INDEX, MILLI, card_pod

OPTIONS = DeviceOptions()


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(card_pod("p"), None, id="nothing"),
        pytest.param(card_pod("p", n=1), GpuDemand(1, 1000), id="a card"),
        pytest.param(card_pod("p", n=2, milli=1000), GpuDemand(2, 1000), id="cards, and whole ones"),
        pytest.param(card_pod("p", milli=500), GpuDemand(1, 500), id="half a card"),
        pytest.param(card_pod("p", memory=4, milli=500), GpuDemand(1, 500, 4), id="memory and a share"),
        pytest.param(card_pod("p", memory=4, milli="half"), GpuDemand(1, 1, 4), id="memory and a mistake"),
    ],
)
def test_what_is_asked_for(pod: PodInfo, expected: GpuDemand | None) -> None:
    assert gpu_demand(pod, OPTIONS) == expected
    assert asks_by_name(pod, OPTIONS) == bool(expected and pod.requests.get(GPU))


@pytest.mark.parametrize("text", ["", "half", "-1", "0", "1001", "0.5", "5e2", "٥٠٠", "1" * 5000, " 500"])
def test_what_cannot_be_read_asks_for_nothing_and_is_a_mistake(text: str) -> None:
    pod = card_pod("p", milli=text)
    assert gpu_demand(pod, OPTIONS) is None
    said = demand_mistake(pod, OPTIONS)
    assert said == f"annotation {MILLI} is {text[:20]!r}: it must be a whole number from 1 to 1000"


def test_what_contradicts_itself_is_a_mistake() -> None:
    assert "leave one of them out" in demand_mistake(card_pod("p", n=1, milli=500), OPTIONS)
    assert "leave one of them out" in demand_mistake(card_pod("p", n=1, memory=4), OPTIONS)
    options = DeviceOptions(resources=(GPU, "amd.com/gpu"))
    both = replace(card_pod("p"), requests={GPU: 1.0, "amd.com/gpu": 2.0})
    assert "several resources" in demand_mistake(both, options) and gpu_demand(both, options) == GpuDemand(3, 1000)
    assert demand_mistake(replace(both, requests={"amd.com/gpu": 2.0}), options) == ""
    assert gpu_demand(replace(both, requests={GPU: 0.0, "amd.com/gpu": 2.0}), options) == GpuDemand(2, 1000)
    for right in (card_pod("p"), card_pod("p", n=1), card_pod("p", n=1, milli=1000), card_pod("p", memory=1, milli=1)):
        assert demand_mistake(right, OPTIONS) == ""


def test_a_share_by_memory_is_rounded_down_and_the_larger_of_two_counts() -> None:
    assert [GpuDemand(1, 1, 5).on(memory) for memory in (5, 6, 16, 4, 0)] == [1000, 833, 312, 1001, 1001]
    assert GpuDemand(1, 1, 16385).on(16384) == 1001 and GpuDemand(1, 1, 1).on(16384) == 1
    assert GpuDemand(1, 400, 5).on(16) == 400 and GpuDemand(1, 300, 5).on(16) == 312
    assert GpuDemand(2, 1000).on(0) == 1000


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("0,3", (0, 3)),
        ("3, 0", (0, 3)),
        ("1,1", None),
        ("-1,0", None),
        ("0,1024", None),
        ("0,²", None),
        ("0," * 9000, None),
    ],
)
def test_devices_that_a_pod_says_it_has(said: str, expected: tuple[int, ...] | None) -> None:
    assert indices_of(card_pod("p", n=2, said={INDEX: said}), GpuDemand(2, 1000)) == expected


def test_of_memory_the_card_that_the_plugin_was_told_of_counts() -> None:
    both = card_pod("p", memory=1, said={INDEX: "0", IDX: "1"})
    assert indices_of(both, GpuDemand(1, 1, 1)) == (1,)
    assert indices_of(both, GpuDemand(1, 500)) == (0,)
    assert indices_of(card_pod("p", memory=1, said={INDEX: "0", IDX: "-1"}), GpuDemand(1, 1, 1)) == (0,)
    assert indices_of(card_pod("p"), GpuDemand(1, 500)) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"resources": ("gpu",)},
        {"resources": (GPU, GPU)},
        {"resources": ("a b/c",)},
        {"shared_memory_resource": "memory"},
        {"count_resource": GPU},
    ],
)
def test_names_that_cannot_be_resources_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        DeviceOptions(**wrong)  # type: ignore[arg-type]


def test_sharing_can_be_left_out() -> None:
    options = DeviceOptions(shared_memory_resource="", count_resource="")
    assert gpu_demand(card_pod("p", memory=4), options) is None
    assert gpu_demand(card_pod("p", n=1), options) == GpuDemand(1, 1000)
