"""Golden values for MOSAICrOWN D5.3: the belief of .9 that its experiments allow."""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth.accounting.conversions import epsilon_of_belief
from dpsynth.research.papers.mosaicrown import identifiability, rdp


def values() -> Iterator[tuple[str, str, float]]:
    """Yield the name of each value, the value as written, and the value computed now."""
    epsilon = epsilon_of_belief(0.9)
    yield "belief .9: epsilon", "2.19722", epsilon
    yield "belief .9, delta .01, one release: rho_a", "0.27631", identifiability.advantage(epsilon, 0.01)
    for orders, value in (("real", "0.25619"), ("integer", "0.25566")):
        whole = orders == "integer"
        noise = rdp.noise_for_belief_rdp(0.9, 0.01, 30, integer_orders=whole)
        advantage = rdp.rdp_guarantee(noise, 0.01, 30, integer_orders=whole).advantage
        yield f"belief .9, delta .01, 30 steps, {orders} orders: rho_a", value, advantage
