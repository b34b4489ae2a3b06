"""Every reading of private records, one module a release.

A release states its sensitivity and the event that it posts. The ledger runs it. `PartitionedRecords` are
private records in many files, which `Synthesizer.fit` takes in place of a frame.
"""

from dpsynth.releases.partitioned import PartitionedRecords

__all__ = ["PartitionedRecords"]
