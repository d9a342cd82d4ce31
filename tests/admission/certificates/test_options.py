from __future__ import annotations

from datetime import timedelta

import pytest

from admission.certificates.authority import issue, names_of, new_authority
from admission.certificates.options import Lifetimes, Named
from forecast.errors import InputError
from tests.admission.certificates.certificate_world import OPTIONS, START

DAY = timedelta(days=1)


def test_the_first_name_is_what_the_api_server_asks_for() -> None:
    assert OPTIONS.all_names == ("hook.shop.svc", "hook.shop.svc.cluster.local", "hook.shop", "127.0.0.1", "localhost")


@pytest.mark.parametrize("text", ["", "name", "/name", "shop/", "Shop/name", "shop/a/b", "shop/na me", "../x/y"])
def test_a_named_object_has_a_namespace_and_a_name(text: str) -> None:
    with pytest.raises(InputError, match=r"webhook\.certificates\.secret is .*: write NAMESPACE/NAME"):
        Named.of(text, "webhook.certificates.secret")


def test_a_named_object_is_read() -> None:
    assert str(Named.of("shop/hook.v1", "it")) == "shop/hook.v1"


@pytest.mark.parametrize("name", ["", "a b", "*.example", "-x", "https://x", "x" * 300, "[::1]", "fe80::1%eth0"])
def test_names_are_dns_names_or_addresses(name: str) -> None:
    with pytest.raises(InputError, match="neither a DNS name nor an IP address"):
        OPTIONS.replace(names=(name,))


@pytest.mark.parametrize("name", ["2001:DB8::1", "2001:0db8:0:0:0:0:0:1", "::ffff:192.0.2.1", "192.0.2.1"])
def test_an_address_is_the_one_that_is_read_back_from_a_certificate(name: str) -> None:
    options = OPTIONS.replace(names=(name,))
    authority = new_authority(START, 365 * DAY)
    certificate = issue(authority, options.all_names, START, 30 * DAY).certificate
    assert names_of(certificate) == set(options.all_names)


def test_a_name_that_is_given_twice_counts_once() -> None:
    names = OPTIONS.replace(names=("2001:DB8::1", "2001:db8::1", "hook.shop.svc")).all_names
    assert names == ("hook.shop.svc", "hook.shop.svc.cluster.local", "hook.shop", "2001:db8::1")


def test_names_are_bounded() -> None:
    with pytest.raises(InputError, match="33 further names"):
        OPTIONS.replace(names=tuple(f"n{i}" for i in range(33)))


def test_a_configuration_has_a_name() -> None:
    with pytest.raises(InputError, match="no name of a MutatingWebhookConfiguration"):
        OPTIONS.replace(webhook_configuration="a/b")


@pytest.mark.parametrize("spans", [(120, 365, 2), (1, 2, 0), (1, 30, 10)])
def test_what_an_authority_signs_last_ends_before_it(spans: tuple[int, int, int]) -> None:
    serving, authority, ahead = (span * DAY for span in spans)
    with pytest.raises(InputError, match="a third of its lifetime at most"):
        Lifetimes(serving, authority, ahead)


@pytest.mark.parametrize("spans", [{"serving": 0}, {"ahead": -1}, {"settle": -1}])
def test_lifetimes_are_above_zero(spans: dict[str, int]) -> None:
    with pytest.raises(InputError, match="above 0"):
        Lifetimes(**{name: span * DAY for name, span in spans.items()})
