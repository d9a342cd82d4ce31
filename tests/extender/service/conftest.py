"""One application over a made-up extender, asked in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from extender.answer_settings import ExtenderServiceOptions
from extender.service.extender_app import create_app
from testing.app_client import AppClient
from tests.extender.service.simple_extender import SimpleBinder, SimpleExtender

PATIENT = ExtenderServiceOptions(deadline=20)


@pytest.fixture
def extender() -> SimpleExtender:
    return SimpleExtender()


@pytest.fixture
def binder() -> SimpleBinder:
    return SimpleBinder()


@pytest.fixture
def client(extender: SimpleExtender, binder: SimpleBinder) -> Iterator[AppClient]:
    with AppClient(create_app(extender, PATIENT, binder=binder)) as client:
        yield client
