"""What Reserve plugins say of a pod that has just been given a node, and how that is undone."""

from __future__ import annotations

import logging

from kube.objects.objects import PodInfo
from placement.status import SUCCESS, Code, Status
from scheduler.cycle.cycle_times import CycleTimes, Point
from scheduler.profile import SchedulingProfile

logger = logging.getLogger(__name__)


def reserved(pod: PodInfo, node: str, profile: SchedulingProfile, times: CycleTimes | None = None) -> Status:
    """The first no of the Reserve plugins, after which all have undone what they did. times: None = not timed."""
    times = times or CycleTimes()
    for plugin in profile.binding.reserve:
        try:
            with times.of(Point.RESERVE, plugin.name):
                status = plugin.reserve(pod, node)
        except Exception:
            logger.exception("a Reserve plugin failed", extra={"pod": pod.name, "plugin": plugin.name})
            status = Status(Code.ERROR, plugin.name, f"plugin {plugin.name} failed: the log says why")
        if not status.is_success:
            unreserve(pod, node, profile)
            return status
    return SUCCESS


def unreserve(pod: PodInfo, node: str, profile: SchedulingProfile) -> None:
    """Undo what the plugins did; may be called twice."""
    for plugin in reversed(profile.binding.reserve):
        plugin.unreserve(pod, node)
