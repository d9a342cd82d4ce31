"""Webhooks on this machine that keep their own certificates, in this process: only their clock is moved."""

from __future__ import annotations

import json
import ssl
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cryptography import x509
from fastapi import FastAPI, Request, Response

from admission.certificates.authority import read_certificates
from admission.certificates.certificate_keeper import CertificateKeeper
from admission.certificates.certificate_store import ApiCertificateStore
from admission.certificates.options import CertificateOptions, Named
from admission.certificates.served_certificate_file import ShownCertificate
from kube.client.kubernetes_client import api_client
from scorer.periodic_task import PeriodicTask
from serving.options import ServerOptions
from testing.processes.webhook_process import Api
from tests.serving.served import served

NAMESPACE = "forecast-scheduler"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
OPTIONS = CertificateOptions(
    secret=Named(NAMESPACE, "forecast-scheduler-webhook-certificates"),
    webhook_configuration="forecast-scheduler",
    service=Named(NAMESPACE, "forecast-scheduler-webhook"),
    names=("127.0.0.1",),
    every=0.2,
    lifetime=100 * 86_400,
    settle=2,
)
DAY_SECONDS = 86_400.0


@dataclass
class Clock:
    """Today's, moved."""

    days: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.days * DAY_SECONDS


@dataclass
class Replica:
    """One webhook on this machine. asked: so often did the API server ask it."""

    url: str
    keeper: CertificateKeeper
    shown: ShownCertificate
    asked: list[str] = field(default_factory=list)

    def shows(self) -> x509.Certificate:
        """What a client is given."""
        host, port = self.url.removeprefix("https://").split(":")
        return read_certificates(ssl.get_server_certificate((host, int(port)), timeout=20).encode())[0]


def marking_app(name: str, asked: list[str]) -> FastAPI:
    """Admits every pod, and leaves a mark of its name on it."""
    app = FastAPI()
    app.state.service = SimpleNamespace(draining=False)

    @app.post("/mutate")
    async def mutate(request: Request, response: Response) -> dict[str, Any]:
        response.headers["Connection"] = "close"  # so that the certificate is looked at for every pod
        review = await request.json()
        asked.append(review["request"]["name"])
        patch = json.dumps([{"op": "add", "path": f"/metadata/labels/{name}", "value": "seen"}])
        answer = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch"}
        return {
            "apiVersion": review["apiVersion"],
            "kind": review["kind"],
            "response": answer | {"patch": b64encode(patch.encode()).decode()},
        }

    return app


@contextmanager
def replicas(kubeconfig: Path, clock: Clock, n: int = 2) -> Iterator[list[Replica]]:
    """They look all the time, and their servers follow what they show."""
    with ExitStack() as stack:
        running = []
        for number in range(n):
            shown = stack.enter_context(ShownCertificate())
            client = api_client(kubeconfig)
            stack.callback(client.rest_client.pool_manager.clear)
            keeper = CertificateKeeper(ApiCertificateStore(client, OPTIONS), shown, OPTIONS, clock=clock)
            keeper.look()
            every = PeriodicTask(f"look-{number}", OPTIONS.every, keeper.look_safely)
            every.start()
            stack.callback(every.stop)
            asked: list[str] = []
            server = ServerOptions(port=0, tls_cert=shown.path, reload_every=0.1)
            url = stack.enter_context(served(marking_app(f"replica-{number}", asked), server))
            running.append(Replica(url, keeper, shown, asked))
        yield running


def configure(api: Api, running: list[Replica]) -> None:
    """Each replica is a webhook of one configuration; a third one, somebody else's, is never called."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    common = {"admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": rules, "timeoutSeconds": 20}
    webhooks: list[dict[str, Any]] = [
        common | {"name": f"replica-{n}.example.com", "clientConfig": {"url": f"{one.url}/mutate"}}
        for n, one in enumerate(running)
    ]
    called = {"service": {"namespace": "default", "name": "theirs"}, "caBundle": b64encode(b"theirs").decode()}
    theirs = {"name": "theirs.example.com", "clientConfig": called, "objectSelector": {"matchLabels": {"of": "them"}}}
    webhooks.insert(1, common | theirs)
    api.request("POST", CONFIGURATIONS, {"metadata": {"name": "forecast-scheduler"}, "webhooks": webhooks})
