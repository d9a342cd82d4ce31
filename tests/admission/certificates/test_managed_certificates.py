from __future__ import annotations

import pytest

from admission.certificates import managed_certificates
from admission.certificates.certificate_store import StoreUnreachable
from admission.certificates.managed_certificates import open_certificates
from admission.webhook_settings import CertificateOptions
from tests.admission.certificates.certificate_world import OPTIONS, FakeStore


class SlowServer:
    """A clock that only requests and pauses move. The API server is away until a time, and takes a while to say so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, request_seconds: float, back_at: float = 1e9) -> None:
        self.now, self.looks, self.store = 1000.0, 0, FakeStore()
        self._request_seconds, self._back_at = request_seconds, 1000 + back_at
        self.store.before_call = self._take_time

        def made(api: object, options: CertificateOptions) -> FakeStore:
            return self.store

        monkeypatch.setattr(managed_certificates, "ApiCertificateStore", made)

    def open(self) -> None:
        with open_certificates(OPTIONS, None, sleep=self._sleep, monotonic=lambda: self.now):  # type: ignore[arg-type]
            assert self.store.secret is not None

    def _take_time(self) -> None:
        self.store.is_down = self.now < self._back_at
        if self.store.is_down:
            self.looks += 1
            self.now += self._request_seconds

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("request_seconds", [0.0, 0.5, 10.0, 25.0])
def test_a_server_that_is_away_is_waited_for_a_minute(monkeypatch: pytest.MonkeyPatch, request_seconds: float) -> None:
    server = SlowServer(monkeypatch, request_seconds=request_seconds)
    with pytest.raises(StoreUnreachable):
        server.open()
    assert 60 <= server.now - 1000 <= 60 + 1 + request_seconds
    assert server.looks > 1
    back = SlowServer(monkeypatch, request_seconds=10, back_at=55)
    back.open()
    assert 55 <= back.now - 1000 <= 66
