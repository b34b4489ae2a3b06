"""Reports made from result records only; nothing here reads a table."""

from dpsynth.accounting.statement import NOT_PRIVATE, is_private
from dpsynth.report.run import RunReport

__all__ = ["NOT_PRIVATE", "RunReport", "is_private"]
