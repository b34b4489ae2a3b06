"""Reports made from result records only; nothing here reads a table."""

from dpsynth.report.folder import load, write_json, write_markdown
from dpsynth.report.page.html import render, write_page
from dpsynth.report.run_report import RunReport

__all__ = ["RunReport", "load", "render", "write_json", "write_markdown", "write_page"]
