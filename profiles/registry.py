"""The profiles that there are: a new one is a folder here and a line below (CONTRIBUTING.md, "A profile")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from base.errors import InputError
from profiles.gpu import build as gpu
from profiles.gpu.dra.no_resource_claims import NoResourceClaims
from profiles.gpu.profile import GPU
from profiles.job import build as job
from profiles.job.due_times import LatestStarts
from profiles.job.profile import JOB
from profiles.online import build as online
from profiles.online.colocation_loop import Colocation
from profiles.online.profile import ONLINE
from profiles.schedule_settings import ScheduleSettings
from scheduler.handle import Handle, ProfileParts


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileHandle(Handle):
    """The handle of the framework, and what several profiles share.

    settings   : of all profiles
    colocation : the gap for pods of low priority
    starts     : by when pods have to start
    """

    settings: ScheduleSettings
    colocation: Colocation
    starts: LatestStarts


def _online(handle: ProfileHandle) -> ProfileParts:
    return _without_claims(handle, online.build(handle))


def _gpu(handle: ProfileHandle) -> ProfileParts:
    return gpu.build(handle, handle.settings.gpu, handle.colocation)


def _job(handle: ProfileHandle) -> ProfileParts:
    return _without_claims(
        handle, job.build(handle, handle.settings.job, handle.starts, handle.settings.colocation.ceiling)
    )


def _without_claims(handle: Handle, parts: ProfileParts) -> ProfileParts:
    """Return the parts of a profile that allocates no ResourceClaims: pods with claims wait."""
    return replace(parts, filters=(*parts.filters, NoResourceClaims(handle.class_resources)))


PROFILES: Final[Mapping[str, Callable[[ProfileHandle], ProfileParts]]] = {ONLINE: _online, GPU: _gpu, JOB: _job}
"""By the name that --profile takes. Each builder raises InputError for settings that contradict each other."""


def builder(name: str) -> Callable[[ProfileHandle], ProfileParts]:
    """Return what builds a profile. Raises InputError for a profile that does not exist."""
    if name not in PROFILES:
        raise InputError(f"there is no profile {name!r}: there is {', '.join(PROFILES)}")
    return PROFILES[name]
