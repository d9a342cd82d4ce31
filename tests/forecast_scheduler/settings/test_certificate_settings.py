from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.webhook_settings import CertificateOptions, WebhookOptions
from advisor.advice_settings import AdviseOptions
from base.errors import InputError
from base.excluded import ExcludedOptions
from forecast_scheduler.commands.webhook_setup import open_webhook
from forecast_scheduler.settings.document import Settings, load_settings
from kube.client.cluster_access import CURRENT_CLUSTER

PAGE = Path(__file__).parents[3] / "docs" / "operate" / "webhook.md"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"secret": "b"}, "secret is 'b': write NAMESPACE/NAME"),
        ({"service": "/e"}, "service is '/e'"),
    ],
)
def test_mistakes_are_named(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CertificateOptions(**setting)


@pytest.mark.parametrize("file", ["tls_cert", "tls_key"])
def test_files_and_managed_certificates_exclude_each_other(file: str) -> None:
    settings = WebhookOptions.model_validate({"certificates": {"managed": True}, "serving": {file: "a.pem"}})
    way_out = rf"webhook\.serving\.{file} .*leave one of them out, or write webhook\.serving\.{file}: null"
    with (
        pytest.raises(InputError, match=way_out),
        open_webhook(settings, AdviseOptions(), ExcludedOptions(), CURRENT_CLUSTER),
    ):
        pass


def test_null_keeps_the_certificate_of_the_other_services_from_the_webhook() -> None:
    document = {"serving": {"tls_cert": "a.pem"}, "webhook": {"serving": {"tls_cert": None}}}
    settings = Settings.model_validate(document)
    assert (settings.webhook.serving.tls_cert, str(settings.scorer.serving.tls_cert)) == (None, "a.pem")


def test_the_example_in_the_docs_is_valid(tmp_path: Path) -> None:
    examples = [text.partition("```")[0] for text in PAGE.read_text().split("```yaml\n")[1:]]
    [example] = [text for text in examples if "webhook" in (yaml.safe_load(text) or {})]
    (tmp_path / "settings.yaml").write_text(example)
    settings = load_settings(tmp_path / "settings.yaml", {})
    assert settings.webhook.certificates == CertificateOptions(managed=True)
