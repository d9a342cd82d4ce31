"""Which provider has a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from base.errors import InputError
from kube.objects.objects import NodeInfo, Taint
from placement.virtual_node_settings import Provider, ServerlessOptions
from placement.virtual_node_table import REAL, Claims
from tests.profiles.job.serverless.providers_world import provider_node, real_node

VENDOR = Provider(name="eci", labels={"vendor": "e"})
OPTIONS = ServerlessOptions(providers=(Provider(name="aci"), VENDOR, Provider(name="late")))

FARGATE = "eks.amazonaws.com/compute-type"


def claimed(node: NodeInfo | None, options: ServerlessOptions = OPTIONS) -> str | None:
    claims = Claims(options)
    number = claims.of(node)
    return None if number == REAL else claims.providers[number].name


@pytest.mark.parametrize(
    ("node", "provider"),
    [
        (None, None),
        (real_node(), None),
        (provider_node("v", "aci"), "aci"),
        (provider_node("v", "unknown"), "other"),
        (provider_node("v"), "other"),
        (provider_node("v", labels={"vendor": "e"}), "eci"),
        (provider_node("v", "eci"), "other"),  # one with labels is known by them alone
        (provider_node("v", "late", labels={"vendor": "e"}), "eci"),  # the first that claims it
        (replace(real_node(), labels={"vendor": "e"}), "eci"),
        (replace(real_node(), labels={"type": "bare-metal"}), None),
        (replace(real_node(), taints=(Taint("dedicated", "aci", "NoSchedule"),)), None),
        (replace(real_node(), taints=(Taint(FARGATE, "fargate", "NoSchedule"),)), None),
    ],
)
def test_a_node_is_its_providers_by_label_or_taint(node: NodeInfo | None, provider: str | None) -> None:
    assert claimed(node) == provider


def test_other_taints_may_be_given() -> None:
    node = replace(real_node(), taints=(Taint(FARGATE, "fargate", "NoSchedule"),))
    assert claimed(node, ServerlessOptions(taints=(FARGATE,))) == "other"


def test_the_others_may_have_limits_too() -> None:
    claims = Claims(ServerlessOptions(providers=(Provider(name="other", most_pods=3),)))
    assert [provider.most_pods for provider in claims.providers] == [3]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Provider(name="p", weight=0.0), "Provider: weight is 0.0: "),
        (lambda: Provider(name="p", start_timeout=0.0), "Provider: start_timeout is 0.0: "),
        (lambda: ServerlessOptions(providers=(Provider(name="p"), Provider(name="p"))), "'p' is given twice"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()
