from __future__ import annotations

from unittest.mock import Mock

import pytest

from admission.templates import applied_bindings, merging
from admission.templates import merging as conflicts
from admission.templates.applied_bindings import MOST_BINDINGS, MOST_CANDIDATES, MOST_COMPARED, SkipReason
from tests.admission.templates.manifests import Manifest, binding, node_config, template_set
from tests.admission.templates.shaping_pods import (
    MERGE,
    POOL,
    A,
    B,
    applied_to_pod,
    demanded,
    on,
    pod,
    reasons,
    shaped,
    term,
    wanting,
)


def test_what_fits_only_after_a_later_binding_is_applied_at_once() -> None:
    """Else it would be when the pod is sent a second time."""
    many = node_config("many", required=[term(on("pool", str(n))) for n in range(16)])
    few = node_config("few", required=[term(on("zone", "0", "1"))])
    templates = template_set(
        many,
        few,
        binding("first", "NodeSchedulerConfig/many", priority=1, **MERGE),
        binding("second", "NodeSchedulerConfig/few", **MERGE),
    )
    own = pod(affinity=wanting(*[term(on("zone", str(n))) for n in range(5)]))
    result = shaped(own, templates)
    assert len(demanded(result)) == 32
    assert [one.binding for one in result.applied] == ["first", "second"]
    again = shaped(applied_to_pod(own, result), templates)
    assert (again.affinity, again.annotations) == (None, {})


def test_so_many_bindings_for_one_pod_and_no_more() -> None:
    manifests: list[Manifest] = []
    for number in range(MOST_BINDINGS + 3):
        manifests += [
            node_config(f"t{number:02}", required=[term(on(f"key-{number}", "a"))]),
            binding(f"b{number:02}", f"NodeSchedulerConfig/t{number:02}"),
        ]
    templates = template_set(*manifests)
    first = shaped(pod(), templates)
    assert len(first.applied) == MOST_BINDINGS
    assert [one.reason for one in first.skipped[-3:]] == [SkipReason.TOO_LARGE] * 3
    again = shaped(applied_to_pod(pod(), first), templates)
    assert (again.affinity, again.annotations) == (None, {})


def test_so_many_bindings_are_tried_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 that ask in vain must not hold up other pods. What is counted is the work."""
    merge, compared = Mock(wraps=merging.merged), Mock(wraps=conflicts.lost_keys)
    monkeypatch.setattr(applied_bindings, "merged", merge)
    monkeypatch.setattr(applied_bindings, "lost_keys", compared)
    template = node_config("pool", required=[term(A, on("zone", str(n))) for n in range(16)])
    fits = node_config("fits", required=[term(on("disk", "ssd"))])
    for rule, reason in (("Merge", SkipReason.CONTRADICTION), ("KeepPod", SkipReason.KEPT_POD)):
        many = [binding(f"b{number:04}", onConflict=rule) for number in range(1000)]
        early, late = (binding(name, "NodeSchedulerConfig/fits", priority=p) for name, p in (("e", 1), ("l", -1)))
        templates = template_set(template, fits, *many, early, late, binding("s", suspended=True, priority=2))
        own = pod(affinity=wanting(*[term(B, on("zone", f"z{n}")) for n in range(4)]))
        merge.reset_mock()
        compared.reset_mock()
        result = shaped(own, templates)
        assert merge.call_count <= MOST_CANDIDATES and compared.call_count <= MOST_COMPARED
        assert [one.binding for one in result.applied] == ["e"]
        told = reasons(result)
        assert told["b0000"] is reason and told["b0999"] is told["l"] is SkipReason.TOO_LARGE
        again = shaped(applied_to_pod(own, result), templates)
        assert (again.affinity, again.annotations) == (None, {})


def test_rounds_end_though_each_makes_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bindings written so that one of n terms fits only once that of the next smaller n has ruled out enough."""
    merge = Mock(wraps=merging.merged)
    monkeypatch.setattr(applied_bindings, "merged", merge)
    sizes = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16)
    manifests: list[Manifest] = []
    for priority, (size, following) in enumerate(zip(sizes, (*sizes[1:], 64), strict=True)):
        left = on("zone", *(str(n) for n in range(64 // following)))
        others = [term(on("zone", f"none-{n}")) for n in range(size - 1)]
        manifests.append(node_config(f"t{size}", required=[term(left), *others]))
        manifests.append(binding(f"b{size}", f"NodeSchedulerConfig/t{size}", priority=priority, **MERGE))
    own = pod(affinity=wanting(*[term(on("zone", str(n))) for n in range(64)]))
    assert len(shaped(own, template_set(*manifests)).applied) == len(sizes)
    assert merge.call_count > 100
    merge.reset_mock()
    monkeypatch.setattr(applied_bindings, "MOST_TRIES", 30)
    assert 1 < len(shaped(own, template_set(*manifests)).applied) < len(sizes)
    assert merge.call_count <= 30 + len(sizes)


def test_neither_affinity_nor_annotations_grow_beyond_their_limits() -> None:
    long = [on(f"key-{n}", *(f"{n}-{v}-{'x' * 56}" for v in range(32))) for n in range(8)]
    template = node_config("pool", required=[term(*long)])
    assert shaped(pod(), template_set(template, binding())).applied
    own = wanting(term(on("zone", *(f"{v}-{'x' * 56}" for v in range(300)))))
    result = shaped(pod(affinity=own), template_set(template, binding()))
    assert reasons(result) == {"cart": SkipReason.TOO_LARGE} and "bytes" in result.skipped[0].message
    full = pod()
    full["metadata"]["annotations"] = {"example.com/notes": "x" * (256 * 1024 - 100)}
    result = shaped(full, template_set(POOL, binding()))
    assert (result.affinity, result.annotations, reasons(result)) == (None, {}, {"cart": SkipReason.TOO_LARGE})
