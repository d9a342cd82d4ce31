"""Jobs by UID, as `cluster.tables.state.ClusterState` has them, for tests that have no cluster."""

from __future__ import annotations

from kube.decoding.jobs import JobInfo


class JobTable(dict[str, JobInfo]):
    """A mapping from the UID of each Job to the Job."""

    def put(self, job: JobInfo) -> None:
        self[job.uid] = job
