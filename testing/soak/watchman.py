"""Looks at the cluster every other second, whatever happens in it, and at the memory of our processes every second."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import urllib3

from testing.clusters.gpu_nodes import overlapping
from testing.clusters.own_nodes import DOMAIN, OURS, overcommitted
from testing.processes.process_figures import resident_bytes
from testing.servers.cluster_objects import ClusterWriter, Manifest

if TYPE_CHECKING:
    from testing.soak.world import World

_OF_OTHERS: Final = "default-scheduler"
_MEMORY_EVERY, _CLUSTER_EVERY = 1.0, 2.0


def what_is_wrong(pods: Iterable[Manifest], nodes: Iterable[Manifest]) -> Iterator[str]:
    """Nodes past allocatable, cards that are given away twice, pods beyond the domain of their scheduler.

    pods : listed before the nodes: one that is gone by then, or whose node is, is nobody's fault
    """
    pods, nodes = list(pods), list(nodes)
    domains = {one["metadata"]["name"]: one["metadata"].get("labels", {}).get(DOMAIN, "") for one in nodes}
    there = [one for one in pods if one["spec"].get("nodeName", "") in domains]
    for name, much in overcommitted(there, nodes).items():
        yield f"node {name} has {much}"
    yield from overlapping(there, nodes)
    for one in there:
        wanted = "" if one["spec"]["schedulerName"] == _OF_OTHERS else OURS
        if domains[one["spec"]["nodeName"]] != wanted:
            yield f"pod {one['metadata']['name']} of {one['spec']['schedulerName']} is on {one['spec']['nodeName']}"


class Watchman:
    """Context manager: a thread.

    wrong  : what was ever wrong
    looks  : how often it looked at the cluster
    memory : bytes in use by name of the process and by day, one for each second
    """

    def __init__(self, world: World) -> None:
        self._world = world
        # An API server that is being restarted is not waited for: there is nothing to be seen meanwhile.
        self._writer = ClusterWriter(world.plane, in_flight=2)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.wrong: list[str] = []
        self.looks = 0
        self.memory: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(30)
        self._writer.close()

    def memory_of_days(self, name: str, days: Iterable[int]) -> list[float]:
        """Median of each day."""
        return [median(self.memory[name][day]) for day in days]

    def _run(self) -> None:
        looked = 0.0
        while not self._ended.wait(_MEMORY_EVERY):
            self._weigh({name: one.process.pid for name, one in self._world.ours.items() if one.process is not None})
            if time.monotonic() - looked >= _CLUSTER_EVERY:
                looked = time.monotonic()
                self._look()

    def _weigh(self, processes: Mapping[str, int]) -> None:
        for name, process in processes.items():
            try:
                self.memory[name][self._world.day].append(resident_bytes(process))
            except (OSError, LookupError):  # it has just been killed
                continue

    def _look(self) -> None:
        try:
            pods, nodes = self._writer.list_all("pods"), self._writer.list_all("nodes")
        except (urllib3.exceptions.HTTPError, RuntimeError):
            return
        self.looks += 1
        when = f"day {self._world.day}, {self._world.hour:04.1f} h"
        self.wrong += [f"{when}: {what}" for what in what_is_wrong(pods, nodes)]
