"""Which services are left alone, and settings of them that mean none."""

from __future__ import annotations

import pytest

from base.errors import InputError
from base.excluded import ExcludedOptions

EXCLUDED = ExcludedOptions(namespaces=("legacy", "team-*"), services=("shop/cart", "shop/Job/*"))


@pytest.mark.parametrize(
    ("service", "because"),
    [
        (("legacy", "Deployment", "web"), "excluded.namespaces has legacy"),
        (("team-7", "Deployment", "web"), "excluded.namespaces has team-*"),
        (("shop", "StatefulSet", "cart"), "excluded.services has shop/cart"),
        (("shop", "Job", "report"), "excluded.services has shop/Job/*"),
        (("shop", "Deployment", "carts"), ""),
        (("legacy-2", "Deployment", "web"), ""),
        (("kube-system", "DaemonSet", "kube-proxy"), ""),
    ],
)
def test_services_are_named_by_namespace_kind_and_name_or_patterns_of_them(
    service: tuple[str, str, str], because: str
) -> None:
    assert EXCLUDED.why(*service) == because
    assert ExcludedOptions().why(*service) == ""


@pytest.mark.parametrize("text", ["cart", "shop/", "/cart", "a/b/c/d", ""])
def test_a_text_that_names_no_service_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="write NAMESPACE/NAME or NAMESPACE/KIND/NAME"):
        ExcludedOptions(services=(text,))


@pytest.mark.parametrize("text", ["shop/cart", ""])
def test_a_text_that_names_no_namespace_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no namespace"):
        ExcludedOptions(namespaces=(text,))
