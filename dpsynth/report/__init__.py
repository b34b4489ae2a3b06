"""Reports made from result records only; nothing here reads a table."""

from dpsynth.accounting.ledger.statement import NOT_PRIVATE, is_private
from dpsynth.report.load import ReportSource
from dpsynth.report.page.page import render, write_page
from dpsynth.report.run import RunReport

__all__ = ["NOT_PRIVATE", "ReportSource", "RunReport", "is_private", "render", "write_page"]
