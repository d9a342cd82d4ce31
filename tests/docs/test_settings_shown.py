"""Settings that a page shows or names exist: documents in YAML, and keys of three parts or more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from forecast_scheduler.settings.document import Settings
from tests.docs.pages import PAGES, blocks, text_of
from tests.docs.test_names_in_prose import is_setting

_KEY = re.compile(r"`([a-z_]+(?:\.[a-z_]+){2,})[`:]")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_of_a_page_are_there(page: Path) -> None:
    text = text_of(page)
    for block in blocks(text):
        for document in yaml.safe_load_all(block.text) if block.language == "yaml" else ():
            # A ConfigMap of policies has its own sections below `policies`.
            if isinstance(document, dict) and document.keys() <= Settings.model_fields.keys() - {"policies"}:
                Settings.model_validate(document)
    keys = {key for key in _KEY.findall(text) if key.partition(".")[0] in Settings.model_fields}
    assert {key for key in keys if not is_setting(key.split("."))} == set()
