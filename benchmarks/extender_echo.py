"""The least that an extender can do: our own HTTP service, all nodes pass and all have the same points.

    python -m benchmarks.extender_echo --port N [--points 1]

What kube-scheduler reaches with it is what the protocol itself costs; what it loses with the real extender beside it
is what filters and scores cost. All nodes are named in the reply, as an extender has to that gives none of them 0.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from cluster.degradation import Level
from extender.extender_api import Filtered, VictimsByUid
from extender.service.extender_app import create_app
from kube.objects.objects import PodInfo
from scorer.answers import ScorerStatus
from serving.server import serve
from serving.server_settings import ServerOptions


class Echo:
    """Implements ExtenderApi."""

    def __init__(self, points: int = 1) -> None:
        self._points = points

    def filter(self, pod: PodInfo, nodes: Sequence[str]) -> Filtered:
        """All pass."""
        return Filtered(nodes)

    def prioritize(self, pod: PodInfo, nodes: Sequence[str], *, due: float = math.inf) -> Mapping[str, int]:
        """All are equal."""
        return dict.fromkeys(nodes, self._points)

    def preempt(self, pod: PodInfo, victims: Mapping[str, VictimsByUid]) -> Mapping[str, VictimsByUid]:
        """As kube-scheduler chose them."""
        return victims

    def prepare(self, pod: PodInfo, nodes: Sequence[str]) -> None:
        """Nothing is prepared."""

    def settle(self) -> None:
        """Nothing is put off."""

    def deadline_seconds(self, pod: PodInfo) -> float | None:
        """As about any other pod."""
        return None

    def status(self) -> ScorerStatus:
        """Ready, and knows nothing."""
        return ScorerStatus(
            ready=True,
            not_ready_because=None,
            level=Level.NEUTRAL,
            reasons=("this is an echo",),
            now=datetime.now(UTC),
            model=None,
            refused_model=None,
            nodes=0,
            pods=0,
            services=0,
            unknown_service_pods=0,
            state_age_seconds=None,
            metrics_age_seconds=None,
            measured_nodes=0,
        )


def main() -> None:
    """Serve until a signal; the address is the first line of output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--points", type=int, default=1, help="of every node; 0: replies are empty")
    arguments = parser.parse_args()
    serve(create_app(Echo(arguments.points)), ServerOptions(port=arguments.port), lambda url: print(url, flush=True))


if __name__ == "__main__":
    main()
