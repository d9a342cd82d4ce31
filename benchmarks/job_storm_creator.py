"""Creates job pods as fast as it can, and notes when the API server had each: the storm of benchmarks/job_storm.py.

    python -m benchmarks.job_storm_creator KUBECONFIG [--in-flight 64]

One line of JSON on stdin, {name, pods, scheduler_name}: so many pods of 30 CronJobs, ten to a Job. One line on stdout,
{name of the pod: when the answer to its creation came}, by time.perf_counter(), which is one clock for all processes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.harness import command_line
from benchmarks.scheduler_load import BATCH_LABEL
from kube.client.kubernetes_client import api_client
from kube.session.api_session import ApiSession
from testing.servers.cluster_objects import Manifest, pod

NAMESPACE: Final = "default"
_CRON_JOBS, _PODS_OF_A_JOB = 30, 10
_MINUTE: Final = 29_300_000
"""At the end of the names of Jobs of CronJobs: the minute they were due."""
_SECONDS: Final = 30.0


def job_pods(batch: str, n_pods: int, scheduler_name: str) -> Iterator[Manifest]:
    """Those of one Job come together, as its controller makes them."""
    for i in range(n_pods):
        job = i // _PODS_OF_A_JOB
        name = f"{batch}-{job % _CRON_JOBS}-{_MINUTE + job // _CRON_JOBS}"
        made = pod(
            f"{batch}-{i:05d}",
            namespace=NAMESPACE,
            owner={"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"uid-{name}"},
            cpu="100m",
            memory="128Mi",
            labels={BATCH_LABEL: batch, "batch.kubernetes.io/job-name": name},
            scheduler_name=scheduler_name,
        )
        made["spec"]["restartPolicy"] = "Never"
        yield made


async def create_all(session: ApiSession, pods: list[tuple[str, bytes]], in_flight: int) -> dict[str, float]:
    """pods: name and manifest. When each was answered. Raises RuntimeError for one that is refused."""
    left, answered = iter(pods), dict[str, float]()

    async def some() -> None:
        for name, body in left:
            answer = await session.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", body, seconds=_SECONDS)
            if not answer.is_success:
                raise RuntimeError(f"{name}: {answer.status} {answer.text}")
            answered[name] = time.perf_counter()

    await asyncio.gather(*(some() for _ in range(in_flight)))
    return answered


def main() -> None:
    """A batch for each line, until stdin ends."""
    parser = command_line(__doc__)
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("--in-flight", type=int, default=64)
    asked = parser.parse_args()
    session = ApiSession(api_client(asked.kubeconfig), connections=asked.in_flight)
    session.start()
    try:
        print("ready", flush=True)
        for line in sys.stdin:
            told = json.loads(line)
            made = job_pods(told["name"], told["pods"], told["scheduler_name"])
            pods = [(one["metadata"]["name"], json.dumps(one).encode()) for one in made]
            print(json.dumps(session.submit(create_all(session, pods, asked.in_flight)).result()), flush=True)
    finally:
        session.stop()


if __name__ == "__main__":
    main()
