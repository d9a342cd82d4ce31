"""Builds the GPU profile: filters, preferences and scores over its tables, and what goes on around them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from kube.objects.objects import PodInfo
from profiles.gpu.dra.dra_subscriptions import dra_subscriptions, read_claims_again
from profiles.gpu.gpu_settings import GpuOptions
from profiles.gpu.gpu_tables import gpu_tables
from profiles.gpu.gpu_upkeep import gpu_upkeep
from profiles.gpu.tide.training_annotations import Role, role_of
from profiles.online.colocation_loop import Colocation
from scheduler.handle import Handle, ProfileParts

_CLAIMS_WEIGHT: Final = 2
"""Of DynamicResources (getDefaultPlugins in pkg/scheduler/apis/config/v1/default_plugins.go)."""


def build(handle: Handle, options: GpuOptions, colocation: Colocation) -> ProfileParts:
    """Return the parts of the GPU profile. Raises InputError.

    Preferences: the tide narrows before types of cards are looked at, fragmentation narrows what the rules leave.
    """
    tables = gpu_tables(handle, options, colocation)
    claims = tables.claims

    def listen(changed: Callable[[], None], pod_may_go: Callable[[PodInfo], None]) -> None:
        claims.table.on_room.append(changed)
        claims.table.on_claim.append(pod_may_go)

    return ProfileParts(
        filters=(claims, tables.idle_cpu, tables.tide_room),
        first=(tables.tide_room,),
        last=(tables.fragmentation,),
        gates=(claims,),
        post_filters=(claims,),
        scores=((claims, _CLAIMS_WEIGHT),),
        reserve=(claims,),
        pre_bind=(claims,) if claims.writer is not None else (),  # a dry run writes nothing
        post_bind=(claims,),
        view_tables=(tables.tide,),
        followers=(tables.live_mix, claims.table, tables.node_pods, tables.tide),
        subscriptions=dra_subscriptions(claims.table),
        listen=listen,
        read_again=read_claims_again,
        standing=tables.offline.standing,
        may_preempt=tables.offline.may_preempt,
        decided_alone=_decided_alone if options.tide.enabled else None,
        upkeep=partial(gpu_upkeep, handle, tables, colocation),
        tables=tables,
    )


def _decided_alone(pod: PodInfo) -> str:
    is_training = role_of(pod.annotations) is Role.TRAINING
    return "the tide counts training pods over all nodes" if is_training else ""
