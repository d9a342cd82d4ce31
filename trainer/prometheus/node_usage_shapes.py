"""Shapes in which the usage of nodes is exposed."""

from __future__ import annotations

from typing import Final

from trainer.prometheus.shape import (
    ONE_CORE,
    PHYSICAL_DISKS,
    PHYSICAL_INTERFACES,
    WHOLE_CPU,
    Shape,
    both_ways,
    bytes_of_nodes,
    on_node,
)

_ROOT = 'id="/"'


def _mean(metric: str) -> str:
    return f"avg_over_time({metric}[{{window}}])"


def _largest(vector: str) -> str:
    return f"max by (node) ({on_node(vector)})"


def _windows_bytes(one: str, other: str, label: str) -> str:
    # HarddiskVolume1 and the like are the parts that have no letter; _Total is the sum once more.
    selector = f'{{{label}!~"_Total|HarddiskVolume.*|isatap.*|.*[Ll]oopback.*|vEthernet.*"}}[{{window}}]'
    union = both_ways(f"rate({one}{selector})", f"rate({other}{selector})", label)
    return f"sum by (node) (max by (node, {label}, direction) ({on_node(f'({union})')}))"


NODE_EXPORTER: Final = Shape(
    name="node-exporter",
    says="{n} are measured by node-exporter",
    there=f"group by (node) ({on_node('node_memory_MemAvailable_bytes')})",
    reads={
        "node_cpu": "sum by (node) (max by (node, cpu, mode) ({}))".replace(
            "{}", on_node('rate(node_cpu_seconds_total{mode!~"|idle|iowait|steal"}[{window}])')
        ),
        "node_memory": _largest(f"({_mean('node_memory_MemTotal_bytes')} - {_mean('node_memory_MemAvailable_bytes')})"),
        "node_disk": bytes_of_nodes(
            "node_disk_read_bytes_total", "node_disk_written_bytes_total", "device", PHYSICAL_DISKS
        ),
        "node_network": bytes_of_nodes(
            "node_network_receive_bytes_total", "node_network_transmit_bytes_total", "device", PHYSICAL_INTERFACES
        ),
    },
)
"""From 0.16 on, on a kernel from 3.14 on."""

NO_MEM_AVAILABLE: Final = Shape(
    name="node-exporter without MemAvailable",
    says="{n} do not tell available memory (kernels before 3.14): free memory, buffers and cache are taken for it",
    there=f"group by (node) ({on_node('node_memory_MemFree_bytes')})",
    reads={
        "node_memory": _largest(
            "("
            + " - ".join(_mean(f"node_memory_{part}_bytes") for part in ("MemTotal", "MemFree", "Buffers", "Cached"))
            + ")"
        )
    },
)

OLD_NODE_EXPORTER: Final = Shape(
    name="node-exporter before 0.16",
    says="{n} have the metric names of node-exporter before 0.16",
    there=f"group by (node) ({on_node('node_memory_MemTotal')})",
    reads={
        "node_cpu": "sum by (node) (max by (node, cpu, mode) ({}))".replace(
            "{}", on_node('rate(node_cpu{mode!~"|idle|iowait|steal"}[{window}])')
        ),
        "node_memory": _largest(
            f"({_mean('node_memory_MemTotal')} - ({_mean('node_memory_MemAvailable')} or {_mean('node_memory_MemFree')}"
            f" + {_mean('node_memory_Buffers')} + {_mean('node_memory_Cached')}))"
        ),
        "node_disk": bytes_of_nodes("node_disk_bytes_read", "node_disk_bytes_written", "device", PHYSICAL_DISKS),
        "node_network": bytes_of_nodes(
            "node_network_receive_bytes", "node_network_transmit_bytes", "device", PHYSICAL_INTERFACES
        ),
    },
)

WINDOWS: Final = Shape(
    name="windows_exporter",
    says="{n} are measured by windows_exporter",
    there=f"group by (node) ({on_node('windows_cpu_time_total')})",
    reads={
        "node_cpu": "sum by (node) (max by (node, core, mode) ({}))".replace(
            "{}", on_node('rate(windows_cpu_time_total{mode!~"|idle"}[{window}])')
        ),
        "node_memory": _largest(
            f"(({_mean('windows_memory_physical_total_bytes')} or {_mean('windows_os_visible_memory_bytes')} or "
            f"{_mean('windows_cs_physical_memory_bytes')}) - {_mean('windows_memory_available_bytes')})"
        ),
        "node_disk": _windows_bytes(
            "windows_logical_disk_read_bytes_total", "windows_logical_disk_write_bytes_total", "volume"
        ),
        "node_network": _windows_bytes("windows_net_bytes_received_total", "windows_net_bytes_sent_total", "nic"),
    },
)

KUBELET_NODE: Final = Shape(
    name="kubelet's /metrics/resource",
    says="{n} have no node-exporter: their kubelets say how much CPU and memory they use",
    there=f"group by (node) ({on_node('node_cpu_usage_seconds_total')})",
    alone=True,
    reads={
        "node_cpu": _largest("rate(node_cpu_usage_seconds_total[{window}])"),
        "node_memory": _largest(_mean("node_memory_working_set_bytes")),
    },
)

ROOT_CGROUP: Final = Shape(
    name="root cgroup of cAdvisor",
    says="{n} have no node-exporter: the root cgroup of cAdvisor is read",
    there=f"group by (node) ({on_node(f'container_cpu_usage_seconds_total{{{_ROOT}}}')})",
    alone=True,
    reads={
        "node_cpu": (
            f"{_largest(f'rate(container_cpu_usage_seconds_total{{{_ROOT},{WHOLE_CPU}}}[{{window}}])')} or "
            "sum by (node) (max by (node, cpu) "
            f"({on_node(f'rate(container_cpu_usage_seconds_total{{{_ROOT},{ONE_CORE}}}[{{window}}])')}))"
        ),
        "node_memory": _largest(_mean(f"container_memory_working_set_bytes{{{_ROOT}}}")),
        "node_disk": bytes_of_nodes(
            "container_fs_reads_bytes_total", "container_fs_writes_bytes_total", "device", PHYSICAL_DISKS, f",{_ROOT}"
        ),
        "node_network": bytes_of_nodes(
            "container_network_receive_bytes_total",
            "container_network_transmit_bytes_total",
            "interface",
            PHYSICAL_INTERFACES,
            f",{_ROOT}",
        ),
    },
)

NODE_SHAPES: Final = (NODE_EXPORTER, NO_MEM_AVAILABLE, OLD_NODE_EXPORTER, WINDOWS, KUBELET_NODE, ROOT_CGROUP)
