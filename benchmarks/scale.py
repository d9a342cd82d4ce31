"""Time and memory of reading history and fitting a model, against the number of services.

    python -m benchmarks.scale [--services 500 1500 5000] [--days 28]

Writes synthetic 5-minute histories in the history layout (one pod per service, evening peaks, noise), then runs, each
in a process of its own so that its peak memory is its own: the first full run, and the night after with the
model of the night before. Prints one line a size; "per 1,000 services" shows whether it grows linearly.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import command_line, peak_gib
from forecast.resources import RESOURCES

_STEP_MINUTES = 5
_STEPS_PER_DAY = 24 * 60 // _STEP_MINUTES
_START = datetime(2026, 5, 4, tzinfo=UTC)
_LEVEL = (1.0, 2e9, 5e6, 1e7, 5e4)


def write_history(directory: Path, n_services: int, n_days: int) -> None:
    """A history of n_services services of one pod each, on one node per 30 pods."""
    rng = np.random.default_rng(n_services)
    nodes = [f"node-{i:04d}" for i in range(max(1, n_services // 30))]
    namespaces = pa.array([f"team-{i % 40:02d}" for i in range(n_services)])
    services = pa.array([f"Deployment/service-{i:05d}" for i in range(n_services)])
    pods = pa.array([f"service-{i:05d}-7d9f8b6c5d-x2x4z" for i in range(n_services)])
    on_node = np.arange(n_services) % len(nodes)
    level = np.exp(rng.normal(0, 1, n_services))
    peak_hour = np.where(rng.random(n_services) < 0.2, 12.0, 20.0) + rng.normal(0, 1, n_services)
    columns = [r.column for r in RESOURCES]
    schema = pa.schema(
        [("timestamp", pa.timestamp("ms", tz="UTC"))]
        + [(name, pa.dictionary(pa.int32(), pa.string())) for name in ("namespace", "service", "pod", "node")]
        + [(column, pa.float32()) for column in columns]
    )
    node_schema = pa.schema(
        [("timestamp", pa.timestamp("ms", tz="UTC")), ("node", pa.string())] + [(c, pa.float32()) for c in columns]
    )
    with (
        pq.ParquetWriter(directory / "usage.parquet", schema, compression="zstd") as usage_file,
        pq.ParquetWriter(directory / "nodes.parquet", node_schema, compression="zstd") as node_file,
    ):
        for day in range(n_days):
            start = _START + timedelta(days=day)
            times = np.datetime64(start.replace(tzinfo=None), "ms") + np.arange(_STEPS_PER_DAY) * np.timedelta64(
                _STEP_MINUTES, "m"
            )
            hours = np.arange(_STEPS_PER_DAY) * _STEP_MINUTES / 60
            shape = 0.15 + np.exp(-((hours[:, None] - peak_hour) ** 2) / 8)  # (steps, n_services)
            pod_index = np.tile(np.arange(n_services, dtype=np.int32), _STEPS_PER_DAY)
            rows: list[pa.Array] = [pa.array(np.repeat(times, n_services), pa.timestamp("ms", tz="UTC"))]
            rows += [
                pa.DictionaryArray.from_arrays(pa.array(pod_index), names) for names in (namespaces, services, pods)
            ]
            rows.append(pa.DictionaryArray.from_arrays(pa.array(on_node[pod_index].astype(np.int32)), pa.array(nodes)))
            node_rows: list[pa.Array] = [
                pa.array(np.repeat(times, len(nodes)), pa.timestamp("ms", tz="UTC")),
                pa.array(np.tile(np.array(nodes), _STEPS_PER_DAY)),
            ]
            for unit in _LEVEL:
                noise = np.exp(0.2 * rng.standard_normal(shape.shape, dtype=np.float32))
                values = (unit * level * shape * noise).astype(np.float32)
                rows.append(pa.array(values.reshape(-1)))
                totals = np.zeros((_STEPS_PER_DAY, len(nodes)), dtype=np.float32)
                np.add.at(totals.T, on_node, values.T)
                node_rows.append(pa.array((totals * 1.05).reshape(-1)))
            usage_file.write_table(pa.Table.from_arrays(rows, schema=schema), row_group_size=1_000_000)
            node_file.write_table(pa.Table.from_arrays(node_rows, schema=node_schema))
    pq.write_table(
        pa.table(
            {
                "namespace": namespaces,
                "service": services,
                "pod": pods,
                "request_cpu_cores": level * 0.7,
                "request_memory_bytes": level * 2e9,
            }
        ),
        directory / "pods.parquet",
    )
    pq.write_table(
        pa.table({"node": nodes} | {c: np.full(len(nodes), 60.0 * u) for c, u in zip(columns, _LEVEL, strict=True)}),
        directory / "capacity.parquet",
    )
    (directory / "history.json").write_text(json.dumps({"time_zone": "UTC", "step": f"{_STEP_MINUTES}m"}))


def run_once(directory: Path) -> dict[str, object]:
    """One process: read, fit as on the first night, fit as on the next; seconds and peak memory after each."""
    from forecast.fit import fit
    from trainer.history.files import read_history

    started = time.perf_counter()
    history = read_history(directory)
    read = time.perf_counter() - started
    yesterday = fit(history.before(history.n_days - 1))
    first = time.perf_counter() - started - read
    fit(history, previous=yesterday)
    night = time.perf_counter() - started - read - first
    return {
        "read_seconds": read,
        "first_fit_seconds": first,
        "nightly_fit_seconds": night,
        "peak_gib": peak_gib(),
        "predictor_series": yesterday.info["predictor_series"],
    }


def main() -> None:
    """Print a line per size."""
    parser = command_line(__doc__)
    parser.add_argument("--services", type=int, nargs="+", default=[500, 1500, 5000])
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(run_once(arguments.child)))
        return
    print(
        f"{'services':>8} {'read s':>8} {'first fit s':>12} {'nightly fit s':>14} "
        f"{'nightly total per 1,000':>24} {'peak GiB':>9}"
    )
    for n_services in arguments.services:
        with tempfile.TemporaryDirectory() as scratch:
            write_history(Path(scratch), n_services, arguments.days)
            command = [sys.executable, "-m", "benchmarks.scale", "--child", scratch]
            figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        total = figures["read_seconds"] + figures["nightly_fit_seconds"]
        print(
            f"{n_services:>8} {figures['read_seconds']:>8.1f} {figures['first_fit_seconds']:>12.1f} "
            f"{figures['nightly_fit_seconds']:>14.1f} {total / n_services * 1000:>24.1f} {figures['peak_gib']:>9.2f}"
        )
        print(f"         series each predictor was evaluated on: {figures['predictor_series']}")


if __name__ == "__main__":
    main()
