"""CronJobs: what is started when.

    watch --> CronJobs --> CronJobInfo: schedule, time zone, what one run asks for

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/cron-job-v1/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import msgspec
from msgspec import Raw

from forecast.service_key import ServiceKey
from kube.decoding import wire
from kube.decoding.job_specs import NO_TEMPLATE, JobSpecJson, PodTemplate, TemplateOwner, pod_template
from kube.decoding.watched_kinds import Watched
from kube.decoding.wire_base import Text, Time, Wire
from kube.objects.watched_objects import NamedObjects


class Concurrency(Enum):
    """concurrencyPolicy: what happens when a run is due while the one before has not ended."""

    ALLOW = "Allow"
    FORBID = "Forbid"  # it is left out
    REPLACE = "Replace"  # the one before is ended


@dataclass(frozen=True, slots=True)
class CronJobInfo(TemplateOwner):
    """A CronJob.

    schedule                  : as written, not parsed
    time_zone                 : '' = that of the kube-controller-manager
    suspended                 : it starts nothing. Whether its Jobs are suspended at first (Kueue wants it so) does not
                                matter: they start soon after
    starting_deadline_seconds : how late a run may still be started; None = always
    completions               : of one run; None = a work queue
    completion_mode           : NonIndexed or Indexed
    last_scheduled            : unix seconds; None = never
    active                    : runs under way
    """

    namespace: str
    name: str
    uid: str
    schedule: str
    time_zone: str = ""
    suspended: bool = False
    starting_deadline_seconds: int | None = None
    concurrency: Concurrency = Concurrency.ALLOW
    parallelism: int = 1
    completions: int | None = 1
    completion_mode: str = "NonIndexed"
    active_deadline_seconds: int | None = None
    template: PodTemplate = NO_TEMPLATE
    created: float = 0.0
    last_scheduled: float | None = None
    active: int = 0

    @property
    def service(self) -> ServiceKey:
        """The service of its pods."""
        return ServiceKey(self.namespace, "CronJob", self.name)

    @property
    def priority(self) -> int | None:
        """Of its pods; None = only the pods will say."""
        return self.template.priority


class JobTemplateJson(Wire):
    """spec.jobTemplate."""

    spec: JobSpecJson | None = None


class CronJobSpec(Wire):
    """spec of a CronJob."""

    schedule: Text = ""
    time_zone: Text | None = None
    suspend: bool | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: Text | None = None
    job_template: JobTemplateJson | None = None


class CronJobStatus(Wire):
    """status of a CronJob. Of the references only their number is read."""

    active: list[Raw] | None = None
    last_schedule_time: Time | None = None


class CronJobJson(Wire):
    """A CronJob (batch/v1)."""

    metadata: wire.Metadata
    spec: CronJobSpec | None = None
    status: CronJobStatus | None = None


_DECODER: Final = msgspec.json.Decoder(CronJobJson)
_CONCURRENCY: Final = {one.value: one for one in Concurrency}


def _decode(body: bytes | Raw) -> tuple[CronJobInfo, str]:
    whole = _DECODER.decode(body)
    metadata, spec, status = whole.metadata, whole.spec or CronJobSpec(), whole.status or CronJobStatus()
    job = (spec.job_template or JobTemplateJson()).spec or JobSpecJson()
    parallelism = 1 if job.parallelism is None else job.parallelism
    namespace = metadata.namespace or "default"
    made = CronJobInfo(
        namespace=namespace,
        name=metadata.name,
        uid=metadata.uid or f"{namespace}/{metadata.name}",
        schedule=spec.schedule,
        time_zone=spec.time_zone or "",
        suspended=bool(spec.suspend),
        starting_deadline_seconds=spec.starting_deadline_seconds,
        concurrency=_CONCURRENCY.get(spec.concurrency_policy or "", Concurrency.ALLOW),
        parallelism=parallelism,
        # The API server fills in 1 for both of a Job that says neither, and not yet in the template of a CronJob.
        completions=1 if job.completions is None and job.parallelism is None else job.completions,
        completion_mode=job.completion_mode or "NonIndexed",
        active_deadline_seconds=job.active_deadline_seconds,
        template=pod_template(job.template),
        created=metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else 0.0,
        last_scheduled=status.last_schedule_time.timestamp() if status.last_schedule_time else None,
        active=len(status.active or ()),
    )
    return made, metadata.resource_version or ""


WATCHED_CRON_JOBS: Final[Watched[CronJobInfo]] = Watched("cronjobs", "CronJob", "/apis/batch/v1/cronjobs", _decode)
"""Needs get, list and watch on cronjobs.batch."""


class CronJobs(NamedObjects[CronJobInfo]):
    """All CronJobs there are.

    changes : another number whenever something was made, deleted or written otherwise; that runs begin and end is none
    """

    def __init__(self, *, listeners: Iterable[Callable[[Sequence[CronJobInfo]], None]] = ()) -> None:
        super().__init__(listeners=listeners)
        self.changes = 0  # one thread watches

    def replace(self, objects: Sequence[CronJobInfo]) -> None:
        super().replace(objects)
        self.changes += 1

    def put(self, obj: CronJobInfo) -> None:
        """One is new or has changed."""
        before = self.get(obj.namespace, obj.name)
        super().put(obj)
        if before is None or replace(before, last_scheduled=obj.last_scheduled, active=obj.active) != obj:
            self.changes += 1

    def delete(self, obj: CronJobInfo) -> None:
        super().delete(obj)
        self.changes += 1
