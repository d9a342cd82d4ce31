from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from admission.certificates.authority import fingerprint, new_authority, to_pem
from admission.certificates.certificate_store import patch_of, published_in
from tests.admission.certificates.certificate_world import OPTIONS, START, webhook

ONE, TWO = (new_authority(START, timedelta(days=9)).certificate for _ in range(2))
BUNDLE, LONGER = (b64encode(to_pem(some)).decode() for some in ([ONE], [ONE, TWO]))


def configuration(*webhooks: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "hook", "resourceVersion": "7"}, "webhooks": list(webhooks)}


def url(address: str) -> dict[str, Any]:
    return {"name": "by-url", "clientConfig": {"url": address}}


def test_webhooks_are_ours_by_service_or_by_a_name_of_the_certificate() -> None:
    found = published_in(
        configuration(
            webhook(service="other"),
            webhook(),
            url("https://127.0.0.1:8443/mutate"),
            url("https://elsewhere.example/mutate"),
            url("https://hook.shop.svc/mutate"),
            url("https://[broken/"),
            {"name": "neither"},
        ),
        OPTIONS,
    )
    assert found.webhooks == (1, 2, 4)
    other = OPTIONS.replace(service=replace(OPTIONS.service, namespace="other"), names=())
    assert published_in(configuration(webhook()), other).webhooks == ()
    assert published_in({"metadata": {"resourceVersion": "1"}}, OPTIONS).webhooks == ()
    assert published_in({"webhooks": None}, OPTIONS).trusted == frozenset()


@pytest.mark.parametrize("name", ["2001:db8::1", "2001:DB8:0::1"])
@pytest.mark.parametrize("host", ["[2001:db8::1]", "[2001:DB8:0:0::1]"])
def test_an_address_is_ours_however_it_is_written(name: str, host: str) -> None:
    options = OPTIONS.replace(names=(name,))
    assert published_in(configuration(url(f"https://{host}:8443/mutate")), options).webhooks == (0,)


def test_the_patch_trusts_whom_all_trust_at_the_version_that_was_read() -> None:
    found = published_in(configuration(webhook(bundle=BUNDLE), webhook(bundle=LONGER)), OPTIONS)
    assert found.trusted == {fingerprint(ONE)}
    assert found.authorities == (ONE, ONE, TWO)
    assert not found.is_exactly([ONE]) and not found.is_exactly([ONE, TWO])
    longer = published_in(configuration(webhook(bundle=LONGER)), OPTIONS)
    assert longer.is_exactly([TWO, ONE]), "the order does not matter"
    found = published_in(configuration(webhook(), webhook(service="other"), webhook()), OPTIONS)
    assert patch_of(found, [ONE]) == [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": BUNDLE},
        {"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": BUNDLE},
    ]
