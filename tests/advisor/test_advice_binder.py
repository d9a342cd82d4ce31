"""In place of a binding: the node nominated, then our gate removed; and what a later look does about it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from advisor.advice_binder import AdviceBinder, AdviceFigures, AdviceNotes
from advisor.followed_advice import CanaryOutcome, Following, NominationTrust
from advisor.pods_waiting_for_advice import GatedPods
from cluster.assuming_cluster import AssumingCluster
from kube.binding.binding_steps import BindingVerdict
from kube.client.api_answer import ApiAnswer, answered, not_sent, unanswered
from kube.client.pod_writes import MERGE
from kube.objects.constraints import NodeSelectorTerm, Operator, PreferredNodeTerm, Requirement
from kube.objects.objects import PodInfo
from kube.status.pod_conditions import STRATEGIC_MERGE
from placement.decisions.recorder import DecisionRecorder
from placement.gate_exemptions import ADVICE
from placement.preferred_nodes import PREFERRED
from placement.status import Code
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.binding.outcome import BindStatus, Ending, outcome_of_binding
from scorer.options import ScorerOptions
from testing.settable_clock import SettableClock
from tests.advisor.made_up import (
    ANOTHER_UID,
    DONE,
    FORBIDDEN,
    INVALID,
    MISSING,
    UID_CONFLICT,
    Asked,
    Session,
    gated,
    pod_answer,
    scheduled_is,
)
from tests.placement.decisions.made_up import advice, expecting

POD = gated("a")
PATH = "/api/v1/namespaces/shop/pods/a"
THROTTLED, BUSY, SILENT = answered(429, b""), answered(503, b"busy"), unanswered(TimeoutError())
CONFLICT = answered(409, b'{"message":"the object has been modified"}')
AT_N2 = answered(200, b'{"status":{"nominatedNodeName":"n2"}}')
GONE = (MISSING, ANOTHER_UID, UID_CONFLICT)


class Scene:
    """A binder, and one pod that our gate holds."""

    def __init__(self, *answers: ApiAnswer, held: bool = True) -> None:
        self.session, self.figures = Session(*answers), AdviceFigures()
        self.limit = InFlightLimit(32, clock=lambda: 0.0)
        cluster = AssumingCluster(ScorerOptions(), now=0.0)
        self.gated = GatedPods(cluster, clock=SettableClock(0.0))
        cluster.listeners.append(self.gated.apply)
        self.notes = AdviceNotes(DecisionRecorder([], version="1.2.3"))
        self.clock, self.ranked, self.evicting = SettableClock(0.0), list[str](), set[str]()
        self.following = Following(lambda: (1, 37), clock=self.clock)
        self.binder = AdviceBinder(
            self.session,
            self.limit,
            notes=self.notes,
            gated=self.gated,
            seconds=5.0,
            figures=self.figures,
            following=self.following,
            ranking_of=self._ranking,
            peak_of=lambda pod, node: expecting({"n2": 0.7}.get(node))(),
            makes_room=lambda pod, node: node in self.evicting,
            n_nodes=4,
        )
        if held:
            cluster.put_pod(POD)

    def _ranking(self, pod: PodInfo) -> list[str]:
        self.ranked.append(pod.name)
        return ["n2", "n1", "n3", "n4", "n5"]

    def knows(self, state: NominationTrust) -> None:
        """This is known of nominations, and no canary is due."""
        self.following._state, self.following._due, self.following._known_version = state, 1.0, (1, 37)

    def advise(self, **changes: Any) -> None:
        """There is advice on the pod: n1, then n2."""
        self.notes.advised(advice({"n1": 3, "n2": 1}, uid=POD.uid, peak=expecting(0.5), model_version=None, **changes))

    def bind(self, pod: PodInfo = POD, node: str = "n1") -> BindStatus:
        return asyncio.run(self.binder.bind(pod, node))

    def look(self, pod: PodInfo = POD, node: str = "n1") -> BindStatus:
        return asyncio.run(self.binder.look(pod, node))

    @property
    def asked(self) -> list[Asked]:
        return self.session.asked

    @property
    def counts(self) -> tuple[int, int]:
        return self.figures.advised, self.figures.withdrawn

    @property
    def is_free(self) -> bool:
        """Whether another one may remove the gate now."""
        return [pod.uid for pod in self.gated.held_for(0.0)] == [POD.uid]


def _verdict(status: BindStatus) -> BindingVerdict:
    assert status.plugin == "Advice" and status.result is not None
    return status.result.verdict


def test_first_the_node_is_nominated_then_the_gate_removed_with_a_note_if_one_is_known() -> None:
    scene = Scene()
    scene.knows(NominationTrust.FOLLOWED)
    scene.advise()
    assert scene.bind().is_success
    nominated, released = scene.asked
    assert nominated == Asked(
        "PATCH", f"{PATH}/status", {"metadata": {"uid": "uid-a"}, "status": {"nominatedNodeName": "n1"}}, MERGE
    )
    assert (released.method, released.path, released.content_type) == ("PATCH", PATH, STRATEGIC_MERGE)
    assert released.body["spec"] == {"schedulingGates": [{"$patch": "delete", "name": ADVICE}]}
    note = msgspec.json.decode(released.body["metadata"]["annotations"][ADVICE])
    assert note.pop("expected_peak")["share"] == 0.5
    assert note == {"node": "n1", "runner_up": "n2"}
    assert scene.counts == (1, 0)
    assert not scene.is_free, "until the watch shows it"
    scene = Scene()
    assert scene.bind().is_success
    note = msgspec.json.decode(scene.asked[1].body["metadata"]["annotations"][ADVICE])
    assert note == {"node": "n1", "because": "not known any more"}


@pytest.mark.parametrize("claimed", [True, False])
def test_whose_gate_is_being_removed_or_is_gone_is_asked_nothing_about(claimed: bool) -> None:
    scene = Scene(held=claimed)
    if claimed:
        assert scene.gated.claim(POD.uid)
    scene.notes.advised(advice({"n1": 1}, uid=POD.uid))
    status = scene.bind()
    assert scene.asked == [] and scene.counts == (0, 0)
    assert (status.code, _verdict(status)) == (Code.UNSCHEDULABLE, BindingVerdict.GONE)
    assert outcome_of_binding(status).is_gone, "nothing is to be scheduled any more"
    assert scene.notes.take(POD.uid) is None, "it is not kept for ever"
    if claimed:
        assert scene.gated.held_for(0.0) == [], "the claim of the other one stays"


@pytest.mark.parametrize("answer", [BUSY, SILENT, THROTTLED, CONFLICT, not_sent("does not lead")])
def test_nothing_is_released_if_the_nomination_fails(answer: ApiAnswer) -> None:
    scene = Scene(*[answer] * 9)
    status = scene.bind()
    passes = answer in (BUSY, SILENT, THROTTLED, CONFLICT)
    assert [one.path for one in scene.asked] == [f"{PATH}/status"] * (2 if passes else 1), "tried twice and no more"
    # After no answer it may be nominated all the same, and is looked at again.
    is_over = answer not in (BUSY, SILENT, THROTTLED)
    assert _verdict(status) is (BindingVerdict.REFUSED if is_over else BindingVerdict.UNKNOWN)
    assert answer.text in status.reason and "n1 was not nominated" in status.reason
    assert scene.counts == (0, 0) and scene.is_free


@pytest.mark.parametrize("answer", GONE)
@pytest.mark.parametrize("before", [[], [DONE]])
def test_a_pod_that_is_gone_is_left_alone(before: list[ApiAnswer], answer: ApiAnswer) -> None:
    scene = Scene(*before, *[answer] * 9)
    status = scene.bind()
    assert len(scene.asked) == len(before) + 1, "asked again it would be gone, too"
    assert (status.code, _verdict(status)) == (Code.UNSCHEDULABLE, BindingVerdict.GONE)
    assert scene.counts == (0, 0)


@pytest.mark.parametrize("answer", [FORBIDDEN, INVALID, BUSY, SILENT, CONFLICT])
def test_whether_the_gate_is_gone_is_not_known_if_its_removal_fails(answer: ApiAnswer) -> None:
    scene = Scene(DONE, *[answer] * 9)
    status = scene.bind()
    assert scene.asked[-1].path == PATH
    assert (status.code, _verdict(status)) == (Code.ERROR, BindingVerdict.UNKNOWN)
    assert outcome_of_binding(status).ending is Ending.UNKNOWN, "its nomination is looked at later"
    assert "our gate was not removed" in status.reason
    assert scene.counts == (0, 0) and scene.is_free, "who is overdue is released"
    assert scene.gated.held_for(0.0)[0].nominated_node == "n1", "its release notes where it is nominated"


@pytest.mark.parametrize("answer", [BUSY, SILENT, THROTTLED, CONFLICT, answered(500, b"")])
@pytest.mark.parametrize("before", [[], [DONE]])
def test_what_passes_is_tried_again(before: list[ApiAnswer], answer: ApiAnswer) -> None:
    scene = Scene(*before, answer)
    assert scene.bind().is_success
    paths = [f"{PATH}/status", PATH]
    paths.insert(len(before), paths[len(before)])
    assert [one.path for one in scene.asked] == paths
    assert scene.counts == (1, 0)


def test_the_limit_is_told_and_a_binding_that_is_cut_off_gives_its_claim_back() -> None:
    scene = Scene(THROTTLED, DONE, DONE)
    assert scene.bind().is_success
    assert scene.limit.throttled == 1 and scene.limit.now == 24
    busy = Scene(BUSY, DONE, DONE)
    busy.limit.was_throttled()
    for _ in range(9):
        busy.limit.went_well()
    assert busy.limit.now == 24
    assert busy.bind().is_success and busy.limit.throttled == 1
    scene = Scene()

    def cut() -> None:
        raise asyncio.CancelledError

    scene.session.before = cut
    with pytest.raises(asyncio.CancelledError):
        scene.bind()
    assert scene.is_free


# Where nominations are not followed, or that is to be seen


def _preferred(asked: Asked) -> list[tuple[int, str]]:
    """Weights and nodes of a patch of a pod."""
    terms = asked.body["spec"]["affinity"]["nodeAffinity"][PREFERRED]
    return [(one["weight"], *one["preference"]["matchFields"][0]["values"]) for one in terms]


def test_a_canary_is_nominated_to_the_second_best_node_and_prefers_the_best() -> None:
    scene = Scene(AT_N2, DONE)
    scene.advise()
    assert scene.bind().is_success
    nominated, released = scene.asked
    assert nominated.body["status"] == {"nominatedNodeName": "n2"}
    assert _preferred(released) == [(100, "n1")]
    note = msgspec.json.decode(released.body["metadata"]["annotations"][ADVICE])
    assert note.pop("expected_peak")["share"] == 0.7
    assert note == {"node": "n2", "runner_up": "n1", "mode": "canary"}
    scene.following.bound(POD.uid, "n2", lambda node: False)
    assert scene.following.state is NominationTrust.FOLLOWED and scene.counts == (1, 0)
    scene.session.answers = [pod_answer(replace(NOMINATED, nominated_node="n2"), **TRIED)]
    assert _verdict(scene.look()) is BindingVerdict.REFUSED
    assert scene.counts == (1, 1), "it is withdrawn as other nominations are, which name the node that the loop chose"


def test_where_nominations_are_ignored_one_patch_removes_the_gate_and_says_what_the_pod_prefers() -> None:
    scene = Scene()
    scene.knows(NominationTrust.IGNORED)
    scene.advise()
    assert scene.bind().is_success
    (released,) = scene.asked
    assert released.body["spec"]["schedulingGates"] == [{"$patch": "delete", "name": ADVICE}]
    assert _preferred(released) == [(100, "n1"), (40, "n2")] and scene.ranked == []
    assert msgspec.json.decode(released.body["metadata"]["annotations"][ADVICE])["mode"] == "prefer"
    assert (scene.figures.preferred, scene.counts) == (1, (0, 0))
    doubted = Scene()
    doubted.knows(NominationTrust.DOUBTED)
    doubted.advise()
    assert doubted.bind().is_success
    assert [one.path for one in doubted.asked] == [f"{PATH}/status", PATH] and doubted.counts == (1, 0)
    assert _preferred(doubted.asked[1]) == [(100, "n1"), (40, "n2")]


def test_of_many_nodes_kube_scheduler_sees_a_part_so_more_are_named() -> None:
    scene = Scene()
    scene.knows(NominationTrust.IGNORED)
    scene.advise(n_nodes=101)
    assert scene.bind().is_success
    assert _preferred(scene.asked[0]) == [(100, "n1"), (40, "n2"), (16, "n3"), (6, "n4")]
    canary = Scene(AT_N2, DONE)
    canary.advise(n_nodes=101)
    assert canary.bind().is_success
    assert _preferred(canary.asked[1]) == [(100, "n1"), (40, "n3"), (16, "n4"), (6, "n5")]


@pytest.mark.parametrize("reads", [True, False])
def test_terms_that_the_pod_has_stay_in_front(reads: bool) -> None:
    own = {"weight": 3, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    spec = {"affinity": {"nodeAffinity": {PREFERRED: [own]}}}
    scene = Scene(answered(200, msgspec.json.encode({"spec": spec})) if reads else BUSY)
    scene.knows(NominationTrust.IGNORED)
    scene.advise()
    terms = (PreferredNodeTerm(3, NodeSelectorTerm((Requirement("disk", Operator.EXISTS),))),)
    pod = replace(POD, constraints=replace(POD.constraints, preferred_node_terms=terms))
    assert scene.bind(pod).is_success
    assert [one.method for one in scene.asked] == ["GET", "PATCH"]
    if reads:
        assert scene.asked[1].body["spec"]["affinity"]["nodeAffinity"][PREFERRED][0] == own
    else:
        assert "affinity" not in scene.asked[1].body["spec"], "what it has is not known"


@pytest.mark.parametrize("answer", [FORBIDDEN, INVALID, answered(200, b'{"status":{}}'), answered(200, b"<html>")])
def test_a_pod_whose_nomination_is_not_taken_prefers_its_node(answer: ApiAnswer) -> None:
    scene = Scene(answer)
    scene.advise()
    assert scene.bind().is_success
    assert [one.path for one in scene.asked] == [f"{PATH}/status", PATH]
    assert _preferred(scene.asked[1])[0] == (100, "n1"), "the best, also of a canary"
    assert msgspec.json.decode(scene.asked[1].body["metadata"]["annotations"][ADVICE])["node"] == "n1"
    assert scene.following.canaries[CanaryOutcome.REFUSED] == 1 and scene.figures.preferred == 1


def test_the_gate_goes_without_preferences_where_these_are_refused() -> None:
    scene = Scene(FORBIDDEN, FORBIDDEN)  # the second without the note
    scene.knows(NominationTrust.IGNORED)
    scene.advise()
    assert scene.bind().is_success
    assert [list(one.body["spec"]) for one in scene.asked] == [
        *[["schedulingGates", "affinity"]] * 2,
        ["schedulingGates"],
    ]
    note = msgspec.json.decode(scene.asked[2].body["metadata"]["annotations"][ADVICE])
    assert note == {"node": None, "because": "preferred node affinity was refused: 403 pods/status is forbidden"}


# A later look

OPEN = replace(POD, gates=())
TRIED = scheduled_is("False", "Unschedulable")


NOMINATED = replace(OPEN, nominated_node="n1")
GATED = replace(POD, nominated_node="n1")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        pytest.param(pod_answer(replace(OPEN, node="n1")), BindingVerdict.BOUND, id="bound there"),
        # The API server clears the nomination of a pod that is bound.
        pytest.param(pod_answer(replace(NOMINATED, node="n2"), **TRIED), BindingVerdict.ELSEWHERE, id="elsewhere"),
        pytest.param(MISSING, BindingVerdict.GONE, id="gone"),
        pytest.param(pod_answer(replace(OPEN, uid="later")), BindingVerdict.GONE, id="another of its name"),
        pytest.param(pod_answer(replace(OPEN, terminating=True)), BindingVerdict.GONE, id="terminating"),
        pytest.param(pod_answer(GATED, **TRIED), BindingVerdict.REFUSED, id="still gated"),
        pytest.param(pod_answer(replace(OPEN, nominated_node="n7"), **TRIED), BindingVerdict.REFUSED, id="of another"),
        pytest.param(pod_answer(OPEN, **TRIED), BindingVerdict.REFUSED, id="not nominated any more"),
        pytest.param(pod_answer(NOMINATED), BindingVerdict.UNKNOWN, id="not tried yet"),
        pytest.param(
            pod_answer(NOMINATED, **scheduled_is("False", "SchedulingGated")), BindingVerdict.UNKNOWN, id="seen gated"
        ),
        pytest.param(pod_answer(NOMINATED, **scheduled_is("True", None)), BindingVerdict.UNKNOWN, id="just bound"),
        pytest.param(pod_answer(OPEN, conditions="many"), BindingVerdict.UNKNOWN, id="unreadable status"),
        *(
            pytest.param(answer, BindingVerdict.UNKNOWN, id=f"no answer: {answer.text}")
            for answer in (
                *(SILENT, BUSY, FORBIDDEN, answered(404, b"no such route")),
                *(answered(200, b"<html>"), answered(200, b'{"spec":7}')),
            )
        ),
    ],
)
def test_what_a_look_tells_without_a_withdrawal(answer: ApiAnswer, verdict: BindingVerdict) -> None:
    scene = Scene(answer)
    assert _verdict(scene.look()) is verdict
    assert scene.asked == [Asked("GET", PATH, None, "")] and scene.counts == (0, 0)


def test_our_nomination_of_a_pod_that_was_tried_in_vain_is_withdrawn() -> None:
    scene = Scene(pod_answer(NOMINATED, version="41", **TRIED))
    assert _verdict(scene.look()) is BindingVerdict.REFUSED
    body = {"metadata": {"uid": "uid-a", "resourceVersion": "41"}, "status": {"nominatedNodeName": None}}
    assert scene.asked[1:] == [Asked("PATCH", f"{PATH}/status", body, MERGE)]
    assert scene.counts == (0, 1)


def test_a_nomination_stays_while_victims_end_on_the_node() -> None:
    """kube-scheduler may have made room there: its nomination and ours look alike."""
    scene = Scene(pod_answer(NOMINATED, **TRIED))
    scene.evicting.add("n1")
    assert _verdict(scene.look()) is BindingVerdict.UNKNOWN
    assert len(scene.asked) == 1 and scene.counts == (0, 0)


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_withdrawal_that_failed_is_to_be_tried_later_on_a_pod_read_anew(is_gone: bool) -> None:
    for answer in GONE if is_gone else (CONFLICT, FORBIDDEN, BUSY, SILENT, not_sent("does not lead")):
        scene = Scene(pod_answer(NOMINATED, **TRIED), answer)
        status = scene.look()
        assert _verdict(status) is (BindingVerdict.REFUSED if is_gone else BindingVerdict.UNKNOWN)
        assert is_gone or ("not withdrawn" in status.reason and scene.counts == (0, 0))
        assert len(scene.asked) == 2
