"""Commands of the research room, which `dpsynth.cli` adds to the others."""

from __future__ import annotations

from dpsynth.research.commands.replication import run_replication

#: Name of each command, and the function that runs it.
COMMANDS = {"replication": run_replication}
