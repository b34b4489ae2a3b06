"""Audits of our own releases, each on two neighbouring tables at the distance of its sensitivity.

The tables are made from the schema. No private record is read, nothing is posted, and results may be shared.
Only the adversary A_DI against trainings of this package (`adversary_setting`, `adversary_critic`) reads real
records. Its results are confidential. The names below are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.lazy import first_used

if TYPE_CHECKING:
    from dpsynth.audits.adversary import run_at_the_bound
    from dpsynth.audits.configuration import audit_fit
    from dpsynth.audits.releases import audit_in_one_run

_HOMES = {
    "audit_fit": "dpsynth.audits.configuration",
    "audit_in_one_run": "dpsynth.audits.releases",
    "run_at_the_bound": "dpsynth.audits.adversary",
}

__all__ = ["audit_fit", "audit_in_one_run", "run_at_the_bound"]

__getattr__ = first_used(__name__, _HOMES)
