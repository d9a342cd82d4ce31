"""How `status` reads objects of the API server. Pure: bytes in, facts out.

Every function raises msgspec.DecodeError where the answer is something else.
"""

from __future__ import annotations

from typing import Final

import msgspec

from base.yaml_reader import YamlMistake, read_yaml
from forecast_scheduler.commands.status.facts import (
    PARTS,
    PREFIX,
    TRAINER,
    LeaseFacts,
    Nightly,
    NightlyJob,
    PartPod,
    Webhook,
    Workload,
)
from kube.decoding.wire_base import Time, Wire
from kube.leader_election.record import LeaseRecord

SETTINGS_VOLUME: Final = "settings"
_JOB_LABEL: Final = "batch.kubernetes.io/job-name"
_PART_LABEL: Final = "app.kubernetes.io/name"


class _Metadata(Wire):
    name: str = ""
    labels: dict[str, str] | None = None
    creation_timestamp: Time | None = None


class _Container(Wire):
    image: str = ""


class _ConfigMapVolume(Wire):
    name: str = ""


class _Volume(Wire):
    name: str = ""
    config_map: _ConfigMapVolume | None = None


class _PodSpec(Wire):
    containers: list[_Container] | None = None
    volumes: list[_Volume] | None = None


class _Template(Wire):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _Condition(Wire):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class _DeploymentSpec(Wire):
    replicas: int = 1
    template: _Template = msgspec.field(default_factory=_Template)


class _DeploymentStatus(Wire):
    ready_replicas: int = 0
    conditions: list[_Condition] | None = None


class _Deployment(Wire):
    metadata: _Metadata
    spec: _DeploymentSpec
    status: _DeploymentStatus = msgspec.field(default_factory=_DeploymentStatus)


class _Deployments(Wire):
    items: list[_Deployment]


class _JobSpec(Wire):
    template: _Template = msgspec.field(default_factory=_Template)


class _JobTemplate(Wire):
    spec: _JobSpec = msgspec.field(default_factory=_JobSpec)


class _CronJobSpec(Wire):
    schedule: str = ""
    suspend: bool = False
    job_template: _JobTemplate = msgspec.field(default_factory=_JobTemplate)


class _CronJob(Wire):
    metadata: _Metadata
    spec: _CronJobSpec


class _FinishedCondition(_Condition):
    last_transition_time: Time | None = None


class _FinishedStatus(Wire):
    start_time: Time | None = None
    conditions: list[_FinishedCondition] | None = None


class _Job(Wire):
    metadata: _Metadata
    status: _FinishedStatus = msgspec.field(default_factory=_FinishedStatus)


class _Jobs(Wire):
    items: list[_Job]


class _Waiting(Wire):
    reason: str | None = None
    message: str | None = None


class _Terminated(Wire):
    exit_code: int = 0
    reason: str | None = None


class _ContainerState(Wire):
    waiting: _Waiting | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(Wire):
    ready: bool = False
    state: _ContainerState = msgspec.field(default_factory=_ContainerState)
    last_state: _ContainerState = msgspec.field(default_factory=_ContainerState)


class _PodStatus(Wire):
    phase: str = ""
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None


class _Pod(Wire):
    metadata: _Metadata
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _Pods(Wire):
    items: list[_Pod]


class _ClientConfig(Wire):
    url: str | None = None
    ca_bundle: bytes | None = None


class _OneWebhook(Wire):
    client_config: _ClientConfig
    failure_policy: str = "Fail"


class _WebhookConfiguration(Wire):
    webhooks: list[_OneWebhook] | None = None


class _ConfigMap(Wire):
    data: dict[str, str] | None = None


def workloads_of(body: bytes) -> tuple[dict[str, Workload], str]:
    """Return the Deployments of our parts, by part, and the ConfigMap with their settings ('' = none is named)."""
    found, settings = dict[str, Workload](), ""
    for one in msgspec.json.decode(body, type=_Deployments).items:
        part = one.metadata.name.removeprefix(PREFIX)
        if part not in PARTS:
            continue
        stuck = next(
            (
                condition.message or condition.reason or ""
                for condition in one.status.conditions or ()
                if condition.type == "Progressing" and condition.status == "False"
            ),
            "",
        )
        pod = one.spec.template.spec
        found[part] = Workload(part, one.spec.replicas, one.status.ready_replicas, _image(pod), stuck)
        settings = settings or _settings_of(pod)
    return found, settings


def nightly_of(body: bytes) -> tuple[Nightly, str]:
    """Return the CronJob of the trainer, without its Jobs, and the ConfigMap with its settings."""
    one = msgspec.json.decode(body, type=_CronJob)
    pod = one.spec.job_template.spec.template.spec
    return Nightly(_image(pod), one.spec.schedule, one.spec.suspend), _settings_of(pod)


def jobs_of(body: bytes) -> tuple[NightlyJob, ...]:
    """Return the Jobs of the trainer, the newest first: the label of the part is on those made by hand, too."""
    found = []
    for one in msgspec.json.decode(body, type=_Jobs).items:
        if (one.metadata.labels or {}).get(_PART_LABEL) != TRAINER:
            continue
        ended = next(
            (c for c in one.status.conditions or () if c.type in ("Complete", "Failed") and c.status == "True"), None
        )
        began = one.status.start_time or one.metadata.creation_timestamp
        found.append(
            NightlyJob(
                one.metadata.name,
                began=began.timestamp() if began else 0.0,
                ended=ended.last_transition_time.timestamp() if ended and ended.last_transition_time else 0.0,
                succeeded=ended is not None and ended.type == "Complete",
                why="" if ended is None or ended.type == "Complete" else ended.message or ended.reason or "",
            )
        )
    return tuple(sorted(found, key=lambda job: -job.began))


def pods_of(body: bytes) -> tuple[PartPod, ...]:
    """Return the pods of a namespace."""
    return tuple(
        PartPod(
            one.metadata.name,
            part=(one.metadata.labels or {}).get(_PART_LABEL, "").removeprefix(PREFIX),
            job=(one.metadata.labels or {}).get(_JOB_LABEL, ""),
            created=one.metadata.creation_timestamp.timestamp() if one.metadata.creation_timestamp else 0.0,
            trouble=_trouble(one.status),
        )
        for one in msgspec.json.decode(body, type=_Pods).items
    )


def lease_of(record: LeaseRecord) -> LeaseFacts:
    """Return what a Lease says, with its times as unix seconds."""
    return LeaseFacts(record.holder, record.seconds, _seconds(record.renewed), _seconds(record.acquired))


def webhook_of(body: bytes) -> Webhook:
    """Return what our MutatingWebhookConfiguration says: whom the API server asks, and whether it refuses pods else."""
    hooks = msgspec.json.decode(body, type=_WebhookConfiguration).webhooks or []
    by_url = next((one.client_config for one in hooks if one.client_config.url), _ClientConfig())
    refuses = any(one.failure_policy == "Fail" for one in hooks)
    return Webhook(refuses, by_url.url or "", by_url.ca_bundle or b"")


def store_url_of(config_map: bytes) -> str:
    """Return `prometheus.url` of the settings in a ConfigMap; '' = they name none."""
    for text in (msgspec.json.decode(config_map, type=_ConfigMap).data or {}).values():
        try:
            document = read_yaml(text)
        except YamlMistake:
            continue
        prometheus = document.get("prometheus") if isinstance(document, dict) else None
        if isinstance(prometheus, dict) and prometheus.get("url"):
            return str(prometheus["url"])
    return ""


def _image(pod: _PodSpec) -> str:
    return next((one.image for one in pod.containers or ()), "")


def _settings_of(pod: _PodSpec) -> str:
    named = (one.config_map.name for one in pod.volumes or () if one.name == SETTINGS_VOLUME and one.config_map)
    return next(named, "")


def _trouble(status: _PodStatus) -> str:
    """Return why a pod is not ready, in the words of its containers, else of its conditions."""
    for one in status.container_statuses or ():
        if one.ready:
            continue
        if waiting := one.state.waiting:
            died = one.last_state.terminated
            last = f" after exit status {died.exit_code}" if died else ""
            return f"{waiting.reason or 'waiting'}{last}"
        if (died := one.state.terminated) and died.exit_code:
            return f"ended with status {died.exit_code}"
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message or condition.reason or "no node"
    unready = any(not one.ready for one in status.container_statuses or ())
    return "its readiness probe fails" if unready and status.phase == "Running" else ""


def _seconds(moment: str) -> float:
    """Return a moment of the API as unix seconds; 0 = there is none, or it cannot be read."""
    try:
        return msgspec.convert(moment, type=Time).timestamp()
    except msgspec.ValidationError:
        return 0.0
