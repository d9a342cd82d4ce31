"""Writes buffers: CapacityBuffers where the API server has them, otherwise placeholder pods in Deployments.

    capacity-buffer   PodTemplate, then the CapacityBuffer that names it; removed in the opposite order
    placeholder-pods  one Deployment per buffer; its PriorityClass is checked first

All objects bear the labels `managed-by` and `forecast-scheduler.io/buffer`. Those of the kind that is not in use are
removed. A writer that is killed leaves at most a PodTemplate that nothing names; the next call goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric

from autoscaling.autoscale_settings import BufferKind, BufferOptions
from autoscaling.nodes.buffers import buffers, capacity_buffer, deployment, pod_template_object
from autoscaling.nodes.owned_objects import (
    SECONDS,
    NodesError,
    OwnedObjects,
    capacity_buffers,
    deployments,
    pod_templates,
)
from autoscaling.services_ahead import ServicesAhead
from kube.session.session_calls import Requests

_VERSIONS: Final = ("v1beta1", "v1alpha1")
_CUT_OFF: Final = -10
"""Cluster Autoscaler orders no node for pods of a lower priority (--expendable-pods-priority-cutoff)."""


class _Resource(msgspec.Struct):
    name: str = ""


class _Resources(msgspec.Struct):
    resources: list[_Resource] | None = None


class _PriorityClass(msgspec.Struct):
    value: int = 0


class BufferHand:
    """A hand of the service `autoscale` (autoscaling/autoscaler.py). Raises NodesError; the next call goes on."""

    name = "buffers"

    def __init__(self, session: Requests, options: BufferOptions, *, seconds: float = SECONDS) -> None:
        """seconds: timeout of one request"""
        self._options, self._objects = options, OwnedObjects(session, seconds=seconds)
        self.chunks: dict[str, int] = {}
        """Chunks of each buffer as last written, for the metrics."""

    async def act(self, ahead: ServicesAhead, now: float) -> None:
        """Bring all buffers to the size that the forecast asks for."""
        options, namespace = self._options, self._options.namespace
        wanted = buffers(ahead, now, options)
        version = await self._version()
        if version is not None and options.kind is not BufferKind.PLACEHOLDER_PODS:
            await self._objects.bring(pod_templates(namespace), [pod_template_object(one, options) for one in wanted])
            await self._objects.bring(
                capacity_buffers(namespace, version), [capacity_buffer(one, version) for one in wanted]
            )
            await self._objects.clear(deployments(namespace))
        elif options.kind is BufferKind.CAPACITY_BUFFER:
            raise NodesError(
                "the API server has no CapacityBuffer (autoscaling.x-k8s.io): install its definition, or set "
                "autoscale.buffers.kind to auto or placeholder-pods"
            )
        else:
            if any(one.chunks for one in wanted):
                await self._check_priority()
            await self._objects.bring(deployments(namespace), [deployment(one, options) for one in wanted])
            await self._clear_capacity_buffers(version)
        self.chunks = {one.name: one.chunks for one in wanted}

    def metrics(self) -> Iterator[Metric]:
        """Chunks of each buffer."""
        chunks = GaugeMetricFamily(
            "forecast_autoscale_buffer_chunks", "Chunks of each buffer, as last written.", labels=["buffer"]
        )
        for name, count in list(self.chunks.items()):
            chunks.add_metric([name], count)
        yield chunks

    async def retreat(self) -> None:
        """Delete all our buffers, of both kinds."""
        await self._clear_capacity_buffers(await self._version())
        await self._objects.clear(deployments(self._options.namespace))
        self.chunks = {}

    async def _clear_capacity_buffers(self, version: str | None) -> None:
        if version is not None:
            await self._objects.clear(capacity_buffers(self._options.namespace, version))
        await self._objects.clear(pod_templates(self._options.namespace))

    async def _version(self) -> str | None:
        """The newest version of CapacityBuffer that the API server has; None = it has none."""
        for version in _VERSIONS:
            answer = await self._objects.get(f"/apis/autoscaling.x-k8s.io/{version}", "API groups were not read")
            # The group has other kinds, too: ProvisioningRequest.
            if answer is not None and any(
                one.name == "capacitybuffers"
                for one in msgspec.json.decode(answer.body, type=_Resources).resources or ()
            ):
                return version
        return None

    async def _check_priority(self) -> None:
        name = self._options.priority_class
        answer = await self._objects.get(
            f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}", f"PriorityClass {name} was not read"
        )
        if answer is None:
            raise NodesError(
                f"there is no PriorityClass {name}: create the one in deploy/components/autoscaler-writes/buffers.yaml"
            )
        value = msgspec.json.decode(answer.body, type=_PriorityClass).value
        if not _CUT_OFF <= value < 0:
            raise NodesError(
                f"PriorityClass {name} has the value {value}; placeholder pods need {_CUT_OFF} to -1, so that real "
                "pods take their place and Cluster Autoscaler still orders nodes for them: create another, and set "
                "autoscale.buffers.priority_class"
            )
