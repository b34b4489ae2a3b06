"""Rows of synthetic patients: they have the drawn levels, and what is released of rows comes back."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from visits import FILED, STAYS, VISITS, filed, histories_of, stays, visits

from dpsynth.errors import RejectionError
from dpsynth.patients.courses import row_tables, small_categories
from dpsynth.patients.courses.estimates import ratios, shrunk_conditional
from dpsynth.patients.courses.links import Links, concordances, correlations
from dpsynth.patients.courses.times import Times, gaps_of_kinds
from dpsynth.patients.files import PatientFile
from dpsynth.patients.histories import Histories, patient_table
from dpsynth.patients.schema import PatientSchema
from dpsynth.patients.series import PRESENCE_CLASSES
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.synthesis import rows as row_draws
from dpsynth.synthesis.parts.rows import VisitsRelease
from dpsynth.synthesis.rows import Trajectories, draw_rows, likely_parents
from dpsynth.table.schema import Column


def sums(frame, schema=VISITS):
    """The tables of rows without noise."""
    release = VisitsRelease(noise_multiplier=None, schema=schema)
    records = FrameRecords(histories_of(frame, schema))
    return Ledger().run(release, records, np.random.default_rng(0))


def times_of(schema: PatientSchema) -> Times:
    """What orders the rows."""
    return next(course for course in schema.courses if isinstance(course, Times))


def exact(frame, schema=VISITS):
    """Trajectories from tables without noise, and the levels of the table's own patients."""
    levels = patient_table(frame, schema)
    names = [column.name for column in small_categories(schema.courses)]
    parents = dict(zip(names[1:], names, strict=False))
    model = Trajectories.of(schema, sums(frame, schema), 0.0, parents, {})
    return model, levels


@pytest.fixture(scope="module")
def drawn():
    model, levels = exact(visits(3000, seed=3))
    rows = draw_rows(model, levels, np.random.default_rng(1))
    return levels, rows, patient_table(rows, VISITS)


def test_a_synthetic_patient_has_the_drawn_levels(drawn):
    """Catches rows of another patient's levels, values at the wrong rows, and a line that is not met."""
    levels, rows, found = drawn
    assert rows["id"].drop_duplicates().tolist() == list(range(1, len(levels) + 1))
    assert rows.groupby("id")["day"].apply(lambda day: day.is_monotonic_increasing).all()
    for name in ("rows", "sex", "day first"):
        assert (found[name] == levels[name]).all()
    both = (levels["rows"] > 1).to_numpy()
    assert np.abs(found["day span"] - levels["day span"])[both].max() <= 1
    # Where one of few rows has a value, another class cannot be met.
    assert (found["lab measured"] == levels["lab measured"]).mean() > 0.95
    enough = (rows.groupby("id")["weight"].count() >= 4).to_numpy()
    for name in ("weight mean", "weight sd", "weight trend"):
        away = (found[name] - levels[name])[enough].abs()
        assert away.quantile(0.95) < 0.05, name
    together = found.loc[enough, ["weight roughness"]].assign(drawn=levels["weight roughness"])
    assert together.corr().iloc[0, 1] > 0.8


def test_patients_of_every_block_have_their_own_levels(monkeypatch):
    """Catches patients that are lost, come twice or have others' levels from the second or third block on."""
    model, levels = exact(visits(23, seed=3))
    monkeypatch.setattr(row_draws, "_BLOCK", 5)
    rows = draw_rows(model, levels, np.random.default_rng(1), before=100)
    assert rows["id"].drop_duplicates().tolist() == list(range(101, 124))
    found = patient_table(rows, VISITS)
    for name in ("rows", "sex", "day first"):
        assert (found[name] == levels[name]).all()
    assert not rows.duplicated(["day", "lab", "grade", "weight"]).any()


def test_numbers_have_the_decimals_of_a_file():
    """Catches 3.8000000000000003 for 3.8."""
    columns = [
        column.model_copy(update={"decimals": 1}) if column.name == "weight" else column
        for column in VISITS.columns
    ]
    schema = VISITS.model_copy(update={"columns": tuple(columns)})
    weight = draw_rows(*exact(visits(100, seed=3), schema), np.random.default_rng(1))["weight"].dropna()
    assert weight.tolist() == weight.round(1).tolist()


def test_rows_follow_the_released_tables(drawn):
    """Catches axes that change places, and chains that start or go on wrongly."""
    _, rows, _ = drawn
    for table, real, made in zip(
        row_tables(VISITS.courses), sums(visits(3000, seed=3)), sums(rows), strict=True
    ):
        if table.kind == "residual":  # moved to the levels after they are drawn
            continue
        one, other = real / real.sum(), made / made.sum()
        assert np.abs(one - other).sum() / 2 < 0.2, table  # sampling alone gives up to .1


def test_a_lab_remembers_its_patient(drawn):
    """Catches values that are drawn row by row, without the patient's own level."""
    _, rows, _ = drawn
    lab = rows.dropna(subset=["lab"])
    last = lab.groupby("id")["lab"].shift(3)
    real = visits(3000, seed=3).sort_values(["id", "day"]).dropna(subset=["lab"])
    before = real.groupby("id")["lab"].shift(3)
    assert lab["lab"].astype(float).corr(last.astype(float)) == pytest.approx(
        real["lab"].corr(before), abs=0.05
    )


def test_noisy_tables_are_shrunk_and_exact_ones_kept():
    """Catches noise that is taken for structure, structure that is smoothed away, and a wrong axis."""
    rng = np.random.default_rng(0)
    truth = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    counts = truth * np.array([[400.0], [100.0]])
    np.testing.assert_allclose(shrunk_conditional(counts, 0.0), truth)
    pooled = counts.sum(axis=0) / counts.sum()
    np.testing.assert_allclose(shrunk_conditional(counts, 1.0), truth, atol=0.02)
    noise = shrunk_conditional(pooled * np.array([[30.0], [20.0]]) + 20 * rng.standard_normal((2, 3)), 20.0)
    np.testing.assert_allclose(noise[0], noise[1])
    assert (noise >= 0).all() and noise.sum(axis=1) == pytest.approx(1.0)


def test_gaps_that_are_hardly_counted_are_those_before_the_same_kind():
    """Catches noise taken for gaps of few rows, and gaps of another kind of row in their place."""
    rng = np.random.default_rng(0)
    soon, late = np.repeat([0.2, 0.0], [5, 13]), np.repeat([0.0, 0.2], [13, 5])
    counts = np.array([0 * soon, 2000 * late, 3000 * soon, 2000 * late])
    found = gaps_of_kinds(counts + 10 * rng.standard_normal(counts.shape), 10.0)
    np.testing.assert_allclose(found, [soon, late, soon, late], atol=0.02)
    exact_ones = counts[1:] / [[2000], [3000], [2000]]
    np.testing.assert_allclose(gaps_of_kinds(counts, 0.0)[1:], exact_ones)
    everyone = np.maximum(counts.sum(axis=0) / counts.sum(), 1e-3)
    np.testing.assert_allclose(ratios(gaps_of_kinds(counts, 0.0), counts)[1:] * everyone, exact_ones)


def test_a_model_of_no_patient_draws_nobody():
    """Catches a crash where no patient is asked for."""
    model, levels = exact(visits(50))
    rows = draw_rows(model, levels.iloc[:0], np.random.default_rng(0))
    assert len(rows) == 0 and list(rows.columns) == ["id", *VISITS.names]


def test_unmeasured_variables_stay_unmeasured():
    """Catches a value for a patient of whom none was drawn."""
    frame = visits(200).assign(lab=np.nan)
    model, levels = exact(frame)
    assert (levels["lab measured"] == PRESENCE_CLASSES[0]).all()
    assert pd.isna(draw_rows(model, levels, np.random.default_rng(0))["lab"]).all()


@pytest.fixture(scope="module")
def stayed():
    model, levels = exact(stays(1500, seed=5), STAYS)
    return levels, draw_rows(model, levels, np.random.default_rng(1))


@pytest.mark.slow
def test_courses_never_fall_and_end_with_the_last_row(stayed):
    """Catches a stage that falls, a rise that is not met, a row after a death, and an age that is off."""
    levels, rows = stayed
    stage = rows["stage"].map({"I": 0, "II": 1, "III": 2, "IV": 3}).astype(int)
    patient = rows.groupby("id")
    assert (stage.groupby(rows["id"]).diff().dropna() >= 0).all()
    dose = rows.dropna(subset=["dose"])
    assert (dose["dose"].astype(int).groupby(dose["id"]).diff().dropna() >= 0).all()
    found = patient_table(rows, STAYS)
    several = (levels["rows"] > 1).to_numpy()
    assert (found["stage rise"] == levels["stage rise"])[several].mean() > 0.99
    assert (patient["stage"].first().to_numpy() == levels["stage first"]).mean() > 0.99
    assert (patient["died"].last().to_numpy() == levels["died"].to_numpy()).mean() > 0.99
    assert (rows["died"] == "yes").sum() == (patient["died"].last() == "yes").sum()
    age = (rows["first_age"] + rows["day"] / 365.25).clip(18, 101)
    assert np.abs(rows["age"] - age).max() <= 0.0501


def test_every_row_obeys_every_rule(stayed):
    """Catches a rule that is left out, and rows that are drawn again without being looked at."""
    _, rows = stayed
    broken = {
        "end": rows["day"] > rows["end"],
        "pressure": rows["dbp"] >= rows["sbp"],
        "pregnant": (rows["pregnant"] == "yes") & ((rows["sex"] == "M") | (rows["age"] >= 56)),
        "dose": (rows["stage"] == "I") & (rows["dose"] > 300).fillna(False),
    }
    assert {name: int(wrong.sum()) for name, wrong in broken.items()} == dict.fromkeys(broken, 0)


def test_a_row_that_breaks_a_rule_stays_a_row_of_its_files():
    """Catches half a visit: a weight that is taken from a row of the other file, which has none."""
    frame = filed(1000, seed=6)
    model, levels = exact(frame, FILED)
    model = dataclasses.replace(model, schema=FILED.model_copy(update={"constraints": ("weight <= 62",)}))
    rows = draw_rows(model, levels, np.random.default_rng(0))
    assert rows["weight"].max() <= 62 < frame["weight"].quantile(0.7)
    assert not rows.loc[rows["weight"].isna(), "grade"].notna().any()
    assert rows["weight"].notna().mean() == pytest.approx(frame["weight"].notna().mean(), abs=0.02)


def test_rules_that_no_row_obeys_are_refused(stayed):
    """Catches a loop without an end."""
    levels, _ = stayed
    schema = STAYS.model_copy(update={"constraints": ("sbp < 61",)})
    model = dataclasses.replace(exact(stays(200), STAYS)[0], schema=schema)
    with pytest.raises(RejectionError, match="sbp < 61"):
        draw_rows(model, levels.iloc[:50], np.random.default_rng(0))


def test_variables_of_a_row_move_together(stayed):
    """Catches rows whose variables are drawn independently, given the levels."""
    _, rows = stayed

    def together(frame):
        away = frame[["sbp", "dbp"]].astype(float)
        return (away - away.groupby(frame["id"]).transform("mean")).corr().iloc[0, 1]

    assert together(rows) > 0.6 < together(stays(1500, seed=5))


def test_steps_lead_from_one_row_with_both_values_to_the_next():
    """Catches laboratory rows between two visits that hide how pressures rise and fall together."""
    columns = [c.model_copy(update={"missing": True}) if c.name == "weight" else c for c in VISITS.columns]
    schema = VISITS.model_copy(update={"columns": tuple(columns)})
    frame = visits(300, seed=7)
    frame.loc[frame.index % 3 == 0, "weight"] = None
    links = next(course for course in schema.courses if isinstance(course, Links))
    found = concordances(Histories.from_frame(histories_of(frame, schema), schema), links.columns)
    used = frame.dropna(how="all", subset=["lab", "grade", "weight"]).sort_values(
        ["id", "day"], kind="stable"
    )
    used = used.groupby("id").head(schema.most)
    both = used.dropna(subset=["lab", "weight"])
    steps = both.groupby("id")[["lab", "weight"]].diff().prod(axis=1, skipna=False)
    counts = [(steps > 0).groupby(both["id"]).sum(), (steps < 0).groupby(both["id"]).sum()]
    expected = pd.concat(counts, axis=1).reindex(range(300), fill_value=0)
    np.testing.assert_array_equal(found, expected.to_numpy())
    assert expected.to_numpy().sum() > 300


def test_correlations_come_back_from_signs():
    """Catches a wrong inverse of the share of equal signs, and a matrix that cannot be drawn from."""
    truth = np.array([[1.0, 0.8, -0.3], [0.8, 1.0, 0.0], [-0.3, 0.0, 1.0]])
    steps = np.random.default_rng(0).multivariate_normal(np.zeros(3), truth, 100_000)
    same = [(steps[:, i] * steps[:, j] > 0).sum() for i, j in ((0, 1), (0, 2), (1, 2))]
    pairs = np.array([[k, len(steps) - k] for k in same], dtype=float)
    np.testing.assert_allclose(correlations(pairs, 3, 0.0), truth, atol=0.02)
    impossible = np.array([[100.0, 0.0], [100.0, 0.0], [0.0, 100.0]])
    assert np.linalg.eigvalsh(correlations(impossible, 3, 0.0)).min() > 0
    np.testing.assert_allclose(correlations(pairs * 1e-6, 3, 1.0), np.eye(3), atol=1e-9)


def test_every_row_measures_something():
    """Catches a visit at which nothing was measured, where no real one is like that."""
    columns = tuple(column for column in VISITS.columns if column.name in ("day", "lab", "grade"))
    schema = VISITS.model_copy(update={"columns": columns, "per_patient": ()})
    frame = visits(500)[["id", "day", "lab", "grade"]]
    assert frame[["lab", "grade"]].isna().all(axis=1).any()
    model, levels = exact(frame, schema)
    rows = draw_rows(model, levels, np.random.default_rng(0))
    assert rows[["lab", "grade"]].notna().any(axis=1).all()


def test_the_columns_of_a_file_are_there_together():
    """Catches half a visit: values of one file's row that are drawn to be there or missing one by one."""
    frame = filed(3000, seed=4)
    model, levels = exact(frame, FILED)
    rows = draw_rows(model, levels, np.random.default_rng(0))
    visit = rows["weight"].notna()
    assert not rows.loc[~visit, "grade"].notna().any() and (visit | rows["lab"].notna()).all()
    real = frame["weight"].notna()
    for found, true in ((visit, real), (rows.loc[visit, "grade"].notna(), frame.loc[real, "grade"].notna())):
        assert abs(found.mean() - true.mean()) < 0.02
    own = frame.assign(visit=real).groupby("id")["visit"].mean()
    assert set(own[(levels["row in visits.csv"] == "all").to_numpy()]) == {1.0}
    assert levels["grade measured"].isna().equals(own.reset_index(drop=True) == 0)


def test_a_terminal_event_has_a_row_of_its_file():
    """Catches a death in a file whose row has no other value, where each real row of the file has all."""
    columns = tuple(c for c in STAYS.columns if c.name in ("day", "sbp", "dbp", "died"))
    files = (
        PatientFile(name="stays.csv", columns=("sbp", "died")),
        PatientFile(name="labs.csv", columns=("dbp",)),
    )
    fields = {"columns": columns, "files": files, "per_patient": (), "increasing": (), "constraints": ()}
    schema = STAYS.model_copy(update=fields)
    frame = stays(1500)[["id", "day", "sbp", "dbp", "died"]]
    frame["sbp"] = frame["sbp"].where((frame.index % 3 > 0) | (frame["died"] == "yes"))
    frame["dbp"] = frame["dbp"].where((frame.index % 2 > 0) | frame["sbp"].isna())
    model, levels = exact(frame, schema)
    rows = draw_rows(model, levels, np.random.default_rng(0))
    assert (rows["died"] == "yes").sum() > 100
    assert rows.loc[rows["died"] == "yes", "sbp"].notna().all()
    assert rows[["sbp", "dbp"]].notna().any(axis=1).all()


def test_an_order_that_is_not_released_only_orders():
    """Catches an order of rows that is modelled, missing, or ignored."""
    columns = tuple(column for column in STAYS.columns if column.name not in ("day", "age"))
    schema = STAYS.model_copy(update={"columns": columns, "constraints": ("dbp < sbp",)})
    frame = stays(400, seed=2).assign(day=lambda f: "stay " + f["day"].astype(str).str.zfill(5))
    levels = patient_table(frame.sample(frac=1, random_state=0), schema)
    assert levels["stage rise"].max() > 0 and not any("day" in name for name in levels)
    model, levels = exact(frame, schema)
    rows = draw_rows(model, levels, np.random.default_rng(0))
    assert list(rows) == ["id", "day", *schema.names]
    assert (rows["day"] == rows.groupby("id").cumcount() + 1).all()
    assert (patient_table(rows, schema)["rows"] == levels["rows"]).all()
    stage = rows["stage"].map({"I": 0, "II": 1, "III": 2, "IV": 3}).astype(int)
    assert (stage.groupby(rows["id"]).diff().dropna() >= 0).all()
    assert (rows.groupby("id")["stage"].first().to_numpy() == levels["stage first"]).all()


def test_categories_of_a_row_go_together_and_know_the_last_row():
    """Catches a category that ignores an earlier one of its row, or the end of a history."""
    rng = np.random.default_rng(0)
    columns = [Column(name=name, kind="categorical", categories=("a", "b", "c")) for name in ("one", "two")]
    day = Column(name="day", kind="integer", lower=0, upper=9)
    schema = PatientSchema(unit="id", order="day", most=6, columns=(day, *columns))
    frame = pd.DataFrame({"id": np.repeat(np.arange(1500), 6), "day": np.tile(np.arange(6), 1500)})
    frame["one"] = rng.choice(["a", "b", "c"], len(frame))
    frame["two"] = np.where(rng.random(len(frame)) < 0.8, frame["one"], "a")
    frame.loc[frame["day"] == 5, "two"] = "c"
    model, levels = exact(frame, schema)
    rows = draw_rows(model, levels, np.random.default_rng(0))
    before, last = (rows[rows["day"].eq(5) == end] for end in (False, True))
    assert (before["one"] == before["two"]).mean() > 0.7
    assert (last["two"] == "c").mean() > 0.75
    assert likely_parents(schema, levels) == {"two": "one"}


def gaps_by_file(frame):
    """Each patient's gaps of rows of two files: in days, and whether both rows have a visit."""
    frame = frame.sort_values(["id", "day"], kind="stable")
    of = frame.assign(gap=frame.groupby("id")["day"].diff(), visit=frame["weight"].notna())
    of["pair"] = 2 * ~of.groupby("id")["visit"].shift(fill_value=False).astype(bool) + ~of["visit"]
    return of.dropna(subset=["gap"])


def test_gaps_are_counted_by_the_files_of_both_rows():
    """Catches a gap beside the wrong row's file, a patient of another weight, and rows without a gap."""
    schema = FILED.model_copy(update={"most": 20})
    frame = filed(200, seed=6)
    edges = times_of(schema).edges
    naive = np.zeros((4, len(edges) - 1))
    for _, own in gaps_by_file(frame).groupby("id"):
        if not own["gap"].mean() > 0:
            continue
        at = np.searchsorted(edges, own["gap"] / own["gap"].mean(), side="right") - 1
        counts = np.zeros_like(naive)
        np.add.at(counts, (own["pair"], np.minimum(at, len(edges) - 2)), 1)
        naive += counts / np.linalg.norm(counts)
    kinds = [table.kind for table in row_tables(schema.courses)]
    np.testing.assert_allclose(sums(frame, schema)[kinds.index("kinds")], naive, atol=2e-5)


def test_rows_of_one_file_lie_near_those_of_another():
    """Catches laboratory values that lie between visits, where each real one follows a visit at once."""
    frame = filed(1500, seed=4)[["id", "sex", "weight", "grade", "lab"]]
    frame["grade"] = frame["grade"].where(frame["weight"].notna())
    frame.loc[~frame["id"].duplicated(), ["weight", "grade"]] = [70.0, "a"]
    frame["lab"] = frame["lab"].where(frame["weight"].isna())
    frame.loc[frame["weight"].isna(), "lab"] = 50.0
    step = np.where(frame["weight"].notna(), np.random.default_rng(0).integers(30, 60, len(frame)), 1)
    frame["day"] = pd.Series(step).groupby(frame["id"]).cumsum()
    rows = draw_rows(*exact(frame, FILED), np.random.default_rng(0))
    real, made = (gaps_by_file(each).groupby("pair")["gap"].median() for each in (frame, rows))
    assert real[1] == real[3] == 1 and (made[[1, 3]] <= 2).all()
    assert (abs(made[[0, 2]] / real[[0, 2]] - 1) < 0.25).all()


@pytest.mark.parametrize(
    ("files", "groups"),
    [
        ({"p": ["sex"], "v": ["weight", "grade"], "l": ["lab"]}, [["v.csv"]]),
        ({"v": ["sex", "weight", "lab", "grade"]}, [["grade"]]),
        ({"d": ["died"], "v": ["weight", "grade"], "l": ["lab"]}, [["v.csv"], ["lab"]]),
        (
            {name[0]: [name] for name in ("weight", "lab", "grade", "a", "b")},
            [["weight"], ["lab"], ["grade"]],
        ),
    ],
)
def test_each_row_has_the_kind_of_its_first_file(files, groups):
    """Catches a kind for a file without values, a last kind without rows, and more kinds than four."""
    named = {name for columns in files.values() for name in columns}
    binary = [Column(name=name, kind="binary", categories=("n", "y")) for name in ("died", "a", "b")]
    columns = tuple(c for c in (*FILED.columns, *binary) if c.name in {*named, "day"})
    fields = {"columns": columns, "terminal": ("died",) if "died" in named else ()}
    fields["per_patient"] = ("sex",) if "sex" in named else ()
    fields["files"] = tuple(PatientFile(name=f"{name}.csv", columns=tuple(of)) for name, of in files.items())
    schema = FILED.model_copy(update=fields)
    assert times_of(schema).kind_groups == groups
