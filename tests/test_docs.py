"""Every example of the documentation runs, and prints what the page shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
import yaml
from plain_words import complaints

from dpsynth import Schema

if find_spec("distributed") is not None:
    from dask_workers import threads

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
#: Written from docstrings and help texts, whose examples run elsewhere.
GENERATED = ("api.md", "commands.md")
#: All others fit a model, which takes seconds.
QUICK = ("datasets.md",)
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))

BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    """Pages that have something to run."""
    found = [
        page
        for part in ("tutorials", "how-to", "explanation", "reference")
        for page in (DOCS / part).glob("*.md")
    ]
    return sorted(
        page
        for page in found
        if page.name not in GENERATED
        and re.search(r"^```(python|shell)", page.read_text("utf-8"), re.MULTILINE)
    )


def blocks(text: str) -> list[tuple[str, str, str, bool]]:
    """Language, file name, text, and whether a block follows the one before it with nothing between."""
    found, end = [], -1
    for match in BLOCK.finditer(text):
        follows = end >= 0 and not text[end : match.start()].strip()
        found.append((match[1], match[2] or "", match[3], follows))
        end = match.end()
    return found


def missing_line(shown: str, printed: str) -> str | None:
    """The first line of a page's output that was not printed, in order; numbers may differ, … is any text."""
    lines = iter(re.sub(r"\s+", " ", line).strip() for line in printed.splitlines())
    number = r"<?[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?"
    for line in shown.splitlines():
        plain = re.sub(r"\s+", " ", line).strip()
        if plain in ("", "…"):
            continue
        parts = [
            "<?[-\\d.,e+]+".join(re.escape(text) for text in re.split(number, part))
            for part in plain.split("…")
        ]
        if not any(re.fullmatch(".*".join(parts), one) for one in lines):
            return line
    return None


@pytest.mark.usefixtures("few_trials", "undrawn")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page.name in QUICK else pytest.mark.slow, id=page.name)
        for page in pages()
    ],
)
def test_a_page_runs_and_prints_what_it_shows(page, tmp_path, monkeypatch, capsys):
    """Catches code that fails, output (a text block after code) that has changed, a picture that is gone.

    Of twenty tables three are made, one like the other. The figures of runs are those of tests/report, and
    workers are threads of this process: tests of commands start real ones.
    """
    from dpsynth.cli import main

    if find_spec("distributed") is not None:
        monkeypatch.setattr("dpsynth.parallel.connected", lambda *given, **named: threads())
    text = re.sub(r"(sample_many\(|--tables )20\b", r"\g<1>3", page.read_text(encoding="utf-8"))
    if "DPSYNTH_DATA_DIR" in text and not os.environ.get("DPSYNTH_DATA_DIR"):
        pytest.skip("needs a data set: set DPSYNTH_DATA_DIR")
    if "tensorflow_privacy" in text and find_spec("tensorflow_privacy") is None:
        pytest.skip("tensorflow_privacy is not installed")
    if "import polars" in text and find_spec("polars") is None:
        pytest.skip("polars is not installed")
    if "import DPAIM" in text and find_spec("mbi") is None:
        pytest.skip("mbi (private-pgm) is not installed")
    monkeypatch.chdir(tmp_path)
    if "--tables mimic-iii-1.4" in text:
        demo = Path(os.environ.get("DPSYNTH_DATA_DIR", "")) / "mimic3-demo"
        if not demo.is_dir() or find_spec("duckdb") is None:
            pytest.skip("needs MIMIC-III's demo in DPSYNTH_DATA_DIR, and duckdb")
        Path("mimic-iii-1.4").symlink_to(demo.resolve())
    for module in re.findall(r"\]\((\w+\.py)\)", text):  # files that a reader saves beside the script
        Path(module).write_text((page.parent / module).read_text("utf-8"), encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
    scope: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for language, file, part, follows in blocks(text):
        if file:
            Path(file).write_text(part, encoding="utf-8")
        elif language == "python":
            exec(compile(part, page.name, "exec"), scope)
        elif language == "shell":
            for line in part.replace("\\\n", " ").splitlines():
                command = shlex.split(line, comments=True)
                if command and command[0] == "export":
                    monkeypatch.setenv(*command[1].split("=", 1))
                    continue
                assert not command or command[0] == "dpsynth", line
                assert not command or main(command[1:]) == 0, f"{line}\n{capsys.readouterr().err}"
        elif language == "text" and follows:
            missing = missing_line(part, printed)
            assert missing is None, f"not printed: {missing}\n{printed}"
        if language in ("python", "shell") and not file:
            out, err = capsys.readouterr()
            printed = out + err
            assert "Traceback" not in err
    for image in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (page.parent / image).is_file(), image


@pytest.mark.slow
def test_the_page_for_r_runs_in_r(tmp_path):
    """Catches a call that reticulate cannot make, and a file that does not come back as the schema says."""
    page = (DOCS / "how-to" / "r.md").read_text("utf-8")
    wanted = sorted({*re.findall(r"(\w+)::", page)})
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("there is no R on this machine")
    there = f"quit(status = !all(sapply(c({str(wanted)[1:-1]}), requireNamespace, quietly = TRUE)))"
    if subprocess.run([rscript, "-e", there], capture_output=True, check=False).returncode:
        pytest.skip(f"R has not all of {', '.join(wanted)}")
    for language, file, part, _ in blocks(page):
        if file or language == "r":
            (tmp_path / (file or "page.R")).write_text(part, encoding="utf-8")
    environment = {"RETICULATE_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run([rscript, "page.R"], cwd=tmp_path, env=os.environ | environment, check=True, timeout=300)
    schema = Schema.from_yaml(tmp_path / "schema.yaml")
    made = pd.read_csv(tmp_path / "synthetic.csv")
    assert len(made) == 1000 and len(schema.conform(made).frame) == 1000
    assert 0 < made["creatinine"].isna().sum() < 200


EVERY = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


def test_links_work_in_a_checkout():
    """Catches a link to a file that is gone, or that only the built site has."""
    gone = []
    for page in EVERY:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        targets = [to for to in re.findall(r"\]\(([^)\s]+)\)", text) if not to.startswith(("http", "#"))]
        gone += [(page.name, to) for to in targets if not (page.parent / to.split("#")[0]).exists()]
    assert not gone


GUIDES = sorted([*(DOCS / "tutorials").glob("*.md"), *(DOCS / "how-to").glob("*.md")])


def test_the_list_of_pages_for_programs_is_that_of_the_site():
    """Catches a page that docs/llms.txt does not name, names elsewhere or under an old title."""
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    listed = [(title, to) for part in nav for one in part.values() for title, to in named(one, *part)]
    of_site = [(title, re.sub(r"\.(md|ipynb)$", ".html", to)) for title, to in listed]
    text = (DOCS / "llms.txt").read_text("utf-8")
    assert re.findall(r"^- \[(.+)\]\((.+)\): \S", text, re.MULTILINE) == of_site
    headings = re.findall("^## (.+)$", text, re.MULTILINE)
    assert headings == [title for part in nav for title in part]
    assert not complaints(text)


def named(part, title):
    """Titles and files of a part of the navigation: one page, or a list of pages."""
    return [(title, part)] if isinstance(part, str) else [pair for one in part for pair in one.items()]


def test_a_guide_starts_with_an_example():
    """Catches a guide that explains for 250 words before it shows something to run."""
    for page in GUIDES:
        start = re.split(r"^```(?:python|shell|yaml)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert len(start) > 1 and len(start[0].split()) <= 250, page.name


def test_an_output_that_is_not_printed_is_found():
    """Catches a comparison that passes whatever is printed."""
    printed = "wrote 12 rows\nepsilon  3 at delta 1e-05\nAUC 0.91 (0.88 to 0.93): good"
    assert missing_line("wrote 7 rows\n…\nAUC 0.9 (0.8 to …", printed) is None
    assert missing_line("epsilon 1.5 at delta 1e-06", printed) is None
    assert missing_line("AUC 0.9 (0.8 to …\nwrote 7 rows", printed) == "wrote 7 rows"
    assert missing_line("wrote seven rows", printed) == "wrote seven rows"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_stored_without_outputs_and_in_plain_english(notebook):
    """Catches outputs of somebody's machine in the repository, and text that is hard to read."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")

    book = nbformat.read(notebook, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert code and not any(cell.outputs or cell.execution_count for cell in code)
    assert not complaints("\n\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown"))


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_its_plots(notebook, tmp_path):
    """Catches a notebook whose code fails, or that shows no plot."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")

    book = nbformat.read(notebook, as_version=4)
    nbclient.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in shown)


def test_what_a_notebook_imports_exists():
    """Catches a name that moved: notebooks themselves run among the slow tests alone."""
    for notebook in [*NOTEBOOKS, *(ROOT / "dpsynth").rglob("*.ipynb")]:
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
        lines = [line for cell in cells if cell["cell_type"] == "code" for line in cell["source"]]
        for line in lines:
            if re.match("(from|import) dpsynth", line):
                exec(line, {})
