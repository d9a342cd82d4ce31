"""What a page in a browser may make it send: checks of Host, Origin and content type in every service."""

from __future__ import annotations

import pytest

from base.errors import InputError
from forecast.hot_share import HOT_SHARE
from forecast_scheduler.commands.serving_access import hosts_of
from scorer.service.app import create_app
from serving.hosts import ANY_HOST, Hosts
from serving.server_settings import ServingOptions
from testing.app_client import AppClient
from tests.forecast_scheduler.test_every_route import SERVICES, routes_of
from tests.scorer.service.fake_scorer import FakeScorer

LOOPBACK = Hosts(loopback=True)
BEHIND = Hosts(frozenset({"forecast.example.com"}), loopback=True)
NAMED = Hosts(frozenset({"forecast.example.com"}))


@pytest.mark.parametrize(
    ("hosts", "host", "taken"),
    [
        (ANY_HOST, "scorer.forecast-scheduler.svc:8080", True),
        (LOOPBACK, "127.0.0.1:8080", True),
        (LOOPBACK, "LOCALHOST", True),
        (LOOPBACK, "localhost.:8080", True),
        (LOOPBACK, "page.localhost:8080", True),
        (LOOPBACK, "[::1]:8080", True),
        (LOOPBACK, "127.8.9.1", True),
        (LOOPBACK, "evil.example:8080", False),
        (LOOPBACK, "127.0.0.1.evil.example", False),
        (LOOPBACK, "localhost.evil.example", False),
        (LOOPBACK, "localhost@evil.example", False),
        (LOOPBACK, "evil.example@localhost.evil.example", False),
        (LOOPBACK, "10.0.0.7:8080", False),
        (LOOPBACK, "", False),
        (LOOPBACK, "[::1", False),
        (BEHIND, "forecast.example.com", True),
        (BEHIND, "Forecast.Example.Com:8443", True),
        (BEHIND, "other.example.com", False),
        (NAMED, "10.0.0.7:8080", True),  # a probe
        (NAMED, "other.example.com", False),
    ],
)  # fmt: skip
def test_only_our_names_are_taken_as_host(hosts: Hosts, host: str, taken: bool) -> None:
    assert (not hosts.refusal([host], [])) == taken


@pytest.mark.parametrize(
    ("host", "origin", "taken"),
    [
        ("localhost:8080", "http://localhost:8080", True),
        ("localhost:8080", "http://localhost:3000", False),  # another program's page
        ("localhost", "http://localhost:80", True),
        ("localhost:443", "https://localhost", True),
        ("localhost", "https://localhost", True),
        ("localhost:80", "https://localhost", False),
        ("localhost:8080", "http://evil.example", False),
        ("localhost:8080", "null", False),  # a sandboxed frame, a file
        ("localhost:8080", "http://localhost:8080.evil.example", False),
        ("localhost:8080", "chrome-extension://abc", False),
        ("127.0.0.1:8080", "https://forecast.example.com", True),  # a proxy has replaced the Host
    ],
)
def test_only_pages_of_ours_are_taken_as_origin(host: str, origin: str, taken: bool) -> None:
    assert (not BEHIND.refusal([host], [origin])) == taken


def test_a_foreign_page_changes_and_reads_nothing_and_probes_are_answered() -> None:
    scorer = FakeScorer(3)
    with AppClient(create_app(scorer, hosts=LOOPBACK, hot=HOT_SHARE)) as client:
        charge = {"pod": {"namespace": "shop", "name": "cart-1"}, "node": "node-01"}
        for headers in ({"Host": "evil.example"}, {"Host": "localhost", "Origin": "http://evil.example"}):
            answer = client.post("/v1/charges", json=charge, headers=headers)
            assert answer.status_code == 403 and "allowed_hosts" in answer.json()["error"]
            assert client.get("/v1/nodes", headers=headers).status_code == 403
            assert client.get("/healthz", headers=headers).status_code == 200
        ours = {"Host": "localhost:8080", "Origin": "http://localhost:8080"}
        assert client.post("/v1/charges", json=charge, headers=ours).json() == {"charged": True}


@pytest.mark.parametrize("service", SERVICES)
def test_every_post_takes_json_only(service: str) -> None:
    app = SERVICES[service](())
    posts = [path for method, path in routes_of(app.routes) if method not in ("GET", "HEAD")]
    assert posts
    with AppClient(app) as client:
        for path in posts:
            for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""):
                answer = client.post(path, content=b"{}", headers={"Content-Type": kind})
                assert answer.status_code == 415, (path, kind, answer.text)
            foreign = {"Origin": "http://evil.example"}
            assert client.post(path, content=b"{}", headers=foreign).status_code == 403, path
            answer = client.post(path, content=b"{}", headers={"Content-Type": "application/json; charset=utf-8"})
            assert answer.status_code not in (403, 415), (path, answer.text)


@pytest.mark.parametrize("name", ["", "http://forecast.example.com", "forecast.example.com:8443", "*.example.com"])
def test_what_is_no_host_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="host name alone"):
        hosts_of(ServingOptions(allowed_hosts=(name,)))


def test_each_header_of_the_names_of_the_settings_counts() -> None:
    assert LOOPBACK.refusal(["localhost", "evil.example"], [])
    assert LOOPBACK.refusal(["localhost"], ["http://localhost", "http://evil.example"])
    assert not LOOPBACK.refusal([], [])  # HTTP/1.0: no browser
    assert hosts_of(ServingOptions(allowed_hosts=("A.Example.",))) == Hosts(frozenset({"a.example"}), loopback=True)
    assert hosts_of(ServingOptions(host="0.0.0.0")) == ANY_HOST
