from __future__ import annotations

from prometheus_client import CollectorRegistry

from placement.node_rule_upkeep import DeviceCollector
from tests.placement.devices.device_world import INDEX, DeviceWorld, card_node, card_pod


def test_devices_are_counted_by_model() -> None:
    nodes = [card_node("a", 2, model="T4"), card_node("b", 4, model="T4"), card_node("c", 1), card_node("d")]
    pods = [
        card_pod("p", "a", n=1, said={INDEX: "0"}),
        card_pod("q", "a", milli=300, said={INDEX: "0"}),
        card_pod("r", "b", milli=250, said={INDEX: "3"}),
    ]
    registry = CollectorRegistry()
    registry.register(DeviceCollector(DeviceWorld(nodes, pods).table))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels)

    assert value("forecast_gpu_devices", model="T4") == 6 and value("forecast_gpu_devices", model="") == 1
    assert value("forecast_gpu_allocated_thousandths", model="T4") == 1250
    assert value("forecast_gpu_allocated_thousandths", model="") == 0
    assert value("forecast_gpu_device_conflicts") == 1
