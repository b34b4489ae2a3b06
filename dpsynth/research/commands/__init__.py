"""Commands of the research room; `dpsynth.cli` adds them to its groups."""

from __future__ import annotations

from dpsynth.research.commands import attack_adversary, attack_ltu, papers, replication

#: Group and name of each command, and the function that runs it.
COMMANDS = {
    ("account", "figures"): papers.draw_figures,
    ("account", "verify"): papers.verify_golden,
    ("attack", "adversary"): attack_adversary.attack_training,
    ("attack", "ltu"): attack_ltu.attack_classifier,
    ("replication", "list"): replication.list_protocols,
    ("replication", "run"): replication.run_protocol,
}
