"""How service curves become pods: sizes, replicas that are alike but not identical, requests that are wrong.

Every function takes its random generator, so that a seed fixes the whole cluster.
"""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Floats, Floats32, Ints
from benchmarks.clusters.cluster import SLOTS_PER_DAY

#: What Kubernetes makes random names of: no vowels and no look-alikes (apimachinery, util/rand).
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def log_uniform(rng: np.random.Generator, low: float, high: float, size: int) -> Floats:
    """(size,) values whose logarithm is uniform between those of low and high."""
    values: Floats = np.exp(rng.uniform(np.log(low), np.log(high), size))
    return values


def normalised(curve: AnyFloats, *, cap: float = 1.25) -> Floats32:
    """A curve in units of its 99.5th percentile, cut at `cap` of it so that one outlier does not set the scale."""
    level = float(np.nanquantile(curve, 0.995))
    if not level > 0:
        raise ValueError("a curve without load cannot be scaled: leave the entity out")
    scaled: Floats32 = np.clip(curve / level, 0.0, cap).astype(np.float32)
    return scaled


def real_residuals(curves: AnyFloats, *, window: int = 5) -> Floats32:
    """(n, n_slots) what real curves do around their own moving average: relative, unit variance, cut at 3.

    This is what makes replicas differ from half hour to half hour: jitter with the bursts and the autocorrelation
    of real servers rather than white noise.
    """
    filled = np.nan_to_num(np.asarray(curves, dtype=np.float64))
    kernel = np.ones(window) / window
    smooth = np.stack([np.convolve(np.pad(row, window // 2, mode="edge"), kernel, mode="valid") for row in filled])
    floor = np.quantile(filled, 0.995, axis=1, keepdims=True) * 0.05
    relative = (filled - smooth) / np.maximum(smooth, np.maximum(floor, 1e-12))
    deviation = relative.std(axis=1, keepdims=True)
    keep = deviation[:, 0] > 1e-6
    residuals: Floats32 = np.clip(relative[keep] / deviation[keep], -3.0, 3.0).astype(np.float32)
    return residuals


def replica_noise(
    rng: np.random.Generator, residuals: Floats32, n_slots: int, *, factor: float = 0.10, jitter: float = 0.05
) -> Floats32:
    """(n_slots,) what one replica uses relative to its service's mean: a persistent factor times real jitter.

    factor, jitter : standard deviations, relative
    """
    row = residuals[rng.integers(len(residuals))]
    # Whole days, so that the hour at which real curves are restless stays the same.
    shift = SLOTS_PER_DAY * int(rng.integers(max(len(row) // SLOTS_PER_DAY, 1)))
    noise = np.resize(np.roll(row, shift), n_slots)
    persistent = np.exp(rng.normal(0.0, factor) - factor**2 / 2)
    relative: Floats32 = (persistent * (1.0 + jitter * noise)).astype(np.float32)
    return relative


def wrong_requests(
    rng: np.random.Generator, mean_usage: AnyFloats, *, bias: float = 0.4, spread: float = 0.6
) -> Floats:
    """(n_services,) requests as people write them: mean usage times exp(N(bias, spread)).

    The median service asks for half again its mean use; one in forty for five times, one in ten for less than it uses.
    """
    return np.asarray(mean_usage, dtype=np.float64) * np.exp(rng.normal(bias, spread, len(mean_usage)))


def pod_name(rng: np.random.Generator, template: str) -> str:
    """The template with every "#" replaced by a random character of Kubernetes' alphabet."""
    letters: Ints = rng.integers(len(NAME_ALPHABET), size=template.count("#"))
    chosen = iter(letters)
    return "".join(NAME_ALPHABET[next(chosen)] if character == "#" else character for character in template)


def round_mantissa(values: AnyFloats, bits: int) -> Floats32:
    """float32 values rounded to `bits` mantissa bits (relative error at most 2**-(bits + 1)); NaN stays NaN."""
    if not 1 <= bits <= 22:
        raise ValueError(f"bits must be 1..22, got {bits}")
    raw = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    drop = 23 - bits
    half = np.uint32(1 << (drop - 1))
    mask = np.uint32(0xFFFFFFFF << drop & 0xFFFFFFFF)
    rounded = ((raw + half) & mask).view(np.float32)
    return np.where(np.isfinite(values), rounded, np.float32(np.nan)).astype(np.float32)
