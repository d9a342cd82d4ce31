"""Settings of the service that acts on the forecast: `autoscale`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from autoscaling.nodes.options import BufferOptions, GuardOptions
from autoscaling.replicas.options import ReplicaOptions
from base.setting_group import Duration
from kube.leader_election.options import LeaseOptions
from serving.options import ServerOptions, ServingOptions


class AutoscaleLease(LeaseOptions):
    """Which of several replicas writes."""

    name: str = Field(default="forecast-scheduler-autoscaler", min_length=1)
    """Name of the Lease: the same for all replicas."""


class ExternalMetricsOptions(ServerOptions):
    """The external metrics API, on a port of its own: kube-apiserver is the only client (docs/use/autoscaling.md)."""

    enabled: bool = False
    """Serve it. It needs a certificate."""

    port: int = Field(default=6443, ge=0, le=65_535)
    """0: any free one, which is printed."""

    client_config_map: str = "kube-system/extension-apiserver-authentication"
    """NAMESPACE/NAME of the ConfigMap in which kube-apiserver says by which authority, and under which names, its
    aggregation layer shows itself. Empty: `client_ca` and `client_names` say so."""


class AutoscaleOptions(ServingOptions):
    """How `autoscale` runs. It has its scorer inside: the settings under `scorer` count, too, but for serving."""

    group: ClassVar[str] = "autoscale"

    port: int = Field(default=8892, ge=0, le=65_535)
    """0: any free one, which is printed; `--port`."""

    every: Duration = Field(default=15, ge=1, le=600)
    """Time between two looks at what services use and will use."""

    act_every: Duration = Field(default=60, ge=1, le=3600)
    """Time between two looks at what is written: buffers, marks of nodes, requests of pods."""

    buffers: BufferOptions = Field(default_factory=BufferOptions)
    guard: GuardOptions = Field(default_factory=GuardOptions)
    replicas: ReplicaOptions = Field(default_factory=ReplicaOptions)
    external_metrics: ExternalMetricsOptions = Field(default_factory=ExternalMetricsOptions)
    lease: AutoscaleLease = Field(default_factory=AutoscaleLease)
