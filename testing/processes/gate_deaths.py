"""Advisors, webhooks and an API server that fail while pods come, and for how long our gate holds each of these pods.

2 advisors --Lease--> 2 webhooks, of which the API server asks the first --gate--> pods, a rate of them
             |
             a death in the middle
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import urllib3

from placement.gate_exemptions import ADVICE
from testing.clusters.advised_site import Site, advised_site, pod_of
from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import Api, WebhookProcess, configuration
from testing.servers.applying import Applier
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.kustomize import built
from testing.servers.shipped_rights import ShippedRights
from testing.servers.watching import PODS, Watching
from testing.waiting import eventually

ALLOWED_MORE: Final = 5.0
"""Seconds beyond gate_timeout for which a pod may be held whatever dies."""

_BEFORE, _AFTER = 3.0, 3.0
_CREATORS: Final = 32


class HeldTimes:
    """Since when and until when our gate held each pod, as a watch of an own sees it. Time in which the API server was
    away does not count: nobody can release a pod then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: dict[str, float] = {}
        self._until: dict[str, float] = {}
        self.away = (0.0, 0.0)

    def seen(self, kind: str, pod: dict[str, Any]) -> None:
        """Note an event of the watch, as Watching tells it."""
        gates = pod["spec"].get("schedulingGates", [])
        is_held = kind != "DELETED" and {"name": ADVICE} in gates
        uid, now = pod["metadata"]["uid"], time.monotonic()
        with self._lock:
            if is_held:
                self._since.setdefault(uid, now)
            elif uid in self._since:
                self._until.setdefault(uid, now)

    def all(self) -> list[float]:
        """Seconds for which each pod was held, or has been held until now."""
        with self._lock:
            now, (left, back) = time.monotonic(), self.away
            spans = [(since, self._until.get(uid, now)) for uid, since in self._since.items()]
        return [until - since - max(0.0, min(until, back) - max(since, left)) for since, until in spans]

    def n_held(self) -> int:
        """Pods that are held now."""
        with self._lock:
            return len(self._since) - len(self._until)


@dataclass
class Advised:
    """An installation with the rights and policies that are shipped. advisors: the first leads"""

    site: Site
    api: Api
    advisors: Sequence[ScorerProcess]
    webhooks: Sequence[WebhookProcess]
    times: HeldTimes

    def create(self, prefix: str, rate: float, seconds: float) -> float:
        """Create pods at a rate; returns the rate of those that were stored. The API server may be away meanwhile."""
        n, began = int(rate * seconds), time.monotonic()

        def one(number: int) -> int:
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            made = pod_of(f"{prefix}-{number:05d}", self.site.sets[number % len(self.site.sets)])
            with suppress(RuntimeError, urllib3.exceptions.HTTPError):
                self.site.writer.create(made)
                return 1
            return 0

        with ThreadPoolExecutor(_CREATORS) as pool:
            n_stored = sum(pool.map(one, range(n)))
        return n_stored / (time.monotonic() - began)


Death = Callable[[Advised], None]


def _signal(processes: Sequence[ScorerProcess], number: int) -> None:
    for one in processes:
        assert one.process is not None
        one.process.send_signal(number)


def _killed(of: Advised) -> None:
    _signal([*of.advisors, of.webhooks[0]], signal.SIGKILL)


def _killed_beside(of: Advised) -> None:
    _signal([*of.advisors, of.webhooks[1]], signal.SIGKILL)


def _ended(of: Advised) -> None:
    _signal(of.advisors, signal.SIGTERM)


def _all_ended(of: Advised) -> None:
    _signal([*of.advisors, *of.webhooks], signal.SIGTERM)


def _node_lost(of: Advised) -> None:
    """The processes neither answer nor close their connections."""
    _signal([of.advisors[0], of.webhooks[0]], signal.SIGSTOP)


def _leader_killed(of: Advised) -> None:
    _signal(of.advisors[:1], signal.SIGKILL)


def _api_server_away(of: Advised) -> None:
    left = time.monotonic()
    of.site.plane.api_server.pause()
    time.sleep(60.0)
    of.times.away = (left, time.monotonic())
    of.site.plane.api_server.resume()


DEATHS: Final[Mapping[str, Death]] = {
    "all advisors and the webhook that is asked, kill -9": _killed,
    "all advisors and the other webhook, kill -9": _killed_beside,
    "the leader, kill -9": _leader_killed,
    "all advisors, SIGTERM": _ended,
    "all advisors and webhooks, SIGTERM": _all_ended,
    "a node with the leader and the webhook that is asked": _node_lost,
    "the API server, for a minute": _api_server_away,
}


@dataclass(frozen=True)
class Held:
    """What a death did.

    rate      : of creations, pods/s
    n_pods    : that our gate held at any time
    longest   : seconds for which one of them was held
    n_over    : held for longer than is allowed
    n_advised : by the annotation, of all pods that were created
    """

    rate: float
    n_pods: int
    longest: float
    n_over: int
    n_advised: int
    logs: Sequence[str] = field(repr=False, default=())


@contextmanager
def advised(directory: Path, advise: Mapping[str, Any]) -> Iterator[Advised]:
    """Yield the installation once its webhook holds new pods. advise: settings that are not as shipped"""
    with ExitStack() as stack:
        site = stack.enter_context(advised_site(directory))
        api = stack.enter_context(Api(site.plane))
        applier = stack.enter_context(Applier(site.plane))
        shipped = ShippedRights(site.plane, applier, built("overlays/advisor"))
        stack.enter_context(KubeScheduler(site.plane))
        settings = {"scorer": {"model_every": "1s"}, "advise": dict(advise)}
        advisors, webhooks = list[ScorerProcess](), list[WebhookProcess]()
        for number in range(2):
            arguments = ("--kubeconfig", shipped.kubeconfig("advisor"), "--models", site.models)
            place = directory / f"advisor-{number}"
            one = ScorerProcess(place, *arguments, settings=settings, command="advise", forked=True)
            advisors.append(stack.enter_context(one))
            _await(one, "forecast_degradation_level", lambda level: level < 3)
            _await(advisors[0], "forecast_leader", lambda leads: leads == 1)
        for number in range(2):
            place = directory / f"webhook-{number}"
            webhook = WebhookProcess(place, shipped.kubeconfig("webhook"), settings=settings, forked=True)
            webhooks.append(stack.enter_context(webhook))
        for owner in site.sets:
            namespace = {"kind": "Namespace", "metadata": {"name": owner["metadata"]["namespace"]}}
            api.patch(namespace, {"metadata": {"labels": {ADVICE: "advise"}}})
        api.create(configuration(webhooks[0], timeoutSeconds=2))
        times = HeldTimes()
        stack.enter_context(Watching(site.plane, PODS, times.seen, patience_seconds=120.0))
        stack.callback(lambda: _signal([*advisors, *webhooks], signal.SIGCONT))
        for webhook in webhooks:
            _await(webhook, "forecast_webhook_holds_pods", lambda holds: holds == 1)
        yield Advised(site, api, advisors, webhooks, times)


def _await(process: ScorerProcess, metric: str, holds: Callable[[float], bool]) -> None:
    assert eventually(lambda: holds(process.metric(metric))), process.log


def held_through(death: Death, directory: Path, *, rate: float, limit: float, advise: Mapping[str, Any]) -> Held:
    """Create pods at a rate, let this happen among them, and wait until none is held.

    limit : seconds for which a pod may be held
    """
    with advised(directory, advise) as of:
        happened = threading.Timer(_BEFORE, death, [of])
        happened.start()
        reached = of.create("pod", rate, _BEFORE + _AFTER)
        happened.join()
        eventually(lambda: of.times.n_held() == 0, 2 * limit + 30.0)
        held = of.times.all()
        pods = of.site.stored("pod")
        n_advised = sum(
            1 for one in pods if '"expected_peak"' in one["metadata"].get("annotations", {}).get(ADVICE, "")
        )
        logs = [one.log[-2000:] for one in (*of.advisors, *of.webhooks)]
        longest = max(held, default=0.0)
        return Held(reached, len(held), longest, sum(1 for one in held if one > limit), n_advised, logs)
