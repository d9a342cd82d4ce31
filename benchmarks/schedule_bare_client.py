"""Binds pods to nodes that it is told, and does nothing else: what our own binder reaches without watch and deciding.

    python -m benchmarks.schedule_bare_client KUBECONFIG [--in-flight 128]

One line of JSON on stdin, [[namespace, name, uid, node], ...]; it says "ready", waits for another line, binds all of
them, and says how many were bound.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import command_line
from kube.client.kubernetes_client import api_client
from kube.decoding.decoding import decode_pod
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from scheduler.binding.bind_plugins import DefaultBinder
from scheduler.binding.in_flight_limit import InFlightLimit


async def bind_all(binder: DefaultBinder, placed: Iterator[tuple[PodInfo, str]], in_flight: int) -> int:
    """How many were bound, so many at a time."""

    async def some() -> int:
        n_bound = 0
        for pod, node in placed:
            n_bound += (await binder.bind(pod, node)).is_success
        return n_bound

    return sum(await asyncio.gather(*(some() for _ in range(in_flight))))


def main() -> None:
    """Read, wait, bind."""
    parser = command_line(__doc__)
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("--in-flight", type=int, default=128)
    asked = parser.parse_args()
    placed = [
        (decode_pod({"metadata": {"namespace": namespace, "name": name, "uid": uid}, "spec": {"containers": []}}), node)
        for namespace, name, uid, node in json.loads(sys.stdin.readline())
    ]
    session = ApiSession(api_client(asked.kubeconfig), connections=asked.in_flight)
    binder = DefaultBinder(session, InFlightLimit(asked.in_flight, clock=time.monotonic))
    session.start()
    gc.collect()
    gc.freeze()
    try:
        print("ready", flush=True)
        sys.stdin.readline()
        print(session.submit(bind_all(binder, iter(placed), asked.in_flight)).result(), flush=True)
    finally:
        session.stop()


if __name__ == "__main__":
    main()
