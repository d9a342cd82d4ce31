"""Which cluster a process reads and writes, and as which user: what kubectl's --kubeconfig and --context name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubernetes import client


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """A context of a kubeconfig.

    kubeconfig : None = without a context the cluster this process runs in; else $KUBECONFIG or ~/.kube/config
    context    : None = the current one
    """

    kubeconfig: Path | None = None
    context: str | None = None

    @property
    def is_named(self) -> bool:
        """Whether the user or the settings name the cluster."""
        return self.kubeconfig is not None or self.context is not None

    def client(self, *, connections: int | None = None) -> client.ApiClient:
        """Return a client for it; see kube.client.kubernetes_client.api_client. Raises InputError."""
        from kube.client.kubernetes_client import api_client

        return api_client(self.kubeconfig, self.context, connections=connections)

    def name(self) -> str:
        """Return the name of the context, or `in-cluster`. Raises InputError."""
        from kube.client.kubeconfig import current_context, kubectls_own

        if self.context is not None:
            return self.context
        return "in-cluster" if self.runs_here() else current_context(self.kubeconfig or kubectls_own()) or ""

    def runs_here(self) -> bool:
        """Whether it is the cluster in which this process runs."""
        from kube.client.kubernetes_client import runs_in_cluster

        return not self.is_named and runs_in_cluster()


CURRENT_CLUSTER = ClusterAccess()
"""The one that no option and no setting names."""
