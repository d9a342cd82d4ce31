"""What the query by which a metrics store is found costs a real Prometheus.

    python -m benchmarks.store_search [--nodes 100,5000] [--runs 5]

A page with the metrics of each node that the query reads is scraped, and the query asked; it prints processor time of
the server per query, and its largest memory before and after. A search asks at most five servers.
"""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path

from benchmarks.harness import command_line, numbers
from forecast_scheduler.discovery.known_nodes import NODES_QUERY, known_nodes
from forecast_scheduler.discovery.services import ClusterNodes
from testing.processes.process_figures import child_named, cpu_seconds, peak_bytes
from testing.servers.exporter import Exporter
from testing.servers.prometheus import PrometheusServer
from testing.waiting import eventually
from trainer.prometheus.prometheus_connection import PrometheusConnection


def _address(number: int) -> str:
    return f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"


def page(n_nodes: int) -> str:
    """Of kube-state-metrics, cAdvisor and node-exporter: one series per node each, and what else has these names."""
    lines = []
    for number in range(n_nodes):
        node, address = f'node="n{number}"', _address(number)
        identity = f'system_uuid="{uuid.UUID(int=number)}",provider_id="aws:///zone-a/i-{number:017x}"'
        lines.append(f'kube_node_info{{{node},internal_ip="{address}",{identity}}} 1')
        lines += [f'kube_node_status_capacity{{{node},resource="{one}"}} 1' for one in ("cpu", "memory", "pods")]
        lines.append(f'machine_cpu_cores{{{node},instance="{address}:10250"}} 8')
        lines.append(f'node_memory_MemTotal_bytes{{instance="{address}:9100"}} 8')
    return "\n".join(lines) + "\n"


def measure(n_nodes: int, n_runs: int) -> str:
    """One line of figures."""
    text = page(n_nodes)
    nodes = ClusterNodes({f"n{number}": frozenset({_address(number)}) for number in range(n_nodes)})
    with tempfile.TemporaryDirectory() as directory, Exporter(lambda: text) as exporter:
        scrape = {"job_name": "nodes", "honor_labels": True, "scrape_interval": "60s", "scrape_timeout": "50s"}
        scrape |= {"static_configs": [{"targets": [exporter.address]}]}
        with PrometheusServer(Path(directory), scrapes=[scrape]) as server:
            connection = PrometheusConnection(server.url)
            assert eventually(lambda: bool(connection.instant("nodes", "count(kube_node_info)").labels), 120)
            process = child_named("prometheus")
            seconds, before = cpu_seconds(process), peak_bytes(process)
            for _ in range(n_runs):
                found = known_nodes(nodes, connection.instant("names of nodes", NODES_QUERY).labels)
            used, after = (cpu_seconds(process) - seconds) / n_runs, peak_bytes(process)
            connection.close()
            memory = f"{before / 1e6:.0f} -> {after / 1e6:.0f} MB"
            return f"{n_nodes} nodes: {used:.3f} s of processor time a query, {memory}; {found}"


def main() -> None:
    """Print a line for each number of nodes."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=numbers, default=[100, 5000])
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    for n_nodes in asked.nodes:
        print(measure(n_nodes, asked.runs), flush=True)


if __name__ == "__main__":
    main()
