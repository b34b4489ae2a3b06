"""Commands of the research room, which `dpsynth.cli` adds to its groups."""

from __future__ import annotations

from dpsynth.research.commands import attacks, published

#: Group and name of each command, and the function that runs it.
COMMANDS = {
    ("account", "verify"): published.verify_golden,
    ("attack", "adversary"): attacks.attack_training,
    ("attack", "ltu"): attacks.attack_classifier,
    ("replication", "list"): published.list_protocols,
    ("replication", "run"): published.run_protocol,
}
