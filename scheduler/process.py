"""What a scheduling process has besides its tables: the API server, and whether this replica acts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubernetes.client import ApiClient

from kube.client.eviction import Evict, api_server_evict
from kube.events.event_recorder import Post, session_post
from kube.leader_election.lease import Lease
from kube.session.api_session import ApiSession


@dataclass(frozen=True, slots=True)
class Process:
    """
    session   : asks `may_write` before each request
    lease     : by which this replica leads; None = without one it always does
    leads     : whether this replica leads, and is no dry run
    may_write : the same; where replicas share the nodes, whether this one lives
    waits_for : what has to be read before the first pod is placed, "" = nothing any more
    instance  : name of this replica, as events show it
    """

    api: ApiClient
    session: ApiSession
    lease: Lease | None
    leads: Callable[[], bool]
    may_write: Callable[[], bool]
    waits_for: Callable[[], str]
    instance: str
    is_dry_run: bool

    @property
    def evict(self) -> Evict:
        """Return what evicts a pod; it may block."""
        return api_server_evict(self.api)

    @property
    def post(self) -> Post | None:
        """Return what writes events; None = none are written."""
        return None if self.is_dry_run else session_post(self.session)

    def is_read(self) -> bool:
        """Return whether the cluster was read."""
        return self.waits_for() == ""
