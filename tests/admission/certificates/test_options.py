from __future__ import annotations

from datetime import timedelta

import pytest

from admission.certificates.authority import issue, names_of, new_authority
from admission.webhook_settings import Lifetimes, Named
from base.errors import InputError
from tests.admission.certificates.certificate_world import OPTIONS, START

DAY = timedelta(days=1)


@pytest.mark.parametrize("text", ["", "name", "/name", "shop/", "Shop/name", "shop/a/b", "shop/na me", "../x/y"])
def test_a_named_object_has_a_namespace_and_a_name(text: str) -> None:
    assert str(Named.of("shop/hook.v1", "it")) == "shop/hook.v1"
    with pytest.raises(InputError, match=r"webhook\.certificates\.secret is .*: write NAMESPACE/NAME"):
        Named.of(text, "webhook.certificates.secret")


@pytest.mark.parametrize("name", ["", "a b", "*.example", "-x", "https://x", "x" * 300, "[::1]", "fe80::1%eth0"])
def test_names_are_dns_names_or_addresses(name: str) -> None:
    with pytest.raises(InputError, match="neither a DNS name nor an IP address"):
        OPTIONS.replace(names=(name,))


@pytest.mark.parametrize("name", ["2001:DB8::1", "2001:0db8:0:0:0:0:0:1", "::ffff:192.0.2.1", "192.0.2.1"])
def test_an_address_is_the_one_that_is_read_back_from_a_certificate_and_counts_once(name: str) -> None:
    names = OPTIONS.replace(names=(name, name.lower(), "hook.shop.svc")).all_names
    assert len(names) == 4
    certificate = issue(new_authority(START, 365 * DAY), names, START, 30 * DAY).certificate
    assert names_of(certificate) == set(names)


def test_the_first_name_is_what_the_api_server_asks_for_and_names_are_bounded() -> None:
    assert OPTIONS.all_names == ("hook.shop.svc", "hook.shop.svc.cluster.local", "hook.shop", "127.0.0.1", "localhost")
    with pytest.raises(InputError, match="33 further names"):
        OPTIONS.replace(names=tuple(f"n{i}" for i in range(33)))
    with pytest.raises(InputError, match="no name of a MutatingWebhookConfiguration"):
        OPTIONS.replace(webhook_configuration="a/b")


def test_what_an_authority_signs_last_ends_before_it_does() -> None:
    lives = Lifetimes()
    assert lives.serving + lives.ahead <= lives.authority / 3
