"""The profiles that there are: a new one is a folder here and a line below (CONTRIBUTING.md, "A profile")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from base.errors import InputError
from scheduler.handle import Handle, ProfileParts
from scheduler.profiles.gpu import build as gpu
from scheduler.profiles.gpu.profile import GPU
from scheduler.profiles.job import build as job
from scheduler.profiles.job.profile import JOB
from scheduler.profiles.online import build as online
from scheduler.profiles.online.profile import ONLINE

PROFILES: Final[Mapping[str, Callable[[Handle], ProfileParts]]] = {
    ONLINE: online.build,
    GPU: gpu.build,
    JOB: job.build,
}
"""By the name that --profile takes. Each builder raises InputError for settings that contradict each other."""


def builder(name: str) -> Callable[[Handle], ProfileParts]:
    """Return what builds a profile. Raises InputError for a profile that does not exist."""
    if name not in PROFILES:
        raise InputError(f"there is no profile {name!r}: there is {', '.join(PROFILES)}")
    return PROFILES[name]
