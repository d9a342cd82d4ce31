"""Is an advisor alive? Its Lease is looked at twice a second, and counts while it is renewed, by our own clock."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from kubernetes import client

from kube.client.kubernetes_client import send
from kube.failure_notice import FailureNotice
from kube.leader_election.lease import leases_path
from kube.leader_election.lease_options import LeaseOptions
from kube.leader_election.record import LeaseRecord, read_lease

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.5
_REQUEST_SECONDS: Final = 1.0
_MISSING: Final = 404


class AdvisorLease:
    """`look` is to be called every LOOK_SECONDS by one thread; `is_alive` may be asked by any.

    lease     : the advisor's, as its own settings name it
    alive_for : seconds, see AdviceGateOptions
    clock     : seconds, monotonic: what other machines write as time is not read
    """

    def __init__(
        self,
        api: client.ApiClient,
        lease: LeaseOptions,
        *,
        alive_for: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._alive_for, self._clock = api, alive_for, clock
        self._path = f"{leases_path(lease.namespace)}/{lease.name}"
        self._seen: LeaseRecord | None = None
        self._changed_at, self._began = float("-inf"), clock()
        self._notice = FailureNotice(
            logger, "the Lease of the advisor cannot be read (grant get on leases): no pod is held", "it can be again"
        )

    def is_alive(self) -> bool:
        """Return whether the Lease is held and was renewed a moment ago."""
        return self.is_renewed(self._alive_for)

    def is_known(self) -> bool:
        """Return whether the Lease is there: somebody has installed an advisor."""
        return self._seen is not None

    def silent_for(self) -> float:
        """Return the seconds since an advisor was last seen to be alive, or since this process began to look."""
        return 0.0 if self.is_alive() else self._clock() - max(self._began, self._changed_at)

    def is_renewed(self, within: float) -> bool:
        """Return whether the Lease is held and was renewed within so many seconds."""
        seen = self._seen
        return seen is not None and bool(seen.holder) and self._clock() - self._changed_at <= within

    def look(self) -> None:
        """Read the Lease, and note whether it was renewed since the last look."""
        began = self._clock()
        answer = send(self._api, "GET", self._path, seconds=_REQUEST_SECONDS)
        if answer.status == _MISSING:
            self._seen = None
            return
        record = read_lease(answer.body) if answer.is_success else None
        if record is None:
            self._notice.failed(answer.text or "the API server's answer is no Lease")
            return
        self._notice.succeeded()
        before, self._seen = self._seen, record
        # The first look says nothing about when it was renewed: the second one does.
        if before is not None and not record.is_same(before):
            self._changed_at = began
