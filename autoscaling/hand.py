"""What acts on the cluster by the forecast, as the service `autoscale` drives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from prometheus_client.core import Metric

from autoscaling.services_ahead import ServicesAhead


class Hand(Protocol):
    """Writes one kind of thing: buffers, marks of nodes, requests of pods.

    All that must outlive this process is on the API server, in objects or annotations that bear our name. So a new
    leader, or this process after a restart, continues where the last one stopped.
    """

    @property
    def name(self) -> str:
        """For the log, the metrics and the page."""

    async def act(self, ahead: ServicesAhead, now: float) -> None:
        """Bring what is written to what the forecast asks for. As the leader, every `autoscale.act_every` seconds.

        It may be cancelled at each of its requests, as by a kill: what takes too long goes on in the next turn.

        now : unix seconds
        Raises ForecastError where the API server refuses or is not there; the next call tries again.
        """

    async def retreat(self) -> None:
        """Take back all that bears our name: there is no usable forecast, or the leader ends. May be called again.

        Raises as `act` does.
        """

    def metrics(self) -> Iterator[Metric]:
        """What it did and decided since this process leads. For any thread."""
