"""Who is compared: our own arms, given as options of a generator, and the peers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: ``generator`` and its options; ``statistics`` are those of `dpsynth.synthesis.marginals.Statistics`
OURS: dict[str, dict[str, Any]] = {
    "ours: default": {},
    # the default leaves them out where columns have more than 300 numbers together
    "ours: all statistics": {"statistics": {"pairwise_statistics": True}},
    "ours: TAN alone": {"statistics": {"base_model": "tan", "pairwise_statistics": False}},
    "ours: tree alone": {"statistics": {"base_model": "tree", "pairwise_statistics": False}},
    "ours: GAN alone": {"generator": "matching"},
    "ours: GAN alone, alternating": {"generator": "wgan-gp"},
}


@dataclass(frozen=True)
class Arm:
    """One way to make a synthetic table: a script, the environment that it runs in, its options."""

    name: str
    environment: str
    script: str
    options: Mapping[str, Any] = field(default_factory=dict)


def _peer(name: str, environment: str, method: str) -> Arm:
    return Arm(name, environment, f"fit_{environment}.py", {"method": method})


ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        *(Arm(name, "ours", "fit_ours.py", options) for name, options in OURS.items()),
        _peer("dpmm MST", "dpmm", "mst"),
        _peer("dpmm AIM", "dpmm", "aim"),
        _peer("google MST", "google", "mst"),
        _peer("google AIM", "google", "aim"),
        _peer("google SWIFT", "google", "swift"),
        _peer("SmartNoise MST", "smartnoise", "mst"),
        _peer("SmartNoise AIM", "smartnoise", "aim"),
        _peer("SmartNoise DPCTGAN", "smartnoise", "dpctgan"),
        _peer("SmartNoise PATECTGAN", "smartnoise", "patectgan"),
        Arm("Tab-PE", "tabpe", "fit_tabpe.py"),
    )
}
