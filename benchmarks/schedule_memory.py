"""Memory of `forecast-scheduler schedule` with a large cluster and a model, from a real API server.

    python -m benchmarks.schedule_memory [--nodes 5000] [--pods 100000] [--services 5000] [--more 5000]

The process reads the cluster, installs the model and makes all of its tables while somebody else has the Lease; then it
gets it and places more pods, of 200 services. Shown is what /proc says of the one process, its libraries included:
memory in use and the most that ever was, after either. Ends with status 1 beyond the limit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.harness import command_line, finish, outcome
from benchmarks.schedule_process import OUR_NAME, HeldProcess, prepare
from benchmarks.scheduler_load import LoadedCluster
from testing.processes.process_figures import cpu_seconds, peak_bytes, resident_bytes

_LIMIT: Final = 3 * 2**30
_LONGEST: Final = 600.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--services", type=int, default=5000)
    parser.add_argument("--more", type=int, default=5000, help="pods that are placed then")
    asked = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as scratch,
        LoadedCluster(asked.nodes, asked.pods, asked.services, Path(scratch)) as cluster,
    ):
        prepare(cluster.plane)
        began = time.perf_counter()
        with (
            cluster.bindings("more") as bindings,
            HeldProcess(cluster.plane, Path(scratch) / "ours", models=cluster.models) as ours,
        ):
            print(f"{asked.nodes} nodes, {asked.pods} pods, {asked.services} services")
            loaded = time.perf_counter() - began
            _show(f"loaded, at rest after {loaded:.0f} s, {cpu_seconds(ours.pid):.0f} s of CPU", ours.pid)
            cluster.batch("more", asked.more, n_services=200, scheduler_name=OUR_NAME)
            ours.release()
            bindings.times(asked.more, _LONGEST, ours.end_of_log)
            most = _show(f"{asked.more} more placed", ours.pid)
    holds = most <= _LIMIT
    print(f"  at most {_LIMIT / 2**30:.0f} GiB is wanted: {outcome(holds)}")
    finish(holds)


def _show(when: str, process: int) -> int:
    most = peak_bytes(process)
    print(f"  {when:46}{resident_bytes(process) / 2**20:7.0f} MiB in use,{most / 2**20:7.0f} at most", flush=True)
    return most


if __name__ == "__main__":
    main()
