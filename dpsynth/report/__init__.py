"""Reports made from result records only; nothing here reads a table."""

from dpsynth.accounting.ledger.guarantee import NOT_PRIVATE
from dpsynth.report.load import ReportSource
from dpsynth.report.page.page import render, write_page
from dpsynth.report.run import RunReport

__all__ = ["NOT_PRIVATE", "ReportSource", "RunReport", "render", "write_page"]
