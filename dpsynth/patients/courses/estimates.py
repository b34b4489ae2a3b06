"""Distributions of noisy counts: post-processing."""

from __future__ import annotations

import numpy as np

from dpsynth.patients.series import Floats
from dpsynth.table.simplex import norm_sub


def pooled(counts: Floats) -> Floats:
    """Distribution of the last axis."""
    summed = counts.reshape(-1, counts.shape[-1]).sum(axis=0)
    everybody = max(float(summed.sum()), 1.0)
    return norm_sub(summed, everybody) / everybody


def ratios(given: Floats, counts: Floats) -> Floats:
    """Distributions of the last axis over that of all ``counts``."""
    return given / np.maximum(pooled(counts), 1e-3)


def shrunk_conditional(noisy: Floats, noise_std: float, usual: Floats | None = None) -> Floats:
    """Distribution of the last axis given the others.

    Each row of counts is shrunk towards the ``usual`` one, by default the pooled one. This is the
    positive-part rule of James and Stein (1961).
    """
    size = noisy.shape[-1]
    everyone = pooled(noisy) if usual is None else usual
    total = np.maximum(noisy.sum(axis=-1, keepdims=True), 1e-6)
    away = ((noisy - total * everyone) ** 2).sum(axis=-1, keepdims=True)
    shrink = np.minimum(1.0, noise_std**2 * max(size - 2, 1) / np.maximum(away, 1e-12))
    shrink = np.where(total <= noise_std * np.sqrt(size), 1.0, shrink) if noise_std else 0.0
    found = norm_sub((1 - shrink) * noisy + shrink * total * everyone, total[..., 0])
    return found / np.maximum(found.sum(axis=-1, keepdims=True), 1e-12)


def shrunk_ratios(noisy: Floats, noise_std: float) -> Floats:
    """The same over the distribution of all rows."""
    return ratios(shrunk_conditional(noisy, noise_std), noisy)
