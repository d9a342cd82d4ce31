"""Which Services may be the cluster's metrics store, the most probable first. Pure.

A Service that a chart or operator is known to install for one comes before all others; those are scored by the words in
their names and labels, by their ports, and by their namespace.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from forecast_scheduler.discovery.known_stores import KNOWN_STORES, OTHER_PROGRAMS, PLACES_OF_MONITORING, KnownStore
from forecast_scheduler.discovery.services import ServiceFacts, ServicePort

PORTS_OF_STORES: Final = {9090: 5, 8428: 5, 8481: 5, 8429: 4, 10902: 4, 9009: 3, 9091: 3, 80: 2, 8080: 1, 443: 1}
"""Points of the ports on which stores listen by default, fewer for those that other programs have as well."""

# Only to choose between the ports of a Service.
_PORT_NAMES: Final = {"web": 3, "http-web": 3, "http-query": 3, "http": 3, "prometheus": 3, "http-metric": 2}
_OTHER_PORTS: Final = ("grpc", "reloader", "tenancy", "memberlist", "gossip", "cluster")
"""In the name of a port on which no query is answered."""

_WORDS: Final = {
    "prometheus": 6,
    "thanos": 5,
    "mimir": 5,
    "cortex": 5,
    "victoria": 5,
    "promql": 5,
    "metrics": 2,
    "tsdb": 2,
    "query": 2,
}
_PLACE_POINTS: Final = 2
_LEAST_POINTS: Final = 5
"""The port 9090 alone is enough, or a word with a port; less would ask any web server of the cluster."""

_KNOWN_POINTS: Final = 1_000.0
_KNOWN_PLACE_POINTS: Final = 100
"""More than the place of a product in KNOWN_STORES: of two known stores the one beside the cluster's tools is first."""


@dataclass(frozen=True, slots=True)
class StoreCandidate:
    """A Service that may be a store. product: "" = no known one; paths: before /api/v1, in the order of trying."""

    service: ServiceFacts
    port: ServicePort
    paths: tuple[str, ...]
    product: str
    points: float

    @property
    def scheme(self) -> str:
        return "https" if self.port.is_https else "http"

    @property
    def address(self) -> str:
        """The URL for pods of the cluster."""
        return f"{self.scheme}://{self.service.name}.{self.service.namespace}.svc:{self.port.number}"

    def __str__(self) -> str:
        return f"{self.service.namespace}/{self.service.name}:{self.port.number}"


def rank_services(services: Iterable[ServiceFacts]) -> list[StoreCandidate]:
    """Return those that may be a store, the most probable first."""
    found = [one for one in map(_candidate, services) if one is not None]
    return sorted(found, key=lambda one: (-one.points, one.service.namespace, one.service.name))


def _candidate(service: ServiceFacts) -> StoreCandidate | None:
    answering = [port for port in service.ports if not any(word in port.name for word in _OTHER_PORTS)]
    if not answering:
        return None
    port = max(answering, key=_port_points)
    in_place = bool(PLACES_OF_MONITORING.search(service.namespace))
    if (known := _known(service)) is not None:
        order = len(KNOWN_STORES) - KNOWN_STORES.index(known)
        # The operator's own Service stands for all Prometheus servers of its namespace.
        points = _KNOWN_POINTS + _KNOWN_PLACE_POINTS * in_place + 2 * order - service.is_headless
        return StoreCandidate(service, port, known.paths, known.product, points)
    program, part = _labels(service)
    words = (service.name, program, part)
    if any(OTHER_PROGRAMS.search(word) for word in words):
        return None
    points = sum(points for word, points in _WORDS.items() if any(word in one for one in words))
    points += PORTS_OF_STORES.get(port.number, 0) + _PLACE_POINTS * in_place - service.is_headless
    return StoreCandidate(service, port, ("", "/prometheus"), "", points) if points >= _LEAST_POINTS else None


def _known(service: ServiceFacts) -> KnownStore | None:
    """By its labels, else by its name."""
    program, part = _labels(service)
    by_labels = (known for known in KNOWN_STORES if known.labels.fullmatch(f"{program}/{part}"))
    if (known := next(by_labels, None)) is not None:
        return known
    if any(OTHER_PROGRAMS.search(word) for word in (service.name, program, part)):
        return None
    return next((known for known in KNOWN_STORES if known.name.fullmatch(service.name)), None)


def _labels(service: ServiceFacts) -> tuple[str, str]:
    """The program, and which part of it; "" = not said. Some charts put the part into the label app."""
    labels = service.labels
    named, app = labels.get("app.kubernetes.io/name", ""), labels.get("app", "")
    part = labels.get("app.kubernetes.io/component") or labels.get("component", "")
    return named or app or labels.get("k8s-app", ""), part or (app if named and app != named else "")


def _port_points(port: ServicePort) -> int:
    return PORTS_OF_STORES.get(port.number, 0) + _PORT_NAMES.get(port.name.removesuffix("s"), 0)
