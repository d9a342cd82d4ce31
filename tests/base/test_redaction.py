from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.redaction import redacted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://alice:hunter2@store/models: gone", "https://***@store/models: gone"),
        ("https://alice:hun@ter2@store/models", "https://***@store/models"),
        ("s3://AKIA123:secret@bucket/m and ftp://bob@host/x", "s3://***@bucket/m and ftp://***@host/x"),
        ("s3://AKIA:abc/def+x@bucket/models", "s3://***@bucket/models"),
        ("ftp://u:p/w@x@h/x, http://u:a/b@c", "ftp://***@h/x, http://***@c"),
        ('{"url": "http://u:p@prom:9090"}', '{"url": "http://***@prom:9090"}'),
        ("Authorization: Bearer eyJhbGciOi.J9.x-y_z", "Authorization: Bearer ***"),
        ("{'authorization': 'basic dXNlcjpwYXNz'}", "{'authorization': 'basic ***'}"),
        ("Authorization: Basic lettersonly", "Authorization: Basic ***"),
        ("it sent Bearer abcdefghijklmnopqrst and bearer secret7x", "it sent Bearer *** and bearer ***"),
        ("/m?api_key=a1&client_secret=b2&apikey=c3", "/m?api_key=***&client_secret=***&apikey=***"),
        ("GET /m?X-Amz-Signature=0aff&versionId=3", "GET /m?X-Amz-Signature=***&versionId=3"),
        ("https://blob/m?sv=2024&sig=a%2Bb#x", "https://blob/m?sv=2024&sig=***#x"),
    ],
)
def test_secrets_are_hidden(text: str, shown: str) -> None:
    assert redacted(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:9090/api/v1/query?query=up&time=3",
        "models/20261121T140852347026Z-2bf388798e249bb9 at ./models",
        "a bearer token is needed: send Authorization: Bearer TOKEN",
        "write to ops@example.org, see https://example.org/@ops",
        "10 basic figures",
        "Basic scheduling of pods, bearer certificates",
        "http://prom:9090/api/v1/query?query=up",
        "/v1/heat-map?resource=cpu&monkey=2",
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert redacted(text) == text


@given(st.text())
def test_hiding_twice_is_hiding_once(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)
