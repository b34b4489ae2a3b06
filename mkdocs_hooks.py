"""What MkDocs builds the site with: pages of commands and results, forms, and checks of a strict build."""

from __future__ import annotations

import importlib
import logging
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_NOTEBOOKS = tempfile.TemporaryDirectory()
#: what a keyboard or a screen reader needs and the theme or a notebook leaves out
_ACCESSIBLE = {
    '<div class="md-search" data-md-component="search" role="dialog">': (
        '<div class="md-search" data-md-component="search" role="dialog" aria-label="Search">'
    ),
    '<div class="highlight-ipynb hl-python">': '<div class="highlight-ipynb hl-python" tabindex="0">',
    "<th></th>": "<td></td>",  # the corner of a table of pandas
}
#: what the benchmarks gave, a page of the site too
RESULTS = Path(__file__).parent / "benchmarks" / "results" / "README.md"
log = logging.getLogger("mkdocs.hooks.dpsynth")
# A script, style sheet, font or picture of another server.
OUTSIDE = re.compile(
    r'<(?:script|img|iframe)[^>]+src="https?://[^"]+|<link[^>]+stylesheet[^>]+https?://[^"]+'
)


def on_startup(command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
    """Let each notebook write its files into an empty temporary folder, not among the pages."""
    start = Path(_NOTEBOOKS.name, "profile_default", "startup", "folder.py")
    start.parent.mkdir(parents=True)
    start.write_text(f"import os, tempfile\nos.chdir(tempfile.mkdtemp(dir={_NOTEBOOKS.name!r}))\n")
    os.environ["IPYTHONDIR"] = _NOTEBOOKS.name


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Write the page of commands and the forms of files from the commands themselves, and add the results."""
    words = ("-m", "typer", "dpsynth.cli", "utils", "docs", "--name", "dpsynth", "--title", "Commands")
    made = subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True)
    text = re.sub(r"\*\*Commands\*\*:\n\n(\* .*\n)+\n", "", made.stdout)  # cut short, and all follow anyway
    files.append(File.generated(config, "reference/commands.md", content=text))
    files.append(File.generated(config, "explanation/results.md", content=RESULTS.read_text("utf-8")))
    from dpsynth.files.storage import dump_json
    from dpsynth.patients.form import json_schema
    from dpsynth.runs.form import run_form

    for name, form in {"schema.json": json_schema(), "run.json": run_form()}.items():
        files.append(File.generated(config, name, content=dump_json(form)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Name the files of the repository that a page links to and the site does not hold; results it holds."""
    docs = Path(config.docs_dir)

    def named(link: re.Match[str]) -> str:
        target = (docs / page.file.src_uri).parent.joinpath(link[2].split("#")[0]).resolve()
        if target.is_relative_to(docs) or not target.exists():
            return link[0]
        if target == RESULTS:
            start = (docs / page.file.src_uri).parent
            return f"[{link[1]}]({os.path.relpath(docs / 'explanation' / 'results.md', start)})"
        return f"{link[1]} (`{target.relative_to(docs.parent)}` in the repository)"

    return re.sub(r"(?<!!)\[([^\]]+)\]\((\.\./[^)\s]*)\)", named, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Warn of what a page loads from outside, and of public names that the reference does not show."""
    output = re.sub(r":(?:attr|class|data|exc|func|meth|mod):(<code>)~?", r"\1", output)  # roles of Sphinx
    for given, accessible in _ACCESSIBLE.items():
        output = output.replace(given, accessible)
    for found in OUTSIDE.findall(output):
        log.warning("%s loads a part from outside: %s", page.file.src_uri, found)
    if page.file.src_uri == "reference/api.md":
        shown = set(re.findall(r'id="(dpsynth[\w.]*)"', output))
        for missing in sorted(public_names() - shown):
            log.warning("%s does not show %s", page.file.src_uri, missing)
    return output


def public_names() -> set[str]:
    """Every name in the `__all__` of a package, in full."""
    found = set()
    for init in (Path(__file__).parent / "dpsynth").rglob("__init__.py"):
        room = ".".join(init.parent.relative_to(Path(__file__).parent).parts)
        names = getattr(importlib.import_module(room), "__all__", [])
        found |= {f"{room}.{name}" for name in names if name != "__version__"}
    return found


def on_post_build(config: MkDocsConfig) -> None:
    """Say where the site is."""
    log.info("open %s", Path(config.site_dir, "index.html"))
