"""Reports made from result records only. Nothing here reads a table or a folder."""

from dpsynth.report.page import render, to_markdown, write_page
from dpsynth.report.run_report import RunReport

__all__ = ["RunReport", "render", "to_markdown", "write_page"]
