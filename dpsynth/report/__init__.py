"""Reports made from result records only; nothing here reads a table."""

from dpsynth.report.run import NOT_PRIVATE, RunReport, is_private

__all__ = ["NOT_PRIVATE", "RunReport", "is_private"]
