"""What is said of a node's CPU manager, by attributes, by Koordinator's annotations and by labels."""

from __future__ import annotations

import json

import pytest

from base.errors import InputError
from placement.topology.node_zones import KOORDINATOR_CPUS, KOORDINATOR_POLICY, CpuManager, cpu_manager, sockets_of

CPUS = {
    "detail": [
        {"id": n, "core": n % 4, "socket": 0, "node": n % 2, "vendor": "x"} for n in range(8)
    ]
}  # fmt: skip


def test_nothing_is_said() -> None:
    assert cpu_manager({}, {}) == CpuManager()
    assert cpu_manager({"topologyManagerPolicy": "restricted"}, {"a": None}) == CpuManager()


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"cpuManagerPolicy": "static"}, CpuManager()),
        ({"cpuManagerPolicy": "none"}, CpuManager(pins=False)),
        ({"memoryManagerPolicy": "None"}, CpuManager(aligns_memory=False)),
        ({"threadsPerCore": "8"}, CpuManager(threads_per_core=8)),
        (
            {"cpuManagerPolicyOptions": "full-pcpus-only=true, align-by-socket=1,distribute-cpus-across-numa=true"},
            CpuManager(full_cores=True, align_by_socket=True),
        ),
        ({"cpuManagerPolicyOptions": "distribute-cpus-across-cores=T"}, CpuManager(spreads_threads=True)),
    ],
)
def test_attributes(attributes: dict[str, str], expected: CpuManager) -> None:
    assert cpu_manager(attributes, {}) == expected


def test_koordinator() -> None:
    policy = {"policy": "static", "options": {"full-pcpus-only": "true"}, "reservedCPUs": "0-1"}
    said = {KOORDINATOR_POLICY: json.dumps(policy), KOORDINATOR_CPUS: json.dumps(CPUS)}
    assert cpu_manager({}, said) == CpuManager(full_cores=True, threads_per_core=2)
    assert sockets_of(said) == {0: "0", 1: "0"} and sockets_of({}) == {}
    assert cpu_manager({}, {KOORDINATOR_POLICY: '{"policy": "none"}'}) == CpuManager(pins=False)
    ours = {"cpuManagerPolicyOptions": "", "threadsPerCore": "1", "cpuManagerPolicy": "none"}
    assert cpu_manager(ours, said) == CpuManager(pins=False, threads_per_core=1), "attributes come first"


@pytest.mark.parametrize(
    ("attributes", "annotations", "why"),
    [
        ({"threadsPerCore": "two"}, {}, "threadsPerCore is 'two': it must be a whole number from 1 to 8"),
        ({"cpuManagerPolicyOptions": "full-pcpus-only"}, {}, 'it must be such as "full-pcpus-only=true"'),
        ({}, {KOORDINATOR_CPUS: "{"}, f"annotation {KOORDINATOR_CPUS} cannot be read"),
        ({}, {KOORDINATOR_POLICY: "[]"}, f"annotation {KOORDINATOR_POLICY} cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said(attributes: dict[str, str], annotations: dict[str, str], why: str) -> None:
    with pytest.raises(InputError) as raised:
        cpu_manager(attributes, annotations)
    assert why in str(raised.value)
