"""A plan: its noise is that of the releases, its groups survive, and nothing private is opened."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import beside, marginals_options
from visits import VISITS

import dpsynth
from dpsynth.cli import main
from dpsynth.errors import PrivacyError
from dpsynth.marginals.statistics import MarginalsRelease
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.profile import Profile
from dpsynth.privacy.records import FrameRecords
from dpsynth.runs.commands.run import _write as write_plan
from dpsynth.runs.forecast import CERTAINTY, EPSILONS, RELATIVE_ERROR, smallest_group
from dpsynth.synthesis.fit import outlook, plan_fit, planned_parts
from dpsynth.synthesis.generators import DEFAULT, options_of
from dpsynth.synthesis.parts.base_model import BaseModel
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.studies import Studies
from dpsynth.synthesis.study_forecast import expected_widening
from dpsynth.table.schema import Column, Schema

N = 600


def schema_of(*more: Column, outcome: str | None = "died", **fields) -> Schema:
    columns = (
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="ward", kind="categorical", categories=("a", "b", "c"), missing=True, reviewed=True),
        Column(name="died", kind="binary", categories=("no", "yes"), reviewed=True),
        *more,
    )
    return Schema(columns=columns, outcome=outcome, **fields)


def frame_of(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 91, n),
            "ward": rng.choice(["a", "b", "c"], n),
            "died": rng.choice(["no", "yes"], n),
        }
    )


def test_noise_is_that_of_the_releases_of_a_fit():
    """Catches a plan whose noise or cost is not what a fit with the same arguments then uses."""
    also = beside(["died ~ age"])
    schema = schema_of(n_public=N)
    found = dpsynth.plan(schema, epsilon=2.0, also=also)
    frame = schema.conform(frame_of(N)).frame
    options = marginals_options(epsilon=2.0)
    fit = plan_fit(FrameRecords(frame), schema, options, np.random.default_rng(0), Ledger(), also=also)
    parts = fit.parts
    noise = {each.name: each.noise_std for each in found.statistics if each.noise_std is not None}
    assert noise["single-column counts"] == pytest.approx(parts.of(Columns).release.noise_std)
    assert noise["base model's cross-tabulations"] == pytest.approx(
        parts.of(BaseModel).release.tables.noise_std
    )
    assert found.delta == pytest.approx(parts.delta)
    assert sum(each.share for each in found.statistics) == pytest.approx(1.0)
    assert max(each.epsilon for each in found.statistics) < 2.0
    assert Profile(parts.events).epsilon(found.delta) == pytest.approx(2.0, rel=1e-2)
    assert found.forecast.attack_accuracy == pytest.approx(Profile(parts.events).attack_accuracy())

    records, rng, counted = FrameRecords(frame), np.random.default_rng(1), parts.of(Columns).release
    free = dataclasses.replace(counted, noise_multiplier=None, counted=counted.counting)
    exact = Ledger().run(free, records, rng)
    errors = [
        noisy - counts
        for _ in range(200)
        for noisy, counts in zip(Ledger().run(counted, records, rng), exact, strict=True)
    ]
    assert np.concatenate(errors).std() == pytest.approx(noise["single-column counts"], rel=0.03)


def test_a_subgroups_width_is_told_by_its_size():
    """Catches a width of all records, or of a simulated subgroup, for a subgroup whose size nobody knows."""
    studies = [
        {"model": "died ~ age where ward == 'a'", "name": "a"},
        {"model": "died ~ 1 where ward == 'a'", "name": "b"},
    ]
    found = dpsynth.plan(schema_of(), 5000, epsilon=1.0, also=beside(studies))
    needed = [each.subgroups for each in found.forecasts]
    assert all(each["a"] > each["b"] for each in needed) and needed[0]["b"] > needed[1]["b"] > needed[3]["b"]
    assert "subgroup a  subgroup b" in str(found) and f"{needed[1]['a']:,}" in str(found)
    options, schema = marginals_options(epsilon=1.0, delta=found.delta), schema_of(n_public=5000)
    (line, _) = outlook(schema, options, beside(studies))
    assert f"2 times as wide as without noise if its subgroup has {needed[1]['a']:,} records" in line
    planned = planned_parts(schema, 5000.0, options, also=beside(studies)).of(Studies)
    whole = expected_widening(planned.studies[0], schema_of(), needed[1]["a"], planned.multiplier)
    assert whole == pytest.approx(2.0, rel=0.01)


def test_a_plan_says_where_bounded_influence_matters():
    """Catches effects on the middle of a skewed count or outcome that a plan promises as those of all."""
    nodes = Column(name="nodes", kind="integer", lower=0, upper=50)
    models = ["died ~ nodes + age", "linear: nodes ~ age", "died ~ log1p(nodes) + age"]
    studies = [{"model": model, "name": f"study {k}"} for k, model in enumerate(models)]
    found = dpsynth.plan(schema_of(nodes), 5000, epsilon=1.0, also=beside(studies))
    first, second = found.cautions
    assert first.startswith("Study 'study 0': A record far out in nodes counts less.") and first in str(found)
    assert second.startswith("Study 'study 1': A residual counts for 3 standard deviations")
    assert found.to_dict()["cautions"] == found.cautions


def test_smallest_group_is_the_smallest():
    """Catches a group size that the release of real counts does not keep, or that is larger than needed."""
    noise = dpsynth.plan(schema_of(), N, epsilon=1.0).forecast.noise_std
    group = smallest_group(noise)
    names = [f"ward {k}" for k in range(64)]
    schema = Schema(columns=tuple(Column(name=name, kind="binary", categories=("a", "b")) for name in names))

    def kept(size: int) -> float:
        records = FrameRecords(pd.DataFrame(dict.fromkeys(names, ["a"] * size + ["b"] * 50)))
        release = MarginalsRelease(schema=schema, n=size + 50, noise_multiplier=noise / 8)  # of 64 columns
        rng = np.random.default_rng(2)
        counts = np.array([[column[0] for column in Ledger().run(release, records, rng)] for _ in range(40)])
        return float((np.abs(counts - size) <= RELATIVE_ERROR * size).mean())

    assert kept(group) == pytest.approx(CERTAINTY, abs=0.015)
    assert kept(round(0.8 * group)) < CERTAINTY - 0.02


POISON = """
import sys
from pathlib import Path

opened = []

def refuse(event, arguments):
    if event == "open" and str(arguments[0]).endswith(("secret.csv", "secret.parquet")):
        opened.append(arguments[0])
        raise PermissionError("a data file was opened")

sys.addaudithook(refuse)
try:
    Path("secret.csv").read_text()
except PermissionError:
    opened.clear()
else:
    sys.exit("the poison does not work")
from dpsynth.cli import main
sys.exit(main(["plan", "run.yaml", "--records", "60"]) or len(opened))
"""


@pytest.mark.slow
def test_no_data_file_is_opened(tmp_path):
    """Catches a plan that reads the table that a configuration names."""
    schema_of(n_public=200).to_yaml(tmp_path / "schema.yaml")
    frame_of(200).to_csv(tmp_path / "secret.csv", index=False)
    (tmp_path / "run.yaml").write_text("data: {path: secret.csv, schema: schema.yaml}\nmodel: {epsilon: 1}\n")
    done = subprocess.run(
        [sys.executable, "-c", POISON],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Is my table large enough?" in done.stdout


def test_an_unreviewed_schema_is_refused():
    """Catches a plan, which may be shared, of bounds that were read off private records."""
    column = Column(name="urea", kind="continuous", lower=1, upper=217, unreviewed=("upper",))
    with pytest.raises(PrivacyError, match="urea"):
        dpsynth.plan(schema_of(column), N)


def test_a_plan_of_a_draft_is_confidential(tmp_path):
    """Catches numbers of categories that were read off records in a plan that looks fit to share."""
    names = tuple(f"c{i}" for i in range(217))
    draft = Column(name="code", kind="categorical", categories=names, unreviewed=("categories",))
    found = dpsynth.plan(schema_of(draft), N, accept_unreviewed=True)
    assert "217 categories" in str(found)  # what the mark is for
    assert str(found).startswith("Confidential: do not share this plan.") and "(code)" in found.confidential
    assert found.to_dict()["confidential"] == found.confidential and found.unreviewed == ("code",)
    assert "Confidential: do not share" in [text.get_text() for text in found.plot().texts]
    write_plan(found, tmp_path)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert len(list(tmp_path.iterdir())) == 3
    alone = dpsynth.plan(schema_of(draft.mark_reviewed(named=False)), N)
    assert alone.confidential.startswith("Confidential: do not share this plan. Nobody confirmed")
    assert alone.unconfirmed == ("code",) and not alone.unreviewed
    reviewed = dpsynth.plan(schema_of(), N)
    assert reviewed.confidential == "" and "onfidential" not in str(reviewed) and not reviewed.plot().texts


def test_advice_names_the_columns_of_many_cells(monkeypatch):
    """Catches a column of many categories or cells that is not named or counted, and one of few that is."""
    many = Column(name="code", kind="categorical", categories=tuple(f"c{i}" for i in range(200)))
    fine = Column(name="lab", kind="continuous", lower=0, upper=1, cells=1000)
    found = dpsynth.plan(schema_of(many, fine), 5000, epsilon=3.0)
    assert [each.column for each in found.advice] == ["lab", "code"]
    group = found.forecast.smallest_group
    assert found.advice[1].action == f"use at most {5000 // group} categories"
    assert "200 categories, 25 records each" in found.advice[1].why
    gaps = dpsynth.plan(schema_of(many.model_copy(update={"missing": True})), 5000, epsilon=3.0)
    group = gaps.forecast.smallest_group
    assert gaps.advice[0].action == f"use at most {5000 // group - 1} categories"
    assert "It has 200 categories and missing values, 25 records each" in gaps.advice[0].why
    assert dpsynth.plan(schema_of(), 5000, epsilon=3.0).advice == ()
    monkeypatch.setattr("dpsynth.runs.forecast._MOST_ADVICE", 1)
    assert "- lab: " in str(found) and "- and 1 more: " in str(found) and "- code: " not in str(found)
    assert "- and " not in str(gaps)


def test_more_budget_or_records_keep_smaller_groups():
    """Catches a forecast that belongs to another epsilon."""
    found = dpsynth.plan(schema_of(), N, epsilon=2.0)
    assert [each.epsilon for each in found.forecasts] == sorted({*EPSILONS, 2.0})
    groups = [each.smallest_group for each in found.forecasts]
    assert groups == sorted(groups, reverse=True)
    assert len(set(groups)) == len(groups)


def test_a_refused_study_is_said():
    """Catches a plan that promises what a fit refuses."""
    found = dpsynth.plan(schema_of(), 60, epsilon=0.5, also=beside(["died ~ age + ward"]))
    assert "terms than the budget can bear" in found.forecast.refused
    assert found.large_enough.startswith("No: a fit of 60 records at epsilon 0.5 would be refused")
    assert "would be refused" in str(found)
    assert found.statistics == ()


def test_answers():
    """Catches a verdict that does not follow from the numbers beside it."""
    found = dpsynth.plan(schema_of(), N, epsilon=1.0)
    lost = {each.epsilon: each.smallest_group > N / 10 for each in found.forecasts}
    assert lost == {0.5: True, 1.0: True, 3.0: False, 10.0: False}
    group = found.forecast.smallest_group
    expected = f"No: with {N} records at epsilon 1, groups of {group} or more records survive."
    assert found.large_enough == expected
    assert found.which_epsilon == "3 is the smallest of 0.5, 1, 3 and 10 that is enough."
    assert dpsynth.plan(schema_of(), N, epsilon=3.0).large_enough.startswith("Yes: with")
    few = dpsynth.plan(schema_of(), 60, epsilon=3.0)
    assert few.which_epsilon.startswith("None of 0.5, 1, 3 and 10 is enough")


def test_wide_intervals_are_not_enough():
    """Catches a width that is not that of the fit, or one that decides nothing."""
    study = "died ~ age + ward"
    studies = dpsynth.Studies([study])
    found = dpsynth.plan(schema_of(), 3000, epsilon=0.5, also=[studies])
    expected = studies.expected_widening(schema_of(n_public=3000), dpsynth.DPMarginals(0.5, found.delta))
    assert found.forecast.widening == expected and expected["died"] > 2.0
    assert f"{expected['died']:.1f}" in str(found) and "width died" in str(found)
    assert found.large_enough.startswith("No:") and found.which_epsilon.startswith("1 is the smallest")
    assert dpsynth.plan(schema_of(), 3000, epsilon=0.5).large_enough.startswith("Yes:")


@pytest.mark.parametrize(("outcome", "generator"), [("died", DEFAULT), (None, DEFAULT), (None, "matching")])
def test_cells_of_two_columns_have_their_own_noise(outcome, generator):
    """Catches pairs that are promised the noise of single columns, or of tables that no fit counts."""
    found = dpsynth.plan(schema_of(outcome=outcome), N, epsilon=2.0, generator=generator)
    options = options_of(generator, epsilon=2.0, delta=found.delta)
    schema = schema_of(outcome=outcome, n_public=N)
    parts = planned_parts(schema, float(N), options)
    if generator != DEFAULT:
        assert found.forecast.smallest_pair is None
        return
    tables = parts.of(BaseModel).release.tables
    weight = tables.weights[0]  # of a record, in a cell of two columns
    assert found.forecast.smallest_pair == smallest_group(tables.noise_std / weight)
    assert (weight < 1.0) == (outcome is not None)


def test_the_noise_in_a_mean_is_that_of_noisy_counts():
    """Catches an error of a mean that forgets the width of the cells, the noise, or the number of records."""
    cost = Column(name="cost", kind="integer", lower=0, upper=60, unit="USD")
    found = dpsynth.plan(schema_of(cost), 20_000, epsilon=3.0).forecast
    assert set(found.means) == {"age", "cost"}
    rng, values = np.random.default_rng(0), np.arange(61)
    counts = 20_000 / 61 + rng.normal(0.0, found.noise_std, (4000, 61))
    assert found.means["cost"] == pytest.approx((counts @ values / counts.sum(axis=1)).std(), rel=0.05)
    fits = [dpsynth.plan(schema_of(cost), n, epsilon=3.0).forecast.means["age"] for n in (5000, 20_000)]
    assert fits[0] > 2 * fits[1]
    assert "cost" in str(dpsynth.plan(schema_of(cost), 20_000)).split("Noise in means:")[1]


def test_command_writes_a_folder(tmp_path, capsys):
    """Catches a folder without one of its files, and a file that is not what is printed."""
    schema_of().to_yaml(tmp_path / "schema.yaml")
    command = ["plan", str(tmp_path / "schema.yaml"), "--records", "120"]
    out = tmp_path / "out"
    assert main([*command, "--out", str(out), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((out / "plan.json").read_text())
    assert record["large_enough"] in (out / "plan.txt").read_text()
    assert len(record["forecasts"]) == 4
    # half of them train in a run, whose delta is this one where their number is not public
    assert (record["records"], record["delta"]) == (60, 1e-6)
    assert "<svg" in (out / "plan.svg").read_text()
    assert main([*command, "--out", str(out)]) == 2
    assert "exists and is not empty" in capsys.readouterr().err


def test_advice_names_columns_of_patients() -> None:
    """Advice to coarsen a level, such as the class of a share of rows, that no schema has."""
    advice = dpsynth.plan(VISITS.model_copy(update={"n_public": 120}), epsilon=1.0).advice
    assert advice and {one.column for one in advice} <= {*VISITS.names}
