"""Binds every new pod of its name to the next node, at once: what our own binder reaches without any deciding.

    python -m benchmarks.job_storm_binder KUBECONFIG SCHEDULER_NAME [--in-flight 128]

One line of JSON on stdin, the names of the nodes; it says "ready", and goes on until stdin ends. It keeps no tables and
reads of a pod but its name and UID: no scheduler can be quicker on this API server with this client.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import command_line
from kube.client.kubernetes_client import api_client
from kube.decoding.decoding import decode_pod
from kube.session.api_session import ApiSession
from scheduler.binding.bind_plugins import DefaultBinder
from scheduler.binding.in_flight_limit import InFlightLimit
from testing.servers.watching import PODS, Watching


@dataclass(slots=True)
class _Address:
    url: str
    token: str
    ca_file: Path


def main() -> None:
    """Read, watch, bind."""
    parser = command_line(__doc__)
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("scheduler_name")
    parser.add_argument("--in-flight", type=int, default=128)
    asked = parser.parse_args()
    nodes = itertools.cycle(json.loads(sys.stdin.readline()))
    session = ApiSession(api_client(asked.kubeconfig), connections=asked.in_flight)
    binder = DefaultBinder(session, InFlightLimit(asked.in_flight, clock=time.monotonic))
    slots = asyncio.Semaphore(asked.in_flight)

    async def bind(metadata: Mapping[str, Any], node: str) -> None:
        fields = {key: metadata[key] for key in ("namespace", "name", "uid")}
        async with slots:
            status = await binder.bind(decode_pod({"metadata": fields, "spec": {"containers": []}}), node)
        if not status.is_success:
            print(f"{metadata['name']} was not bound: {status}", file=sys.stderr)

    def seen(kind: str, pod: Mapping[str, Any]) -> None:
        if kind == "ADDED":
            session.submit(bind(pod["metadata"], next(nodes)))

    session.start()
    gc.collect()
    gc.freeze()
    try:
        mine = f"spec.schedulerName={asked.scheduler_name},spec.nodeName="
        with Watching(_address(asked.kubeconfig), PODS, seen, {"fieldSelector": mine}):
            print("ready", flush=True)
            sys.stdin.read()
    finally:
        session.stop()


def _address(kubeconfig: Path) -> _Address:
    """Of a kubeconfig that ControlPlane wrote."""
    config = json.loads(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    return _Address(cluster["server"], config["users"][0]["user"]["token"], Path(cluster["certificate-authority"]))


if __name__ == "__main__":
    main()
