"""CronJob pods that still run when the services of a rollout are released: on every second node, from 02:00 to 05:00.

The model knows them from its history. To have the release at 04:00 although servers and extender follow the real
clock, the model's time zone is the one in which it is four o'clock now.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np

from base.arrays import Floats, Ints
from benchmarks.clusters.history_directory import write_history
from benchmarks.clusters.read_history import read_cluster
from benchmarks.clusters.scenarios import nightly_jobs
from forecast.history import History
from forecast.resources import CPU, MEMORY
from testing.servers.cluster_objects import Manifest, job, pod, running
from trainer.history.files import HistoryFiles

NAMESPACE = "batch"
_USED, _REQUESTED = 0.6, 0.2
"""Of the CPU of its node, by a pod: while it runs, and by its request."""

_RUNS_SINCE = timedelta(hours=2)
_BYTES_PER_CORE = 2.0**30


@dataclass(frozen=True, slots=True)
class NightJobs:
    """One pod on each of some nodes.

    rows  : (n_jobs,) of the node
    owner : (n_jobs,) which CronJob: one for each size of node, named as `nightly_jobs` names them
    cores : (n_jobs,) that the pod uses while it runs
    """

    rows: Ints
    owner: Ints
    cores: Floats

    @property
    def requests(self) -> Floats:
        """(n_jobs, 2) cores and bytes."""
        return np.column_stack([self.cores * _REQUESTED / _USED, self.cores * _BYTES_PER_CORE])

    def usage(self, n_nodes: int, n_resources: int) -> Floats:
        """What the nodes use for them now: (n_nodes, n_resources)."""
        used = np.zeros((n_nodes, n_resources))
        used[self.rows, CPU], used[self.rows, MEMORY] = self.cores, self.cores * _BYTES_PER_CORE
        return used

    def jobs(self, now: datetime) -> list[Manifest]:
        """The Job that each CronJob has created two hours ago."""
        due = int((now - _RUNS_SINCE).timestamp()) // 60
        return [
            job(f"{name}-{due}", namespace=NAMESPACE, cron_job=name)
            for name in (f"night-{n:02d}" for n in np.unique(self.owner).tolist())
        ]

    def pods(self, made: Sequence[Manifest], node_names: Sequence[str], now: datetime) -> list[Manifest]:
        """The pods of these Jobs, which run on their nodes. made: the Jobs as the API server returned them."""
        since = (now - _RUNS_SINCE).strftime("%Y-%m-%dT%H:%M:%SZ")
        return [
            pod(
                f"{made[owner]['metadata']['name']}-{number:05d}",
                namespace=NAMESPACE,
                node=node_names[row],
                owner=made[owner],
                requests={"cpu": f"{round(cores * 1000)}m", "memory": f"{memory:.0f}"},
                status=running(since),
            )
            for number, (row, owner, (cores, memory)) in enumerate(
                zip(self.rows.tolist(), self.owner.tolist(), self.requests.tolist(), strict=True)
            )
        ]


def jobs_on_every_second_node(capacity: Floats) -> NightJobs:
    """A pod on every second node, in proportion to its CPU. capacity: (n_nodes, n_resources)"""
    sizes, owner = np.unique(capacity[:, CPU], return_inverse=True)
    rows = np.arange(0, len(capacity), 2)
    return NightJobs(rows, owner[rows], _USED * sizes[owner[rows]])


def history_with_nights(history: Path, jobs: NightJobs, seed: int) -> History:
    """The history as if CronJobs of these sizes had run every night."""
    cores = jobs.cores[np.unique(jobs.owner, return_index=True)[1]]
    nights = nightly_jobs(
        read_cluster(history), np.random.default_rng(seed), cores=cores.tolist(), requested=_REQUESTED / _USED
    )
    with tempfile.TemporaryDirectory(prefix="night-jobs-") as directory:
        write_history(nights, Path(directory))
        return HistoryFiles.open(Path(directory)).history()


def day_and_zone_of_four_o_clock(now: datetime) -> tuple[date, str]:
    """The local day, and the time zone without summer time in which it is between 04:00 and 05:00. now: aware"""
    ahead = (4 - now.astimezone(UTC).hour + 11) % 24 - 11  # -11..12 hours
    zone = f"Etc/GMT{-ahead:+d}" if ahead else "Etc/GMT"  # POSIX: the sign is that of what is added to get UTC
    return (now.astimezone(UTC) + timedelta(hours=ahead)).date(), zone
