"""Settings of `requests`: how requests follow from the forecast, and the opt-in resizes."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class ResizeOptions(SettingGroup):
    """In-place resizes of running pods that ask for it by the label `forecast-scheduler.io/resize: "true"`."""

    enabled: bool = False
    """Resize the pods that carry the label, or whose namespace does. A process takes its resizes back as it ends; those
    of one that was killed `autoscale --release` takes back."""

    lead: Duration = Field(default=900, ge=0, le=14_400)
    """A pod gets the request of a half hour so long before that half hour begins."""

    hold: Duration = Field(default=7200, ge=0, le=86_400)
    """A pod shrinks only if it needs no more for so long after the lead time."""

    margin: float = Field(default=0.1, ge=0, le=2)
    """Added to the usage expected or measured now, as a share of it. A request never shrinks below that."""

    least_change: float = Field(default=0.1, ge=0, le=1)
    """Smaller changes are not made, as a share of the request before them."""

    parallel: int = Field(default=20, ge=1, le=1000)
    """Pods resized in one step."""

    service_share: float = Field(default=0.25, gt=0, le=1)
    """Share of the pods of a service resized in one step; at least one pod."""

    most: float = Field(default=1.0, ge=1, le=4)
    """A request grows up to this multiple of the pod's original request."""

    autoscaled: bool = False
    """Resize pods of services, too, whose number of replicas follows the load. A HorizontalPodAutoscaler that goes by
    utilization adds replicas when requests shrink, so that requests shrink again: use an `AverageValue` there."""

    memory: bool = False
    """Let memory requests grow, too. They never shrink below the original."""

    retry: Duration = Field(default=1800, ge=0, le=86_400)
    """Time until a resize that the node could not carry out is tried again."""


class RequestOptions(SettingGroup):
    """How much one pod of each service should request, by its forecast."""

    errors: float = Field(default=1.2, ge=0, le=6)
    """Standard deviations of a full node's forecast error that the requests on it cover together, in addition to the
    expected usage. Bursty pods bear most of it."""

    quiet_discount: float = Field(default=4.0, ge=0, le=100)
    """How little usage counts while the whole cluster is quiet: by (load of the cluster / its highest load) to this
    power. 0 counts all hours alike."""

    least_quantile: float = Field(default=0.5, ge=0, le=1)
    """A request for all hours is never below what this quantile of the pod's expected usage over
    the week needs."""

    carried: float = Field(default=0.6, ge=0, le=1)
    """Share of the need of disk, network and log that the CPU request stands for: kube-scheduler knows no requests of
    these. 0 = CPU requests stand for CPU alone."""

    memory_margin: float = Field(default=0.1, ge=0, le=2)
    """Added to the highest memory of the week, as a share of it."""

    clock_pays: float = Field(default=0.2, ge=0, le=1)
    """A service gets requests by hour class if these save at least this share of its requested core hours."""

    resize: ResizeOptions = Field(default_factory=ResizeOptions)
