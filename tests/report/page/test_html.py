"""The page as text: whole, escaped, marked, and without a trace of internal numbers when for release."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from itertools import pairwise

import pytest
import report_sources as sources
from page_outline import Outline, check_self_contained, labels, prose
from plain_words import complaints, hard_words

from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.privacy import Ledger
from dpsynth.privacy.events import gaussian_event, non_private_event
from dpsynth.privacy.guarantee import STRATIFIED
from dpsynth.report.page import MODES, PARTS, render, write_page
from dpsynth.report.plots import Plot
from dpsynth.report.run_report import RunReport

IMAGE = re.compile(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)")


def everything(html: str) -> str:
    """The page and what its images hold, as one text."""
    return "\n".join([html, *(base64.b64decode(image).decode() for image in IMAGE.findall(html))])


def words(html: str) -> str:
    """The same without the coordinates of the images, in which any four digits occur by chance."""
    drawn = [re.sub(r"<[^>]*>", "\n", base64.b64decode(image).decode()) for image in IMAGE.findall(html)]
    return "\n".join([IMAGE.sub("", html), *drawn])


@pytest.fixture(scope="module")
def report() -> tuple[RunReport, list[float]]:
    return sources.full_report()


@pytest.fixture(scope="module")
def pages(report) -> dict[str, str]:
    return {mode: render(report[0], mode) for mode in MODES}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_structure(pages, mode):
    """Catches tags that do not nest, headings out of order, dead anchors, tables and images without words."""
    outline = Outline(pages[mode])
    assert outline.of("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [attributes["href"] for attributes in outline.of("a")]
    assert len(targets) >= 6 and all(target.startswith("#") and target[1:] in ids for target in targets)
    assert all(attributes["alt"] for attributes in outline.of("img"))
    assert len(outline.of("table")) == len(outline.of("caption"))
    assert all(attributes["scope"] in ("row", "col") for attributes in outline.of("th"))
    regions = [a["aria-label"] for _, a in outline.tags if a.get("role") == "region"]
    assert len(regions) == len(set(regions)) >= len(outline.of("table"))


#: How much of each is in full view; the rest of it is folded.
IN_VIEW = (
    "blocks._MOST_MEASURES",
    "blocks._MOST_COLUMNS",
    "quality._SHOWN",
    "quality._SHOWN_ROWS",
    "quality._WORST",
)


def stand_in(plot: Plot) -> tuple[str, bool]:
    words = base64.b64encode(f"{plot.alt} {plot.caption}".encode()).decode()
    return f"data:image/svg+xml;base64,{words}", False


def test_what_has_no_room_is_in_the_folds(report, monkeypatch):
    """Catches rows, figures or findings that are lost, or come twice, where there is more than is shown."""
    pages = []
    # a figure is told by its words, without its lines
    monkeypatch.setattr(Plot, "_drawn", property(stand_in))
    for most in (10**6, 1):
        for name in IN_VIEW:
            monkeypatch.setattr(f"dpsynth.report.{name}", most)
        html = render(report[0], "internal")
        rows = [row for row in re.findall(r"<tr\b.*?</tr>", html, re.DOTALL) if 'scope="col"' not in row]
        items = re.findall(r"<li\b.*?</li>", html, re.DOTALL)
        pages.append(([*map(sorted, (rows, items, IMAGE.findall(html)))], html.count("<details")))
    (whole, few), (cut, more) = pages
    assert more > few + 5
    assert whole == cut


#: parts of the page before the folds, and folds that compare records
ORDER = [
    "verdict", "overview", "guarantee", "attempts", "table-one", "utility", "over-time", "subgroups",
    "training", "limits", "checklist",
]  # fmt: skip
OF_RECORDS = ["prediction", "replication", "resemblance", "closeness"]


@pytest.mark.parametrize("mode", MODES)
def test_attacks_come_before_distances(pages, mode):
    """Catches a part in another place, and a distance or a comparison of columns before the attacks."""
    html = pages[mode]
    ids = [attributes["id"] for _, attributes in Outline(html).tags if "id" in attributes]
    assert [name for name in ids if name in ORDER] == [name for name in ORDER if name in ids]
    assert {"verdict", "guarantee", "attempts", "utility", "limits", "checklist"} < set(ids)
    assert ids.index("attempts") < min(ids.index(name) for name in OF_RECORDS if name in ids)
    # The pictures of the first screen show both.
    before = html.split('id="guarantee"')[1].split('id="attempts"')[0].casefold()
    assert not any(word in before for word in ("nearest", "distance", "similar", "associations"))
    said = html.split('id="attempts"')[1].split("</section>")[0]
    assert said.index("<table") < said.index("Similarity of records is no evidence of privacy")
    assert (mode == "internal") == ("subgroups" in ids) and "table-one" in ids
    assert [*PARTS, "checklist"] == [name for name in ORDER if name != "verdict"]


def test_each_attack_stands_beside_control_and_bound(report, undrawn):
    """Catches an attack in short form without interval, control or bound, and one that is not marked."""
    attempts = attempts_of_a_run()
    html = render(replace(report[0], attempts=attempts), "internal").split('id="attempts"')[1]
    for caption, rows in re.findall(r"<caption><span>(.*?)</span></caption>.*?<tbody>(.*?)</tbody>",
                                    html.split("</section>")[0], re.DOTALL):  # fmt: skip
        assert ("badge" in caption) == ("Real records" in caption)
        told = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", rows)]
        if "Real records" in caption:
            assert told == [["linkability, halves", "0.05 (-0.02\u00a0to\u00a00.12)", "0.25", "0.28"]]
        else:
            assert told == [["audit: counts", "0.20 (0.10\u00a0to\u00a00.30)", "0.00", "0.31"]]


def attempts_of_a_run() -> tuple[Attempt, ...]:
    """An attack on the table and its excess, and an audit that reads no real record."""
    excess = Estimate(0.05, -0.02, 0.12)
    return (
        Attempt("linkability, halves", "rate", Estimate(0.3, 0.25, 0.35), None, Estimate(0.1, 0.05, 0.15)),
        Attempt("linkability, halves, beyond held-out records", "advantage", excess, 0.28, one_table=True),
        Attempt(
            "audit: counts", "tv", Estimate(0.2, 0.1, 0.3), 0.31, Estimate(0.0, 0.0, 0.0), internal=False
        ),
    )


#: the sources' long names of columns, and what only a program reads of a measure of one column
LONG = re.compile(r"column (\d) of the table")
FORMULA = re.compile(r"\w+: death ~ .*?\. ")


@pytest.mark.parametrize("mode", MODES)
def test_the_page_is_in_plain_english(mode, undrawn):
    """Catches long sentences and words with a plainer one: seen at once, folded, in tables and in figures."""
    full = sources.full_report(hostile=False)[0]
    reports = [full, replace(full, attempts=attempts_of_a_run())]
    for ledger in (sources.bare_ledger(), None):
        delta = None if ledger is None else 1e-5
        reports.append(RunReport(ledger, delta, attempts=attempts_of_a_run(), studies=full.studies))
    for report in reports:
        page = LONG.sub(r"column\1", render(report, mode))
        assert complaints(FORMULA.sub("CODE. ", prose(page))) == []
        words = re.sub(r"discriminator_\w+", "`measure`", labels(page).replace("_ ", "_"))
        assert hard_words(words) == []


@pytest.mark.parametrize("mode", MODES)
def test_self_contained_and_without_script(pages, mode):
    """Catches scripts, handlers, and addresses outside the page."""
    check_self_contained(pages[mode])


def test_names_are_escaped(pages):
    """Catches a column called <script> that becomes one, and names that are lost."""
    outline = Outline(pages["internal"])
    words = "".join(outline.words)
    assert not outline.of("script") and not outline.of("b")
    for name in sources.HOSTILE:
        assert name in words
    assert "<cohort> & more" in words


def test_everything_is_on_the_internal_page(report, pages):
    """Catches a kind of detail, a group of measures or a fact of the card that the page leaves out."""
    words = "".join(Outline(pages["internal"]).words)
    for measure in report[0].evaluation.measures:
        # the card tells the numbers of records in its own words
        assert measure.group == "Records" or measure.name.split("[")[0] in words, measure.name
    kinds = {
        "Trade-off": 1, "AUC on held-out real records": 1, "random forest: AUC": 1, "calibration": 3,
        "Odds ratio of each term": 1, "Missing: synthetic records": 3, "Difference: synthetic minus real": 1,
        "Pre-specified regression": 2, "pre-specified as": 1, "naive: not valid as inference": 1,
        "covered": 2,
        "proved and attempted": 2, "membership, distance": 1, "white box, WGAN critic steps": 1,
        "Nearest-neighbour accuracy against 1/2": 1, "Signs of memorisation": 0, "nearest training record": 1,
        "Table 1 of the records with": 1, "Subgroups: share of the records": 1, "too few": 2,
    }  # fmt: skip
    for phrase, least in kinds.items():
        assert words.count(phrase) >= least, phrase
    for fact in (
        "2026-03-04",
        "abab",
        "python 3.11",
        "7,131",
        "Wall time",
        "Intervals and p-values of this table alone are too small",
    ):
        assert fact in words, fact


def test_each_internal_number_is_marked(report, pages):
    """Catches a number of real records in a table, sentence or caption without the badge."""
    # after the ledger, whose numbers may look like planted ones
    html = pages["internal"].split('id="attempts"')[1]
    rows = re.findall(r"<tr>(.*?)</tr>|<li[^>]*>(.*?)</li>|<figcaption>(.*?)</figcaption>", html, re.DOTALL)
    # a released estimate may look like a planted number
    planted = {form for number in report[1] if (form := f"{number:.4f}") not in pages["release"]}
    marked = 0
    for parts in rows:
        text = "".join(parts)
        if any(form in text for form in planted):
            marked += 1
            assert "badge" in text, text
    assert marked > 30


def forms(number: float, digits: int) -> set[str]:
    """How a number may be written with at least so many digits; shorter forms are found by chance."""
    kinds = (".3f", ".4f", ".5f", ".6f", ".4g", ".5g", ".6g", ".3e", ".4e", "")
    percent = (".2f", ".3f", ".4g", ".1f", "")
    made = {format(number, kind) for kind in kinds} | {format(100 * number, kind) for kind in percent}
    made |= {text.replace(".", ",") for text in made}
    return {text for text in made if len(re.sub(r"e.*|\D", "", text).strip("0")) >= digits}


def digits_of(text: str) -> str:
    """All that can hold a number of four digits, to be searched thousands of times."""
    return " ".join(run for run in re.findall(r"[\d.,e+-]{4,}", text) if len(re.findall(r"\d", run)) >= 4)


@pytest.mark.slow
def test_release_holds_nothing_internal(report, pages):
    """Catches any internal number, name, path, seed or time, in any form, in the page or in its images."""
    full, planted = report
    outside = {4: words(pages["release"]), 6: everything(pages["release"])}
    inside = digits_of(words(pages["internal"]))
    # so that the search is known to find what is there
    assert sum(any(form in inside for form in forms(number, 4)) for number in planted) > 100
    # the guarantee's own numbers may look like planted ones
    public = digits_of(everything(render(replace(full, evaluation=None, seconds={}), "release")))
    for digits, text in outside.items():
        shown = digits_of(text)
        for form in {form for number in planted for form in forms(number, digits)}:
            assert form not in shown or form in public, form
    secrets = ("7131", "7,131", "7132", "7,132", "SECRETWARD", "secretf", "/secret", "schema.yaml")
    seeds = ("73310171", "73420", "73530", "73640", "73750", "73860", "73,")
    for secret in (*secrets, *seeds, "Wall time", "badge internal", 'class="badge"', "random_state"):
        assert secret not in outside[4], secret
    for measure in full.evaluation.measures:
        if measure.internal:
            assert measure.name.split("[")[0] not in outside[4].replace("<wbr>", ""), measure.name


@pytest.mark.slow
def test_release_does_not_depend_on_internal_numbers(report, pages):
    """Catches a release page that changes, by order, wording or length, with what is internal."""
    full = report[0]
    evaluation = full.evaluation
    other = Evaluation(
        tuple(replace(m, value=1, lower=None, upper=None) if m.internal else m for m in evaluation.measures),
        evaluation.settings | {"seed": 1},
        {name: frame[~frame["confidential"]] for name, frame in evaluation.details.items()},
    )
    changed = replace(full, evaluation=other, seconds={"fit": 1.0}, created="2026-03-04")
    assert render(changed, "release") == pages["release"]


def test_release_keeps_what_may_be_shared(pages):
    """Catches a release page without the synthetic table's own numbers, the ledger or the card."""
    words = "".join(Outline(pages["release"]).words)
    for phrase in ("Pre-specified regressions", "Pre-specified regression: <i>mortality</i>", "can be quoted",
                   "positive_rate_synthetic", "Synthetic table", "The ledger, entry by entry",
                   "WGAN critic steps",
                   "proved and attempted", "white box, WGAN critic steps",
                   "constraint_violations", "abab", "test_fraction: 0.5", "Page to share"):  # fmt: skip
        assert phrase in words, phrase


def test_the_name_of_a_private_file_is_not_released():
    """Catches a title that repeats the name of the private table's file."""
    config = {"data": {"path": "C:\\ward\\secretfile.csv"}}
    table = {"name": "secretfile", "columns": 3}
    report = RunReport(table=table, config=config)
    assert "secretfile" in render(report, "internal")
    assert "secretfile" not in render(report, "release")


def test_what_is_released_is_on_a_list(report):
    """Catches a field, added to a run later, that gets onto release pages by itself."""
    full = report[0]
    kept = full.released()
    assert "clip_counts" not in kept.table and set(kept.table) < set(full.table)
    assert kept.evaluation.settings == {"outcome": "death", "level": 0.95}
    assert kept.seconds == {} and kept.created == "2026-03-04"
    assert kept.config == {
        "split": {"method": "independent", "test_fraction": 0.5},
        "model": {"epsilon": 3.0},
    }
    assert kept.released() == kept


@pytest.mark.parametrize("mode", MODES)
def test_pages_without_much(mode, undrawn):
    """Catches a crash where there is no ledger, no evaluation, or an evaluation without details."""
    unknown = render(RunReport(), mode)
    assert "No guarantee is known" in unknown and "NOT PRIVATE" not in unknown
    bare = Evaluation((Measure("Utility", "auc_mean", None, True, "one outcome only"),))
    assert ("one outcome only" in render(RunReport(evaluation=bare), mode)) == (mode == "internal")
    empty = Ledger()
    text = render(RunReport(empty, 1e-5), mode)
    assert "The ledger has no entry" in text
    Outline(text)


@pytest.mark.parametrize("mode", MODES)
def test_not_private_says_so_first(mode, undrawn):
    """Catches a page of a run without noise, or with a known seed, that looks like any other."""
    seeded = sources.ledger_of()
    seeded.seeded = True
    for ledger in (sources.bare_ledger(), seeded):
        report = RunReport(ledger, 1e-5, created="2026-03-04")
        text = render(report, mode)
        assert text.index("NOT PRIVATE.</strong>") < text.index(">Guarantee<")
        assert "Page to share" not in text and "Trade-off" not in text and "Model card" in text


@pytest.mark.slow
def test_details_of_one_table_only():
    """Catches a crash where a detail has no partner: no real table, no classifier on real records."""
    report, _ = sources.full_report(2, hostile=False)
    for table in ("synthetic", "train"):
        kept = {
            name: frame[frame[of] == table]
            for name, frame in report.evaluation.details.items()
            for of in ("table", "trained_on")
            if of in frame
        }
        Outline(render(replace(report, evaluation=Evaluation((), {}, kept)), "internal"))


def test_empty_details():
    """Catches a crash where a table has no associations, no distances, or a column no value at all."""
    of = {"column": "x", "table": "synthetic", "unit": None, "scale": "linear"}
    undefined = {"table": "synthetic", "first": "x", "second": "x", "value": None}
    empty = {
        "association": [undefined],
        "distances": [],
        "marginal": [
            of | {"cell": "category", "lower": None, "upper": None, "label": "a", "share": 0.0},
            of | {"cell": "missing", "lower": None, "upper": None, "label": None, "share": 1.0},
        ],
        **sources.regression_of([], model="cox", outcome="death", measure="hazard ratio", note="nothing"),
        "roc": [{"trained_on": "train", "model": "m", "fpr": 0.0, "tpr": 0.0, "auc": None}],
    }
    Outline(render(RunReport(evaluation=Evaluation((), {}, empty)), "internal"))


def test_a_frame_that_no_section_knows_is_a_table():
    """Catches a frame of another evaluator that the page drops, or a confidential row of it in a release."""
    rows = [
        {"ward <b>": "north", "share": share, "confidential": confidential}
        for share, confidential in ((0.1234, False), (0.7337, True))
    ]
    report = RunReport(evaluation=Evaluation((), {}, {"wards_of_stays": rows}))
    page, shared = render(report, "internal"), render(report, "release")
    assert "wards of stays" in page and "ward &lt;b&gt;" in page
    assert "0.1234" in page and "0.7337" in page and 'class="badge"' in page
    assert "0.1234" in shared and "0.7337" not in shared and 'class="badge"' not in shared


@pytest.mark.slow
def test_write_page(tmp_path, report, pages):
    """Catches the time of day in a page, a file that differs from it, or one left half-written beside it."""
    write_page(report[0], tmp_path / "report.html", "release")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == pages["release"]
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_ordinary_size(pages):
    """Catches figures that grow beyond what mail takes."""
    assert len(pages["internal"]) < 1_500_000 and len(pages["release"]) < len(pages["internal"])


def test_a_guarantee_with_a_hole_is_never_called_whole(undrawn):
    """Would catch a release page that says all is covered where bounds were read off the records."""
    ledger = Ledger()
    ledger.post("marginals", gaussian_event(2.0), sensitivity="1")
    ledger.exclude("categories of ward were read off the data")
    report = RunReport(ledger=ledger, delta=1e-5)
    shown = render(report, "release")
    assert "Everything here is covered" not in shown and "holds against every attack" not in shown
    assert shown.count("categories of ward were read off the data") >= 3
    assert "Page to share, with exceptions" in shown and "with exceptions: ε" in shown


@pytest.mark.parametrize("mode", MODES)
def test_the_banner_names_the_model_of_an_unreviewed_schema(mode, undrawn):
    """Catches a banner that is silent about model/, which repeats values of real records."""
    ledger = sources.ledger_of()
    ledger.exclude("schema fields read off the private data and not reviewed (ward)")

    def banner(report: RunReport) -> str:
        return words(render(report, mode).split('class="banner')[1].split("</p>")[0])

    assert "model (model/) repeat such values of real records" in banner(RunReport(ledger, 1e-5))
    divided = sources.ledger_of()
    divided.exclude(STRATIFIED)
    assert "repeat" not in banner(RunReport(divided, 1e-5))
    draft = RunReport(sources.ledger_of(), 1e-5, table={"unreviewed": ["ward"]})
    assert "You may share" not in render(draft, "internal")


def test_the_size_of_a_table_without_a_guarantee_is_not_released(report, undrawn):
    """Catches the exact number of real records on a page to share: a fact, a total, a share of so many."""
    bare = replace(report[0], ledger=sources.bare_ledger(), config={})
    bare = replace(bare, table={**bare.table, "synthetic_records": 500, "n_public": None})
    assert bare.evaluation.measures and bare.exact_size
    released = bare.released()
    assert "synthetic_records" not in released.table
    assert released.evaluation.measures == () and released.evaluation.details == {}
    shown = re.sub(r"<style.*?</style>", "", render(bare, "release"), flags=re.DOTALL)
    assert "500" not in words(shown)
    internal = render(replace(bare, evaluation=None), "internal").split('id="card"')[1]
    assert re.search(r"Synthetic records</dt>\s*<dd>500 <span class=\"badge", internal)
    for changes in ({"config": {"sample": {"n": 500}}}, {"table": {**bare.table, "n_public": 500}}):
        named = replace(bare, **changes)
        assert named.released().table["synthetic_records"] == 500 and not named.exact_size
    private = replace(bare, ledger=sources.ledger_of())
    assert private.released().table["synthetic_records"] == 500 and private.released().evaluation.measures


def test_no_noise_is_no_noise(undrawn):
    """Would catch a card that speaks of the noise's randomness where there was none."""
    ledger = Ledger()
    ledger.post("everything", non_private_event(), sensitivity="unbounded")
    report = RunReport(ledger=ledger, delta=1e-5)
    shown = render(report, "internal")
    assert "Statistics without a guarantee have no noise." in shown and "no other seed" not in shown


def test_the_card_says_what_drew_the_noise_and_no_more(undrawn):
    """Would catch a promise about the noise's seed that the ledger does not bear out."""
    for generators, words, promised in (
        ([], "The ledger does not say which generator made the noise.", False),
        (["AES-128 in counter mode"], "drawn by AES-128 in counter mode. The key stands in no file", True),
        (["AES-128 in counter mode", "PCG64, which is not cryptographic"], "not cryptographic.", False),
    ):
        ledger = sources.ledger_of()
        for generator in generators:
            ledger.drawn_by(generator)
        report = RunReport(ledger=ledger, delta=1e-5)
        shown = render(report, "release")
        assert words in shown and ("no other seed of it exists" in shown) is promised


def test_measures_are_told_in_words_first(pages):
    """Catches a table whose lines begin with a name for programs, and a summary full of such names."""
    html = pages["internal"]
    heads = [re.sub(r"<[^>]*>", "", head) for head in re.findall(r'<th scope="row"[^>]*>(.*?)</th>', html)]
    assert any(head.startswith("train on synthetic, test on real") for head in heads)
    assert not any(head.startswith("auc_") for head in heads)
    seen = re.sub(r"<details.*?</details>", "", html.split('id="verdict"')[1], flags=re.DOTALL)
    assert ">Attacks<" in seen and "auc_" in html and "auc_" not in seen


def test_a_table_of_nothing_is_no_table():
    """Catches five lines of n/a with the same long reason, in full view, and a column without a value."""
    lost = tuple(Measure("Replication", f"effects_{k}", None, True, f"share {k}; no event") for k in range(5))
    rows = [{"term": "age", "real": None, "synthetic": None, "same_sign": None}]
    facts = {"model": "cox", "outcome": "death", "measure": "hazard ratio", "n_real": 9, "n_synthetic": 9}
    facts |= {"note": "No estimate.", "problem_real": "no event is observed"}
    evaluation = Evaluation(
        (*lost, Measure("Constraints", "values_outside", 0, False, "numbers outside the bounds")),
        {},
        sources.regression_of(rows, **facts),
    )
    html = render(RunReport(evaluation=evaluation), "internal")
    assert "n/a" not in html
    folded = "".join(re.findall(r"<details.*?</details>", html, re.DOTALL))
    assert folded.count("no event</th>") + folded.count("no event <span") == 5
    assert "effects with intervals" not in html and "Replication: measures" not in html
    assert "could not be compared" in html and "no event is observed" in html
    # no measure of this group has an interval
    assert ">interval</th>" not in html and ">numbers outside the bounds</th>" in html


def test_what_may_be_shared_is_said(report, pages, undrawn):
    """Catches an internal page that does not say what its reader may give away, or says it without cause."""
    assert "You may share" in pages["internal"]
    assert "You may share" not in pages["release"]
    for bare in (RunReport(), replace(report[0], ledger=sources.bare_ledger())):
        assert "You may share" not in render(bare, "internal")


def study_rows(html: str, name: str) -> list[list[str]]:
    """Cells of the table of a pre-specified regression."""
    table = html.split(f"Pre-specified regression {name}: private estimates</span></caption>")[1].split(
        "</table>"
    )[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]
    return [[re.sub(r"<[^>]*>", "", cell) for cell in cells] for cells in rows[1:]]


def test_a_passed_bound_is_the_first_thing_said(report, undrawn):
    """Catches a broken proof that is told as one number among others."""
    broken = replace(report[0].attempts[0], proved=0.05)
    page = render(replace(report[0], attempts=(*report[0].attempts, broken)), "release")
    assert "An attack passed its proved bound (" in page and "An attack passed" not in render(
        report[0], "release"
    )


def test_the_release_page_has_each_declared_estimate(report, pages):
    """Catches an estimate that was paid for and is not released, or another number in its place."""
    for mode in MODES:
        for study, name in zip(report[0].studies, ("&lt;i&gt;mortality&lt;/i&gt;", "pressure"), strict=True):
            rows = study_rows(pages[mode], name)
            assert len(rows) == len(study.terms)
            for cells, effect in zip(rows, study.effects(0.95), strict=True):
                low, high = cells[2].split(" to ")
                printed = [float(cell.replace(",", "")) for cell in (cells[1], low, high)]
                # to a twentieth of the interval's shorter side
                within = 0.05 * min(
                    effect["estimate"] - effect["lower"], effect["upper"] - effect["estimate"]
                )
                assert printed == pytest.approx(
                    [effect["estimate"], effect["lower"], effect["upper"]], rel=1e-3, abs=within
                )
                assert cells[4] == "covered"
    outline = Outline(pages["release"])
    (drawn,) = [a["alt"] for a in outline.of("img") if "private estimates, odds ratio" in a["alt"]]
    for name in sources.HOSTILE:
        assert f"{name}: " in drawn
    assert "sample_many(m, study=...)" in "".join(outline.words)


def test_a_survival_curve_is_on_the_page(undrawn):
    """Catches a curve that was paid for and is not released, or one that is released and nobody paid for."""
    study = replace(sources.study_of("mortality", ("age", "sex: M vs F"), "cox"), survival=sources.CURVE)
    report = RunReport(sources.ledger_of(), 1e-5, table={"name": "cohort"}, studies=(study,))
    seeded = sources.ledger_of()
    seeded.seeded = True
    for mode in MODES:
        page = render(report, mode)
        table = page.split("Pre-specified regression mortality: survival</span></caption>")[1]
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", table.split("</table>")[0])
        told = [re.sub(r"<[^>]*>", "", cell) for cell in cells]
        assert told[4:8] == ["90", "0.90", "0.85 to 0.93", "covered"]
        assert len(told) == 4 + 4 * len(sources.CURVE.times)
        alts = [a["alt"] for a in Outline(page).of("img")]
        assert sum("Survival curve of regression mortality" in alt for alt in alts) == 1
    unpaid = replace(report, ledger=seeded)
    released = render(unpaid, "release")
    assert "Survival curve of" not in released and "0.85 to 0.93" not in released
    assert "0.85 to 0.93" in render(unpaid, "internal")


def test_a_share_is_no_effect(undrawn):
    """Catches a share that is drawn as an odds ratio, tested against one half, or called a clear effect."""
    study = replace(sources.study_of("prevalence", ("died: yes",)), kind="share", formula="died ~ 1")
    report = RunReport(sources.ledger_of(), 1e-5, table={"name": "cohort"}, studies=(study,))
    for mode in MODES:
        page = render(report, mode)
        (cells,) = study_rows(page, "prevalence")
        assert cells[0] == "died: yes" and 0 < float(cells[1]) < 1 and cells[3] == ""
        assert not [a for a in Outline(page).of("img") if "private estimates" in a["alt"]]
        assert "of prevalence are clear" not in page and "of prevalence is clear" not in page


def test_a_release_page_of_studies_compares_nothing(report, pages, undrawn):
    """Catches the naive or the real side of a study, its verdict, or their words on a page for release."""
    section = words(pages["release"]).split('id="replication"')[1].split("</section>")[0]
    assert "Beside real records" not in section and "standardised" not in section and "real" not in section
    glossary = pages["release"].split('id="glossary"')[1]
    assert "pre-specified regression</dt>" in glossary and "overlap</dt>" not in glossary
    assert "effects clear in real records" not in pages["release"]
    assert "effects clear in real records" in pages["internal"]
    without = words(render(replace(report[0], studies=()), "release"))
    assert 'id="replication"' not in without
    assert "pre-specified regression" not in without.casefold() and "naive" not in without


@pytest.mark.slow
def test_studies_that_nobody_paid_for():
    """Catches estimates of a run without noise, or of a schema read off the records, on a release page."""
    seeded = sources.ledger_of()
    seeded.seeded = True
    unreviewed = {"name": "cohort", "unreviewed": ["ward"]}
    for ledger, table, said in (
        (sources.bare_ledger(), {}, "NOT PRIVATE: no guarantee covers these estimates"),
        (seeded, {}, "NOT PRIVATE: no guarantee covers these estimates"),
        (sources.ledger_of(), unreviewed, "Nobody reviewed them (ward)"),
    ):
        studies = (sources.study_of("mortality", ("ward: QX vs A",)),)
        report = RunReport(ledger, 1e-5, table=table, studies=studies)
        released, internal = render(report, "release"), render(report, "internal")
        assert "QX" not in words(released) and "mortality" not in words(released)
        section = internal.split('id="replication"')[1].split("</section>")[0]
        assert said in section and "can be quoted" not in internal and ">covered<" not in section
        for part in re.findall(r"<tr><th scope=\"row\".*?</tr>|<figcaption>.*?</figcaption>", section):
            assert "badge" in part
        shown = internal.split('id="utility"')[1].split("</section>")[0]
        assert re.search(r"pre-specified effect of mortality.*?badge", shown)


def test_a_hole_in_the_guarantee_is_told_beside_the_studies(undrawn):
    """Catches estimates that are called quotable without a word where the ledger leaves something out."""
    ledger = sources.ledger_of()
    ledger.exclude("the stratified split")
    shown = render(RunReport(ledger, 1e-5, studies=(sources.study_of(),)), "release")
    section = shown.split('id="replication"')[1].split("</section>")[0]
    assert "also that of these estimates, does not cover: the stratified split" in section
    assert ">covered<" in section and "Page to share, with exceptions" in shown
