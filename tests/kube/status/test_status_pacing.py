"""When the status of an object may be written again."""

from kube.write_pacing import StatusPacing, is_hopeless


def test_a_change_waits_two_seconds_unless_the_clock_was_set_back_or_it_is_forgotten() -> None:
    pacing: StatusPacing[str] = StatusPacing()
    assert pacing.may_send("a", "ready", 100.0)
    pacing.sent("a", "ready", 100.0)
    assert [pacing.may_send("a", "lost", at) for at in (101.9, 102.0)] == [False, True]
    assert [pacing.may_send("a", "ready", at) for at in (129.9, 130.0)] == [False, True]
    assert pacing.may_send("b", "ready", 100.0)
    pacing = StatusPacing()
    pacing.sent("a", "ready", 100.0, uid="1")
    assert pacing.may_send("a", "ready", 99.0, uid="1")
    assert pacing.may_send("a", "ready", 100.0, uid="2")
    assert not pacing.may_send("a", "ready", 100.0, uid="1")
    pacing = StatusPacing()
    for key in "abc":
        pacing.sent(key, "ready", 100.0)
    pacing.forget("a")
    pacing.keep({"b"})
    assert [pacing.sent_at(key) for key in "abc"] == [0.0, 100.0, 0.0]


def test_the_rest_waits_after_answers_that_every_patch_would_get() -> None:
    assert all(map(is_hopeless, (-1, 0, 401, 429, 500, 503)))
    assert not any(map(is_hopeless, (200, 403, 404, 409, 422)))
