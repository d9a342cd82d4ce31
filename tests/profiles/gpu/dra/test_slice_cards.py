"""Cards that slices offer to extended resources: how many there are, and what fragmentation and tide make of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from forecast_scheduler.settings.document import Settings
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.filters.domain import DOMAIN_LABEL
from profiles.dry_loop import gpus_in
from profiles.gpu.dra.slice_cards import NO_SLICE_CARDS, SliceCards, SliceCardTable
from profiles.schedule_tables import schedule_tables
from scorer.scorer import Scorer
from testing.placement.views import pod_with
from tests.profiles.gpu.dra.dra_world import World
from tests.profiles.gpu.dra.manifests import (
    Manifest,
    claim,
    claim_of,
    class_of,
    device,
    device_class,
    resource_slice,
    slice_of,
    taint_rule,
    taint_rule_of,
)
from tests.profiles.gpu.fragmentation.gpu_world import NOW, card_node, card_pod

GPU = "nvidia.com/gpu"
BACKED = class_of(device_class(extendedResourceName=GPU))


def asking(name: str = "p") -> PodInfo:
    container = {"name": "main", "image": "", "resources": {"requests": {GPU: "1"}}}
    return pod_with({"containers": [container]}, name=name)


def counted(*claims: Manifest, **spec: Any) -> tuple[World, SliceCardTable]:
    world = World(*claims, **spec)
    cards = world.plugin.slice_cards([GPU])
    world.table.classes.put(BACKED)
    return world, cards


def test_devices_are_free_until_a_claim_or_a_taint_has_them() -> None:
    world, cards = counted(claim("other"))
    changed: list[str] = []
    cards.on_change.append(changed.append)
    assert cards.of("a") == cards.of("b") == SliceCards(n=2, free=2, held=0)
    pod = asking()
    assert world.reserve(pod, "a").is_success
    assert cards.of("a") == SliceCards(n=2, free=1, held=1) and changed == ["a"]
    world.server.put({"metadata": {"name": "p", "uid": "p"}})
    assert world.pre_bind(pod, "a").is_success
    assert cards.of("a") == SliceCards(n=2, free=1, held=1), "the claim in the API server counts as the one before it"
    world.reserved("claims", "b", "other")
    assert cards.of("b") == SliceCards(n=2, free=1, held=0) and cards.of("b").for_names == 1
    world.table.taint_rules.put(taint_rule_of(taint_rule("r", pool="b", device="1")))
    world.table.taint_rules.put(taint_rule_of(taint_rule("s", pool="a", device="0")))
    assert cards.of("b") == SliceCards(n=2, free=0, held=0)
    assert cards.of("a") == SliceCards(n=2, free=1, held=1), "who has a device keeps it"
    world.table.classes.put(class_of(device_class()))
    assert cards.of("a") == cards.of("b") == NO_SLICE_CARDS, "no class offers the resource any more"


def test_only_whole_devices_of_the_node_and_the_class_count() -> None:
    shared = device("shared") | {"allowMultipleAllocations": True}
    world, cards = counted(
        slices=(
            resource_slice("s-a", device("0"), device("nic", kind="nic"), shared, node="a"),
            resource_slice("s-all", device("far"), allNodes=True),
        )
    )
    world.table.classes.put(
        class_of(device_class("gpu", '!("kind" in device.attributes["gpu.example.com"])', extendedResourceName=GPU))
    )
    assert cards.of("a").n == 1 and cards.of("b") == NO_SLICE_CARDS
    world.table.slices.delete(slice_of(resource_slice("s-a", node="a")))
    assert cards.of("a") == NO_SLICE_CARDS


def test_a_device_and_its_parts_are_one_card() -> None:
    def part(name: str, amount: str) -> Manifest:
        consumes = [{"counterSet": "card", "counters": {"slices": {"value": amount}}}]
        return device(name) | {"consumesCounters": consumes}

    counters = [{"name": "card", "counters": {"slices": {"value": "2"}}}]
    world, cards = counted(
        claim("one"),
        slices=(
            resource_slice("s-0", node="a", pool="a", count=2, devices=None, sharedCounters=counters),
            resource_slice("s-1", part("whole", "2"), part("half-0", "1"), node="a", pool="a", count=2),
        ),
    )
    assert cards.of("a") == SliceCards(n=1, free=1)
    world.reserved("claims", "a", "one")
    assert cards.of("a") == SliceCards(n=1, free=0)


def test_fragmentation_and_tide_count_them() -> None:
    """Node `broken` has lent one of four cards to a claim; node `plugin` has a device plugin besides its slice."""
    scorer, settings = Scorer(clock=lambda: NOW + 60), Settings()
    tables = schedule_tables(scorer, settings.schedule.model_copy(update={"profiles": ["gpu"]}), settings.node_rules)
    gpus = gpus_in(tables)
    assert gpus is not None
    claims, labels = gpus.claims.table, {"nvidia.com/gpu.product": "H100", DOMAIN_LABEL: "forecast-scheduler"}
    nodes = [replace(card_node(name, cards=0), labels=labels) for name in ("broken", "whole")]
    nodes.append(replace(card_node("plugin", cards=2), labels=labels))
    scorer.tables.replace(Kind.NODES, nodes)
    large = [card_pod(f"large-{i}", whole=4) for i in range(4)]
    scorer.tables.replace(Kind.PODS, [replace(one, scheduler_name="gpu-scheduler") for one in large])
    with scorer.tables.reading() as cluster:
        rows = np.array([cluster.state.row_of[one] for one in ("broken", "whole")])
        small = card_pod("small", whole=1)
        assert gpus.fragmentation.prefer(small, 1, tables.view, rows).rows.tolist() == rows.tolist()
    claims.classes.replace([BACKED])
    slices = [
        resource_slice(f"s-{name}", *(device(str(i)) for i in range(4)), node=name)
        for name in ("broken", "whole", "plugin")
    ]
    claims.slices.replace([slice_of(one) for one in slices])
    result = {"request": "r", "driver": "gpu.example.com", "pool": "broken", "device": "2"}
    claims.claims.put(claim_of(claim("lent", status={"allocation": {"devices": {"results": [result]}}})))
    with scorer.tables.reading():
        assert gpus.fragmentation.prefer(small, 1, tables.view, rows).rows.tolist() == rows[:1].tolist()
        n = gpus.rules.devices.n_cards[rows]
        assert n.tolist() == [4, 4] and not gpus.rules.devices.n_devices[rows].any()
        free, model, _ = gpus.rules.devices.cards_on(rows)
        assert (free == 1000).sum(axis=1).tolist() == [3, 4] and (free >= 0).sum(axis=1).tolist() == [4, 4]
        assert {gpus.rules.devices.models[at] for at in model} == {"H100"}
        assert gpus.tide.pools == ["H100"] and gpus.tide.capacity().tolist() == [3 + 4 + 2]
        sits = replace(card_pod("sits", whole=1), node="whole")
    scorer.tables.put(Kind.PODS, sits)
    with scorer.tables.reading():
        assert gpus.tide.others().tolist() == [1] and gpus.rules.devices.conflicts() == 0
        version = gpus.rules.devices.version
    scorer.tables.put(Kind.PODS, card_pod("cores", node="broken"))
    with scorer.tables.reading():
        changed = gpus.rules.devices.changed_since(version)
        assert changed is not None and rows[0] in changed, "fewer cores beside the cards: the costs are others"
    scorer.tables.delete(Kind.NODES, nodes[1])
    with scorer.tables.reading():
        assert gpus.tide.capacity().tolist() == [3 + 2] and gpus.rules.devices.n_cards.sum() == 4 + 2
    claims.slices.replace([])
    with scorer.tables.reading():
        assert gpus.tide.capacity().tolist() == [2] and gpus.rules.devices.n_cards.sum() == 2
