"""Time and memory of reading history and fitting a model, against the number of services.

    python -m benchmarks.scale [--services 500 1000 1500 5000] [--days 28]
    python -m benchmarks.scale --dask-workers 2 --services 5000 10000 20000

Writes synthetic 5-minute histories in the history layout (one pod per service, evening peaks, noise), then runs two
processes, so that the peak memory of each is its own: the first full run, and the night after with the model of the
night before. Prints one line a size; "per 1,000 services" shows whether it grows linearly.

With --dask-workers N the series' work goes to a Dask cluster of N processes of one thread each on this machine. Seconds
are wall clock then, and the CPU seconds of the client and of all workers, and their peak memory, are printed as well.
The last line divides the nightly seconds per 1,000 services of the largest size by those of the smallest.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import command_line, machine_load, peak_gib
from forecast.resources import RESOURCES
from testing.processes.process_figures import cpu_seconds, peak_bytes

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


def run_once(directory: Path, night: str, model_file: Path, n_workers: int) -> dict[str, float]:
    """One process: read and fit as on the first night, or as on the night after it; seconds and peak memory."""
    from forecast.fit import fit
    from trainer.history.files import read_history

    started, cpu = time.perf_counter(), time.process_time()
    history = read_history(directory)
    figures = {"read_seconds": time.perf_counter() - started}
    with _cluster(n_workers) as workers:
        started = time.perf_counter()
        if night == "first":
            model = fit(history.before(history.n_days - 1))
            model_file.write_bytes(pickle.dumps(model))
        else:
            fit(history, previous=pickle.loads(model_file.read_bytes()))
        figures["fit_seconds"] = time.perf_counter() - started
        figures["workers_cpu_seconds"] = sum(cpu_seconds(worker) for worker in workers)
        figures["worker_gib"] = max((peak_bytes(worker) for worker in workers), default=0) / 2**30
    figures["cpu_seconds"] = time.process_time() - cpu
    figures["peak_gib"] = peak_gib()
    return figures


@contextmanager
def _cluster(n_workers: int) -> Iterator[list[int]]:
    """Send the series' work to a Dask cluster; gives the process ids of its workers. Without workers, stay here."""
    if not n_workers:
        yield []
        return
    from distributed import Client, LocalCluster
    from joblib import parallel_config

    with (
        tempfile.TemporaryDirectory() as scratch,
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=0,
            local_directory=scratch,
        ) as cluster,
        Client(cluster) as client,
        parallel_config(backend="dask"),
    ):
        yield list(client.run(os.getpid).values())


def _night(directory: Path, night: str, model_file: Path, n_workers: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.scale", "--child", str(directory), "--night", night]
    command += ["--model", str(model_file), "--dask-workers", str(n_workers)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: dict[str, float] = json.loads(printed.splitlines()[-1])
    return figures


def main() -> None:
    """Print a line per size."""
    parser = command_line(__doc__)
    parser.add_argument("--services", type=int, nargs="+", default=[500, 1000, 1500, 5000])
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--dask-workers", type=int, default=0, help="processes of a Dask cluster; 0 = none")
    for hidden in ("--child", "--model"):
        parser.add_argument(hidden, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--night", choices=("first", "next"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    n_workers = arguments.dask_workers
    if arguments.child:
        print(json.dumps(run_once(arguments.child, arguments.night, arguments.model, n_workers)))
        return
    print(machine_load())
    columns = ["services", "read s", "first fit s", "nightly fit s", "read + fit s", "per 1,000", "CPU s per 1,000"]
    columns += ["first GiB", "nightly GiB"] + ["workers' CPU s", "worker GiB"] * (n_workers > 0)
    print("  ".join(columns))
    per_thousand = []
    for n_services in arguments.services:
        with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as models:
            directory, model_file = Path(scratch), Path(models, "model")
            write_history(directory, n_services, arguments.days)
            first = _night(directory, "first", model_file, n_workers)
            night = _night(directory, "next", model_file, n_workers)
        total = night["read_seconds"] + night["fit_seconds"]
        cpu = night["cpu_seconds"] + night["workers_cpu_seconds"]
        per_thousand.append(1000 * total / n_services)
        row = [n_services, night["read_seconds"], first["fit_seconds"], night["fit_seconds"], total, per_thousand[-1]]
        row += [1000 * cpu / n_services, first["peak_gib"], night["peak_gib"]]
        row += [night["workers_cpu_seconds"], night["worker_gib"]] * (n_workers > 0)
        digits = [2 if "GiB" in name else 0 if name == "services" else 1 for name in columns]
        cells = [f"{value:,.{n}f}" for value, n in zip(row, digits, strict=True)]
        print("  ".join(f"{cell:>{len(name)}}" for cell, name in zip(cells, columns, strict=True)), flush=True)
    least, most = (pick(arguments.services) for pick in (min, max))
    if least < most:
        ratio = per_thousand[arguments.services.index(most)] / per_thousand[arguments.services.index(least)]
        print(f"seconds per 1,000 services at {most:,} / at {least:,} services: {ratio:.2f} (1 = linear)")


if __name__ == "__main__":
    main()
