from __future__ import annotations

from forecast.service_key import ServiceKey
from kube.objects.services import KEPT_EMPTY, ServiceNumbers


def key(number: int) -> ServiceKey:
    return ServiceKey("shop", "Pod", f"p{number}")


def test_numbers_of_services_are_used_again_and_serving_pods_count() -> None:
    services = ServiceNumbers()
    services.join(key(0), serves=True)  # stays
    for number in range(1, 10 * KEPT_EMPTY):
        index, _ = services.join(key(number), serves=True)
        services.leave(index, served=True)
    assert len(services.keys) == KEPT_EMPTY + 2
    assert services.keys[0] == key(0) and services.pods[0] == 1
    assert all(services.keys[index] == name for name, index in services.index_of.items())
    assert key(1) not in services.index_of  # the longest empty went first
    assert key(10 * KEPT_EMPTY - 1) in services.index_of
    services = ServiceNumbers()
    services.join(key(0), serves=False)
    assert services.take_changed() == {0}  # what its Deployment wants counts by what is there
    services.join(key(0), serves=True)
    assert (services.pods[0], services.serving[0]) == (2, 1)
    assert services.take_changed() == {0}
    assert services.take_changed() == set()
    services.leave(0, served=False)
    assert services.take_changed() == {0}
    services.leave(0, served=True)
    assert services.take_changed() == {0}
    services.mark_changed(key(0))
    services.mark_changed(key(1))
    assert services.take_changed() == {0}
