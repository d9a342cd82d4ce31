"""Owners that run once under a generated name: which of them count as one service, and under which name.

Task executors, CI runners and workflow engines start every run under a name of its own: Pod/daily-load-1a2b3c4d,
Workflow/etl-a1b2c, a Job made with generateName. Each is a service of one that never comes again. Together they are
work that comes every night. `group_of_each` finds them in a history; they are counted as one service that is named by
what their names have in common: batch/Workflow/etl-*. No object of Kubernetes can be named so.

A pod that comes tomorrow has a name that no history knows. `known_as` finds its group by the same rules.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence

from base.arrays import AnyFloats, Bools
from forecast.service_key import GENERATED, ServiceKey

LEAST_MEMBERS = 5
"""Owners that have ended. Fewer may be what people restarted under a new name."""

LONGEST_LIFE_SECONDS = 86_400
"""From the first to the last sample of an owner. What lives longer has days of its own to learn from."""

_LASTING_KINDS = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "ReplicaSet", "ReplicationController", "Rollout", "StatefulSet", "StaticPod"}
)
"""Their pods are replaced when they end, or come again by the clock, however short the life that was seen."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{8}-?t?\d{4,6}z?(?![0-9a-z])")
_SAFE = "bcdfghjklmnpqrstvwxz2456789"  # see `service_key.HASH_SUFFIX`
_RANDOM = re.compile(
    r"\d+|[0-9a-f]{8,}"  # a number, hexadecimal digits
    r"|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{5,7}"  # fewer of them, if both digits and letters are there
    rf"|[{_SAFE}]{{8,10}}|(?=[a-z]*\d)[{_SAFE}]{{5}}"  # a hash of Kubernetes, the suffix of generateName
    r"|(?=.{8})(?:[a-z]+\d+){2,}[a-z]*|(?=.{8})\d+(?:[a-z]+\d+)+[a-z]+"  # letters and digits in turns
)
_SUFFIX = re.compile(rf"[{_SAFE}]{{5}}")
_COUNTER = re.compile(r"(?<=[a-z])\d+$")
_SEPARATOR = re.compile(r"([-._])")


def stem(name: str) -> str:
    """Return a name with `*` for each generated part: runner-1a2b3c4d-project-7 -> runner-*-project-*.

    Generated are UUIDs, times, hexadecimal digits, numbers, the suffix that generateName appends, and longer mixtures
    of letters and digits; a number at the end of a word if nothing else is: run12 -> run*. A name without any stays.
    """
    parts = _SEPARATOR.split(_TIME.sub(GENERATED, _UUID.sub(GENERATED, name)))
    words = range(0, len(parts), 2)
    for at in words:
        if _RANDOM.fullmatch(parts[at]):
            parts[at] = GENERATED
    if len(parts) > 1 and _SUFFIX.fullmatch(parts[-1]):
        parts[-1] = GENERATED
    if GENERATED not in parts:
        for at in words:
            parts[at] = _COUNTER.sub(GENERATED, parts[at])
    return _joined(parts)


def known_as(services: Container[ServiceKey], service: ServiceKey) -> ServiceKey | None:
    """Return the name by which a table of services has a service: its own, or that of its group; None = not at all."""
    if service in services:
        return service
    return next((group for group in _possible_groups(service) if group in services), None)


def group_of_each(
    services: Sequence[ServiceKey], life_seconds: AnyFloats, has_ended: Bools
) -> dict[ServiceKey, ServiceKey]:
    """Return the group of each service that counts with others as one.

    services     : all of a history
    life_seconds : (n_services,) from the first to the end of the last sample
    has_ended    : (n_services,) whether it was gone when the history ended; what still runs may become anything
    """
    short = [service for service, life in zip(services, life_seconds, strict=True) if life < LONGEST_LIFE_SECONDS]
    ended = {service for service, over in zip(services, has_ended, strict=True) if over}
    # Only names that show a generated part make a group. Others may join it.
    members = Counter(
        ServiceKey(service.namespace, service.kind, stem(service.name))
        for service in short
        if service in ended and service.kind not in _LASTING_KINDS and stem(service.name) != service.name
    )
    groups = {group for group, count in members.items() if count >= LEAST_MEMBERS}
    found = {service: known_as(groups, service) for service in short}
    return {service: group for service, group in found.items() if group is not None}


def _possible_groups(service: ServiceKey) -> Iterator[ServiceKey]:
    """By the rules of `stem` first; then with the last part taken for generated: a random part may look like a word."""
    if service.kind in _LASTING_KINDS or service.is_group:
        return
    name = stem(service.name)
    if name != service.name:
        yield ServiceKey(service.namespace, service.kind, name)
    parts = _SEPARATOR.split(name)
    if len(parts) > 1 and parts[-1] != GENERATED:
        yield ServiceKey(service.namespace, service.kind, _joined([*parts[:-1], GENERATED]))


def _joined(parts: Sequence[str]) -> str:
    """The parts with their separators, several generated ones in a row as one."""
    out: list[str] = []
    for at in range(0, len(parts), 2):
        if parts[at] == GENERATED and out and out[-1] == GENERATED:
            continue
        out += [*parts[max(at - 1, 0) : at], parts[at]]
    return "".join(out)
