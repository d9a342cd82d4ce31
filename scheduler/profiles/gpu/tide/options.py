"""Settings of the tide: `schedule.gpu.tide`."""

from __future__ import annotations

from pydantic import Field, field_validator

from base.setting_group import Duration, SettingGroup


class TideOptions(SettingGroup):
    """Training makes room for the inference that is forecast, and grows back (docs/use/tide.md)."""

    enabled: bool = True
    """Plan and move trainings. If false, trainings stay as they are."""

    dry_run: bool = False
    """Decide and report, and scale nothing."""

    every: Duration = Field(default=30, ge=1, le=600)
    """Time between two plans."""

    margin: float = Field(default=0.02, ge=0, le=2)
    """Share by which all inference together may need more than the forecast."""

    spread: float = Field(default=0.05, ge=0, le=2)
    """Share by which each service may need more on its own. The errors of services add as their squares do."""

    reserve_gpus: float = Field(default=0, ge=0, le=1e6)
    """GPUs of each pool that are left to inference in addition."""

    half_life: Duration = Field(default=21_600, ge=60, le=604_800)
    """Time in which half of what inference holds above its forecast now is forgotten."""

    notice: Duration = Field(default=60, ge=0, le=3600)
    """Time in addition to the checkpoint grace until drained GPUs are free and inference has started on them."""

    grace: Duration = Field(default=300, ge=0, le=86_400)
    """Time that a training needs to write its checkpoint, if the training does not say."""

    dwell: Duration = Field(default=7200, ge=0, le=86_400)
    """Time that a training keeps what it was given. It grows only into room that lasts this time. A training that
    shrinks gives up at once what it would have to give up in that time.
    """

    dead_band: float = Field(default=2, ge=0, le=1e6)
    """GPUs. A training that would grow by less, and not to its full size, does not grow."""

    moves_per_job: int = Field(default=12, ge=0, le=1_000_000)
    """Moves of one training in a local day. Growing stops one move short of it, which is kept for shrinking. Shrinking
    for inference is never refused."""

    moves_per_day: int = Field(default=500, ge=0, le=1_000_000_000)
    """Moves of all trainings together in a local day, by the same rule."""

    take_whole: bool = True
    """Stop a training as a whole if it cannot shrink any further and inference needs its GPUs."""

    preview_hours: float = Field(default=24, ge=1, le=168)
    """Hours ahead for which moves are shown. Demand is known for a week."""

    blind_margin: float = Field(default=0.1, ge=0, le=2)
    """Share of what inference holds that stays free of training while no usable forecast is there."""

    pool_label: str = ""
    """Node label that divides pools further than the card model does. Empty: none."""

    kinds: tuple[str, ...] = ()
    """Further workloads that may be scaled, as group/version/plural. They are found by the label of the tide."""

    @field_validator("kinds")
    @classmethod
    def _named_in_full(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        for kind in kinds:
            if kind.count("/") != 2 or not all(kind.split("/")):
                raise ValueError(f"{kind!r} is no kind: write group/version/plural, such as kubeflow.org/v1/mpijobs")
        return kinds

    def lead(self, grace: float | None) -> float:
        """Seconds from when a training is to shrink until its GPUs are free: it may be seen one look late. grace: as it
        says; None = it does not."""
        return (self.grace if grace is None else grace) + self.notice + self.every
