"""Published studies run again: on real records, on synthetic ones, and with private regressions."""

from dpsynth.research.replications.protocol import Finding, Protocol, find_protocol
from dpsynth.research.replications.running import Finished, run_study

__all__ = ["Finding", "Finished", "Protocol", "find_protocol", "run_study"]
