"""Fits of patients with several rows: what is asked, posted, saved and refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import beside, dp_marginals
from dask_workers import threads
from visits import VISITS, WARDS, visits, wards

import dpsynth
from dpsynth.errors import DataError, InputError, PrivacyError, RejectionError
from dpsynth.files.codec import apart
from dpsynth.marginals.statistics import EdgesRelease
from dpsynth.privacy.gaussian_loss import analytic_sigma
from dpsynth.privacy.records import PartitionedRecords
from dpsynth.privacy.release import GaussianRelease
from dpsynth.studies.study import Study
from dpsynth.synthesis.many_tables import draw_part, part_files, redraw
from dpsynth.synthesis.study_forecast import study_draws
from dpsynth.table.parquet import ParquetTable

FRAME = visits(300, seed=4)


@pytest.fixture(scope="module")
def model():
    studies = ["linear: weight ~ sex + day", "logistic: sex ~ rows"]
    return dpsynth.DPMarginals(epsilon=3.0, delta=1e-5).fit(
        FRAME, schema=VISITS.model_copy(update={"n_public": 300}), also=[dpsynth.Studies(studies)]
    )


@pytest.mark.slow
def test_regressions_of_rows_and_of_levels(model, tmp_path):
    """Catches a regression of rows that is posted as one of records, and estimates that a file changes."""
    rows, levels = model.estimates_
    assert rows.terms == ("sex: M vs F", "day (per 10)") and levels.terms == ("rows",)
    assert (
        rows.remarks[0].startswith("One patient with all rows counts once")
        and levels.remarks[:1] != rows.remarks[:1]
    )
    said = {entry.name: entry.sensitivity for entry in model.ledger_.entries if "study" in entry.name}
    assert said["score of study weight"].startswith("1 (one patient with all rows: the mean of each row's")
    assert said["information of study weight"].startswith("1 (one patient with all rows: the mean of")
    assert said["score of study sex"].startswith("1 (a patient's whitened score")
    model.save(tmp_path / "model")
    assert [str(each) for each in dpsynth.load(tmp_path / "model").estimates_] == [str(rows), str(levels)]


def test_rows_without_rules_stand_for_those_that_cannot_obey_them(model, monkeypatch):
    """Catches a fit that fails when its budget is spent, since synthetic rows break a rule."""
    monkeypatch.setattr("dpsynth.synthesis.study_forecast.DRAWS", 50)
    fitted, rule = model.model_, {"constraints": ("weight > 199.9",)}
    schema = fitted.trajectories.schema.model_copy(update=rule)
    strict = replace(fitted, trajectories=replace(fitted.trajectories, schema=schema))
    with pytest.raises(RejectionError):
        strict.sample(50, np.random.default_rng(0))
    assert study_draws(strict, np.random.default_rng(0), rows=True)["id"].nunique() == 50


def test_the_expected_width_is_known_for_rows_too(model):
    """Catches a width from a budget without the tables of rows."""
    schema = VISITS.model_copy(update={"n_public": 300})
    studies = dpsynth.Studies(["linear: weight ~ sex + day", "logistic: sex ~ rows"])
    found = studies.expected_widening(schema, model)
    assert found.keys() == {"weight", "sex"} and 1.0 < found["weight"] < 3.0


def test_the_guarantee_is_of_a_patient_with_all_rows(model):
    """Catches a ledger that speaks of rows, a release that is not posted, and a cost above the target."""
    told = str(model.guarantee())
    assert "adding or removing one patient with all rows (id, at most 6 rows are used)" in told
    assert model.ledger_.unit == VISITS.levels.unit and "record" not in told
    assert "tables of rows" in [entry.name for entry in model.ledger_.entries]
    assert 2.95 < model.ledger_.profile().epsilon(1e-5) <= 3.0


def test_tables_of_rows_have_their_share(model):
    """Catches noise of another share than was asked, far from the Gaussian limit."""
    entry = next(entry for entry in model.ledger_.entries if entry.name == "tables of rows")
    expected = analytic_sigma(3.0, 1e-5) / np.sqrt(0.3)
    assert entry.event.noise_multiplier == pytest.approx(expected, rel=0.1)


def test_samples_are_patients(model, tmp_path):
    """Catches samples of rows, identifiers that repeat, and a model that differs after it is saved."""
    sample = model.sample(40, random_state=0)
    assert sample["id"].nunique() == 40 and list(sample.columns) == ["id", *VISITS.names]
    assert sample.groupby("id").size().max() <= VISITS.most
    assert len(sample[["id", "sex"]].drop_duplicates()) == 40
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(dpsynth.load(tmp_path / "model").sample(40, random_state=0), sample)


@pytest.mark.slow
def test_a_private_number_counts_patients():
    """Catches a noisy count of rows."""
    found = dpsynth.DPMarginals(epsilon=50.0, delta=1e-5).fit(FRAME, schema=VISITS)
    assert found.n_ == pytest.approx(300, abs=15)


@pytest.mark.slow
def test_an_evaluation_compares_patients(model):
    """Catches measures of rows."""
    found = dpsynth.evaluate(
        model.sample(200, random_state=0),
        train=FRAME,
        schema=VISITS,
        seed=0,
        reference=False,
        declared=model.estimates_,
    )
    assert found.settings["effects"] == ["logistic: sex ~ rows"]  # no rows among the levels
    assert found["train_records"].value == 300 and found["synthetic_records"].value == 200


@pytest.mark.parametrize(
    ("options", "frame", "error", "message"),
    [
        (
            {"studies": ["sex ~ rows"], "share": 0.6, "shares": {"visits": 0.5}},
            FRAME,
            InputError,
            "leave something for the generator, got 1.1 in all",
        ),
        ({"studies": ["cox: (day, sex) ~ lab"]}, FRAME, InputError, "a cox model has one row per patient"),
        ({"studies": ["weight ~ lab mean"]}, FRAME, InputError, "'lab mean' is not a column"),
        ({}, FRAME.drop(columns="id"), DataError, "lacks the column 'id'"),
        ({}, FRAME[FRAME["id"] < 100], DataError, "100 patients"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_anything_is_spent(options, frame, error, message):
    """Catches budget that is spent on a fit that must fail."""
    also = beside(options.pop("studies", ()), options.pop("share", 0.3))
    model = dp_marginals(epsilon=1.0, **options)
    with pytest.raises(error, match=message):
        model.fit(frame, schema=VISITS.model_copy(update={"n_public": 300}), also=also)
    assert not hasattr(model, "ledger_")


@pytest.mark.slow
def test_limits_read_off_the_rows_are_refused():
    """Catches a column whose limits nobody has reviewed, and levels or an evaluation that hide that."""
    lab = VISITS.column("lab").model_copy(update={"unreviewed": ("lower", "upper")})
    columns = tuple(lab if column.name == "lab" else column for column in VISITS.columns)
    model = dpsynth.DPMarginals(epsilon=1.0)
    with pytest.raises(PrivacyError, match=r"lab \(lower, upper\)"):
        model.fit(FRAME, schema=VISITS.model_copy(update={"columns": columns, "n_public": 300}))
    schema = VISITS.model_copy(update={"columns": columns})
    assert {name.split()[0] for name in schema.levels.unreviewed} == {"lab"}
    found = dpsynth.evaluate(FRAME, train=FRAME, schema=schema, seed=0, reference=False)
    assert (
        found.measures
        and found.details
        and found.released() == dpsynth.evaluation.Evaluation((), found.settings)
    )


def test_a_number_of_rows_read_off_the_rows_is_refused():
    """Catches a draft's largest number of rows, or choice of columns per patient, without review."""
    schema = VISITS.model_copy(update={"rows_unreviewed": ("most", "per"), "n_public": 300})
    with pytest.raises(PrivacyError, match=r"rows \(most, per\)"):
        dpsynth.DPMarginals(epsilon=1.0).fit(FRAME, schema=schema)


def test_what_a_draft_has_chosen_is_excluded():
    """Catches a list of ignored columns, chosen in view of the rows, of which the ledger says nothing."""
    fields = {"rows_unreviewed": ("most",), "ignored": ("mrn",), "n_public": 300}
    model = dp_marginals(epsilon=1.0, pairwise_statistics=False, accept_unreviewed=True)
    model.fit(FRAME.assign(mrn=1), schema=VISITS.model_copy(update=fields))
    (reason,) = model.ledger_.excluded
    assert "rows: most" in reason and "ignored" in reason


@pytest.mark.slow
def test_tables_to_combine_are_of_patients(model):
    """Catches tables of levels, and rows of every table from one model's noise."""
    tables = model.sample_many(3, 40, random_state=1)
    assert all(list(table.columns) == ["id", *VISITS.names] for table in tables)
    assert [table["id"].nunique() for table in tables] == [40, 40, 40]
    pd.testing.assert_frame_equal(tables[0], model.sample_many(2, 40, random_state=1)[0])
    again = redraw(model._plan, model.model_, np.random.default_rng(0)).trajectories
    assert again.noise_std == model.model_.trajectories.noise_std > 0
    pairs = zip(again.tables, model.model_.trajectories.tables, strict=True)
    assert np.mean([np.allclose(new, old) for new, old in pairs]) < 0.5


def test_patients_of_several_files_have_different_numbers(model, tmp_path):
    """Catches two patients with one number, who would be one patient to a reader of all files."""
    for part in part_files(50, 3, 0):
        draw_part(part, model.model_, tmp_path, None, shared=True)
    found = [pd.read_parquet(path)["id"] for path in sorted(tmp_path.glob("*.parquet"))]
    assert len(found) == 3 and sorted(set(pd.concat(found))) == list(range(1, 51))


def test_patients_of_several_blocks_have_different_numbers(model):
    """Catches the numbers of the first block again in the second: two patients would be one."""
    blocks = model.model_.blocks(23, np.random.default_rng(0), block=9, before=100)
    ids = [block["id"].drop_duplicates() for block in blocks]
    assert [len(own) for own in ids] == [7, 8, 8] and pd.concat(ids).tolist() == list(range(101, 124))


def test_a_sample_in_parts_is_a_table_of_patients_in_parts(model, tmp_path):
    """Catches a patient who lies in two files, or a sample that a fit in parts cannot read."""
    with threads() as client:
        folder = model.sample_to_parts(tmp_path / "s", 50, partitions=4, client=client, random_state=0)
        table = ParquetTable(folder)
        assert len(table.files) == 4 and PartitionedRecords(table, VISITS, client).check() == 50
    assert len(list(part_files(500_000, None, 0, VISITS.most))) == 3  # a million rows each, at most


def test_a_condition_says_whether_a_study_is_of_rows():
    """Catches a subgroup of rows that is looked for among the levels, or one of patients among the rows."""
    of_rows = {
        "weight ~ sex where lab > 3": True,
        "sex ~ 1 where lab > 3": True,
        "sex ~ rows where rows > 2": False,
        "sex ~ rows": False,
    }
    for model, rows in of_rows.items():
        study = Study(model=model)
        assert (study.clusters(VISITS) is not None) == rows
        study.effects(VISITS)
    with pytest.raises(InputError, match="study 'sex': condition 'labb > 3': 'labb' is not a column"):
        Study(model="sex ~ 1 where labb > 3").effects(VISITS)


@pytest.mark.slow
def test_studies_of_patients_are_read_from_levels():
    """Catches a study that takes rows for patients, and samples of rows in place of levels."""
    model, studies = dpsynth.DPMarginals(epsilon=20.0, delta=1e-5), dpsynth.Studies(["sex ~ rows"])
    schema = VISITS.model_copy(update={"n_public": 300})
    assert 1 < studies.expected_widening(schema, model)["sex"] < 1.1
    assert model.fit(FRAME, schema=schema, also=[studies]).study("sex").terms == ("rows",)
    assert model.sample_many(2, 30, study="sex", random_state=0)[0]["id"].nunique() == 30


def test_a_model_is_made_of_noisy_numbers_alone(monkeypatch):
    """Catches links between categories, a number of patients or a scale that are read off the rows.

    Every noisy number is made up, so that two tables give one model.
    """
    drawn = np.random.default_rng(0).random(10_000)

    def made_up(release, records, rng):
        shapes = [array.shape for array in release.query(records)]
        return [160 * np.resize(drawn, shape) if shape else np.array(160.0) for shape in shapes]

    scores = EdgesRelease.scores
    monkeypatch.setattr(GaussianRelease, "measure", made_up)
    monkeypatch.setattr(EdgesRelease, "scores", lambda self, records: np.zeros_like(scores(self, records)))
    monkeypatch.setattr("dpsynth.synthesis.parts.rows._PATIENTS", 500)
    one, other = wards(150, seed=1), wards(170, seed=2)
    other["stage"] = other["ward"].map({"a": 1, "b": 2, "c": 3})
    found = []
    for frame in (one, other):
        model = dp_marginals(epsilon=3.0, delta=1e-5, pairwise_statistics=False, random_state=0)
        record, arrays = apart(model.fit(frame, schema=WARDS).model_)
        found.append((model.n_, record, {name: array.tobytes() for name, array in arrays.items()}))
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.usefixtures("projected", "undrawn")
def test_the_shell_takes_a_folder_of_files_and_gives_one(tmp_path, capsys):
    """Catches a file that is not written, patients who are lost, or a folder of somebody that is replaced."""
    from dpsynth.cli import main

    fields = VISITS.model_copy(update={"n_public": 300}).to_dict()
    for column in fields["columns"]:
        column |= {"missing": True} if column["name"] == "weight" else {}
    long = {"item": "test", "value": "result", "columns": ["lab", "weight"]}
    fields["files"] = {"patients.csv": ["sex"], "visits.parquet": ["grade"], "labs.csv": long}
    schema = dpsynth.PatientSchema.from_dict(fields)
    schema.to_yaml(tmp_path / "visits.yaml")
    real, made, model = (tmp_path / name for name in ("real", "made", "model"))
    real.mkdir()
    schema.folder.write(FRAME, real)
    described = ["--schema", str(tmp_path / "visits.yaml")]
    assert main(["fit", "--data", str(real), *described, "--epsilon", "3", "--out", str(model)]) == 0
    sampling = ["sample", str(model), "-n", "200", "--out", str(made)]
    assert main(sampling) == 0
    assert sorted(path.name for path in made.iterdir()) == ["labs.csv", "patients.csv", "visits.parquet"]
    rows = schema.read(made)
    assert 190 < rows["id"].nunique() <= 200
    asked = ["evaluate", "--synthetic", str(made), "--train", str(real), *described]
    assert main([*asked, "--out", str(tmp_path / "evaluation")]) == 0
    assert main(sampling) == 2 and "add --force" in capsys.readouterr().err
    assert main([*sampling, "--force"]) == 0
    (made / "labs.csv").rename(made / "thesis.csv")
    (made / "patients.csv").unlink()
    assert main([*sampling, "--force"]) == 2 and (made / "thesis.csv").is_file()


@pytest.mark.slow
def test_dates_order_synthetic_rows():
    """Catches dates beyond the bounds, rows out of order, and an evaluation that stops at dates."""
    start = pd.Timestamp("2010-01-01")
    frame = FRAME.assign(day=start + pd.to_timedelta(FRAME["day"], unit="D"), born=start)
    day = dpsynth.Column(name="day", kind="date", lower="2010-01-01", upper="2011-01-01", cycles=("weekday",))
    born = dpsynth.Column(name="born", kind="date", lower="1910-01-01", upper="2010-12-31")
    left = dpsynth.Column(
        name="left", kind="date", lower="2010-01-01", upper="2011-12-31", derived="day + lab", missing=True
    )
    changes = {
        "columns": (day, born, left, *VISITS.columns[1:]),
        "per_patient": ("sex", "born"),
        "constraints": ("born <= day", "left >= day"),
    }
    schema = VISITS.model_copy(update=changes)
    sample = dpsynth.DPMarginals(epsilon=3.0, delta=1e-5).fit(frame, schema=schema).sample(200)
    assert sample["day"].between("2010-01-01", "2011-01-01").all()
    assert sample.groupby("id")["day"].apply(lambda own: own.is_monotonic_increasing).all()
    assert sample["day"].nunique() > 50 and len(sample[["id", "born"]].drop_duplicates()) == 200
    given = sample[sample["lab"].notna()]
    assert ((given["left"] - given["day"]).dt.days == given["lab"]).all() and (
        sample["born"] <= sample["day"]
    ).all()
    found = dpsynth.evaluate(sample, train=frame, schema=schema, seed=0, reference=False)
    assert found["synthetic_records"].value == 200
    gaps = sample.sort_values(["id", "day"]).groupby("id")["day"].diff().dt.days.dropna()
    assert found["return_30_days_synthetic"].value == pytest.approx((gaps <= 30).mean(), abs=0.1)
    assert "in days" in found["gap_p50_synthetic"].detail


@pytest.mark.parametrize("kind", [dpsynth.DPWGANGP, dpsynth.DPCriticMatching])
def test_generators_of_single_rows_refuse_patients_with_several(kind):
    """Catches a critic that sees levels of patients and leaves out their rows."""
    model = kind(epsilon=1.0)
    with pytest.raises(InputError, match=r"takes one row per patient.*generator marginals"):
        model.fit(FRAME, schema=VISITS)
    assert not hasattr(model, "ledger_")
