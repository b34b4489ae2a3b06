"""Stays that last: rows of other files lie within them, no two overlap, and nothing follows a death."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from visits import WARD_HOURS, histories_of, ward_hours

from dpsynth import DPMarginals
from dpsynth.errors import SchemaError
from dpsynth.patients.courses import row_tables, small_categories
from dpsynth.patients.courses.stays import BETWEEN, SHARES, Stays
from dpsynth.patients.histories import patient_table
from dpsynth.patients.schema import PatientSchema
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.synthesis.parts.rows import VisitsRelease
from dpsynth.synthesis.rows import Trajectories, draw_rows

#: Stays by the minute that last days with decimals, and an end of follow-up.
MINUTES = """
unit: id
rows: {most: 9, order: seen, until: end}
files:
  patients.csv: [end]
  stays.csv: {lasts: stay, columns: [stay]}
  labs.csv: {item: test, value: result, within: stays.csv, columns: [k, crp]}
  deaths.csv: {within: stays.csv, columns: [died]}
columns:
- {name: seen, kind: datetime, lower: 2020-01-01, upper: 2021-12-31, step: 60}
- {name: end, kind: datetime, lower: 2020-01-01, upper: 2022-12-31, step: 60, per: patient}
- {name: stay, kind: continuous, lower: 0, upper: 40, decimals: 2}
- {name: left, kind: datetime, lower: 2020-01-01, upper: 2023-12-31, step: 60, derived: seen + stay}
- {name: k, kind: continuous, lower: 1, upper: 12, decimals: 1}
- {name: crp, kind: integer, lower: 0, upper: 500}
- {name: died, kind: binary, categories: ["no", "yes"], over_time: terminal}
"""


def by_the_minute(n: int, seed: int) -> pd.DataFrame:
    """The same patients as `ward_hours`, by the minute."""
    rows = ward_hours(n, seed)
    rows = rows[rows["call"].isna()].reset_index(drop=True)
    minutes = rows["hour"] * 60 + np.random.default_rng(seed).integers(0, 59, len(rows))
    rows["seen"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(minutes, unit="min")
    end = rows["seen"].groupby(rows["id"]).transform("max") + pd.Timedelta("3D")
    rows = rows.assign(end=end, stay=(rows["los"].astype(float) / 24).round(2), k=rows["lab"] / 10)
    rows["crp"] = rows["lab"].where(rows.index % 2 == 0)
    return rows[["id", "seen", "end", "stay", "k", "crp", "died"]].sort_values(["id", "seen"])


def drawn(frame: pd.DataFrame, schema: PatientSchema, seed: int) -> pd.DataFrame:
    """Rows for levels each of which is another patient's: no two fit each other."""
    release = VisitsRelease(noise_multiplier=None, schema=schema)
    sums = Ledger().run(release, FrameRecords(histories_of(frame, schema)), np.random.default_rng(0))
    names = [column.name for column in small_categories(schema.courses)]
    model = Trajectories.of(schema, sums, 0.0, dict(zip(names[1:], names, strict=False)), {})
    rng = np.random.default_rng(seed)
    levels = patient_table(frame, schema).apply(lambda level: level.sample(frac=1, random_state=rng).array)
    return draw_rows(model, levels, rng)


def impossible(rows: pd.DataFrame, order: str, end: pd.Series, within: pd.Series) -> dict[str, int]:
    """Rows outside the stay before them, stays that begin before another's end, and rows after a death."""
    own = rows["id"]
    stays = pd.DataFrame({"id": own, "stay begin": rows[order], "stay end": end}).dropna()
    pairs = rows[within].reset_index().merge(stays, on="id")
    inside = pairs.loc[pairs[order].between(pairs["stay begin"], pairs["stay end"]), "index"]
    stay, dead = end.notna(), rows["died"].eq("yes").groupby(own).cumsum()
    return {
        "outside": int(within.sum() - inside.nunique()),
        "overlap": int((rows[order] < end.groupby(own).ffill().groupby(own).shift())[stay].sum()),
        "after": int((dead - rows["died"].eq("yes") > 0).sum()),
        "unordered": int((rows.groupby("id")[order].diff().dropna() < 0 * rows[order].diff()[1]).sum()),
    }


NONE = {"outside": 0, "overlap": 0, "after": 0, "unordered": 0}


@pytest.mark.parametrize("seed", range(5))
def test_nothing_lies_outside_a_stay_whatever_the_levels(seed: int) -> None:
    """A value outside its patient's stays, two stays at once, and a row that follows a death."""
    frame = ward_hours(400, seed)
    # some real patients have values and no stay
    rows = drawn(frame[(frame["id"] % 7 > 0) | frame["los"].isna()], WARD_HOURS, seed)
    assert impossible(rows, "hour", rows["hour"] + rows["los"], rows["lab"].notna()) == NONE
    assert rows["hour"].between(0, 5000).all() and rows["los"].dropna().between(0, 600).all()
    assert rows["los"].notna().equals(rows["ward"].notna())
    assert (rows["died"] == "yes").sum() > 50


@pytest.mark.parametrize("seed", range(3))
def test_nothing_lies_outside_a_stay_by_the_minute(seed: int) -> None:
    """Days taken for seconds, times between two steps, and a row after the end."""
    schema = PatientSchema.from_yaml(MINUTES)
    rows = drawn(by_the_minute(400, seed), schema, seed)
    within = rows[["k", "crp"]].notna().any(axis=1) | (rows["died"] == "yes")
    assert impossible(rows, "seen", rows["left"].where(rows["stay"].notna()), within) == NONE
    assert (rows["seen"] <= rows["end"]).all()
    assert within.sum() > 500 and rows["stay"].max() > 2


@pytest.mark.parametrize("home", ["stays.csv", "labs.csv"])
def test_a_death_in_the_row_of_a_stay_or_a_value_is_the_last(home: str) -> None:
    """A stay whose row has the death, with values behind it, and half a row of a file."""
    files = []
    for file in WARD_HOURS.files:
        names = tuple(name for name in file.columns if name != "died")
        files.append(file.model_copy(update={"columns": (*names, *(("died",) if file.name == home else ()))}))
    schema = WARD_HOURS.with_fields(files=tuple(file for file in files if file.columns))
    frame = ward_hours(400, seed=1)
    own = frame["lab" if home == "labs.csv" else "los"]
    # rows behind the last one of the file would follow the death
    frame = frame[own.groupby(frame["id"]).bfill().notna()].reset_index(drop=True)
    last = ~frame.duplicated("id", keep="last")
    frame["died"] = np.where(last & (frame["id"] % 3 > 0), "yes", "no")
    rows = drawn(frame, schema, 0)
    within = rows["lab"].notna() | ((rows["died"] == "yes") & (home == "labs.csv"))
    assert impossible(rows, "hour", rows["hour"] + rows["los"], within) == NONE
    assert (rows["died"] == "yes").sum() > 20
    assert rows.loc[rows["died"] == "yes", "los" if home == "stays.csv" else "lab"].notna().all()


def test_a_stay_ends_with_a_death() -> None:
    """A stay that goes on for days after its patient's death."""
    rows = drawn(ward_hours(400, 2), WARD_HOURS, 0)
    death = rows["hour"].where(rows["died"] == "yes").groupby(rows["id"]).transform("min")
    ends = (rows["hour"] + rows["los"])[death.notna() & rows["los"].notna() & (rows["died"] == "no")]
    assert len(ends) > 100 and (ends <= death[ends.index]).all()


def test_a_rule_leaves_lengths_of_stays() -> None:
    """A stay that takes the length of another one after its rows have their places."""
    schema = WARD_HOURS.with_fields(constraints=("los <= 100 or ward = a",))
    frame = ward_hours(400, 3)
    frame.loc[frame["los"] > 100, "ward"] = "a"
    rows = drawn(frame, schema, 0)
    assert impossible(rows, "hour", rows["hour"] + rows["los"], rows["lab"].notna()) == NONE
    assert (rows["ward"][rows["los"] > 100] == "a").all() and (rows["los"] > 100).sum() > 50


def naive_tables(frame: pd.DataFrame, schema: PatientSchema) -> dict[str, np.ndarray]:
    """The tables of stays, patient by patient and row by row."""
    course = next(course for course in schema.courses if isinstance(course, Stays))
    edges = course.steps
    shapes = {table.kind: table.shape for table in course.tables({})}
    found = {kind: np.zeros(shape) for kind, shape in shapes.items()}

    def bin_of(value: float, ends: np.ndarray) -> int:
        return int(np.clip(np.searchsorted(ends, value, side="right") - 1, 0, len(ends) - 2))

    for _, own in frame.groupby("id"):
        own = own.sort_values("hour", kind="stable").head(schema.most)
        counts = {kind: np.zeros(shape) for kind, shape in shapes.items()}
        stays = [(t, n) for t, n in zip(own["hour"], own["los"], strict=True) if n == n]
        gaps = [max(b - a - n, 0) for (a, n), (b, _) in itertools.pairwise(stays)]
        mean, given = sum(gaps) / max(len(gaps), 1), len(BETWEEN) - 1
        for gap in gaps if len(gaps) > 1 and mean > 0 else []:
            counts["between"][given, bin_of(gap / mean, BETWEEN)] += 1
            given = bin_of(gap / mean, BETWEEN)
        values = [[] for _ in stays]
        place = -1
        for _, row in own.iterrows():
            place += row["los"] == row["los"]
            if row["los"] == row["los"] or row["lab"] != row["lab"] or not stays:
                continue
            # of the stay before and the next one, that which is nearer
            near = [k for k in (place, place + 1) if 0 <= k < len(stays)]
            far = [max(row["hour"] - sum(stays[k]), stays[k][0] - row["hour"], 0) for k in near]
            k = near[int(np.argmin(far))]
            values[k].append(min(max(row["hour"] - stays[k][0], 0), stays[k][1]))
        total, size = sum(n for _, n in stays), sum(map(len, values))
        for (_, n), times in zip(stays, values, strict=True):
            if n > 0 and times:
                steps = [bin_of(b - a, edges) for a, b in zip([0, *times], times, strict=False)]
                for before, step in zip([len(edges) - 1, *steps], steps, strict=False):
                    counts["place"][0, before, step] += 1
                counts["place"][1, steps[-1], bin_of(n - times[-1], edges)] += 1
            if n > 0 and size and len(stays) > 1:
                relative = n * len(stays) / total
                length = bin_of(relative, np.array([0, 0.25, 0.5, 0.8, 1.2, 2, np.inf]))
                counts["share"][length, bin_of(len(times) / (size * n / total), SHARES)] += 1
        for kind, own_counts in counts.items():
            if own_counts.any():
                found[kind] += own_counts / np.linalg.norm(own_counts)
    return found


def test_tables_are_those_counted_row_by_row() -> None:
    """A gap from the begin of a stay, a value of another stay, and patients of another weight."""
    frame = ward_hours(150, seed=4)
    frame["hour"] += np.where(frame["los"].isna(), np.random.default_rng(0).integers(-90, 90, len(frame)), 0)
    frame["hour"] = frame["hour"].clip(0, 5000)
    frame = frame[frame["died"] == "no"]
    release = VisitsRelease(noise_multiplier=None, schema=WARD_HOURS)
    sums = Ledger().run(release, FrameRecords(histories_of(frame, WARD_HOURS)), np.random.default_rng(0))
    named = dict(zip([table.kind for table in row_tables(WARD_HOURS.courses)], sums, strict=True))
    for kind, naive in naive_tables(frame, WARD_HOURS).items():
        assert naive.sum() > 20
        np.testing.assert_allclose(named[kind], naive, atol=2e-5, err_msg=kind)


def test_levels_are_the_number_of_stays_and_the_time_for_each_row() -> None:
    """Calls that count as rows of a stay, and stays of another patient."""
    frame = ward_hours(100, seed=5, most=9)
    levels = patient_table(frame, WARD_HOURS)
    stays = frame.groupby("id")["los"]
    assert levels["los rows"].tolist() == stays.count().tolist()
    rows = (frame["los"].notna() | frame["lab"].notna()).groupby(frame["id"]).sum()
    pace = (stays.sum() / rows).where(stays.count() > 0)
    np.testing.assert_allclose(levels["los pace"].to_numpy(float), pace.to_numpy(float), atol=0.1)


def test_long_stays_have_more_values_and_numbers_of_stays_are_kept() -> None:
    """Values that are spread over stays whatever these last, and stays by the share of rows alone."""
    real = ward_hours(1500, seed=6)
    schema = WARD_HOURS.with_fields(n_public=1500)
    made = DPMarginals(epsilon=20.0, random_state=0).fit(real, schema=schema).sample(1500, random_state=0)
    assert impossible(made, "hour", made["hour"] + made["los"], made["lab"].notna()) == NONE

    def found(rows: pd.DataFrame) -> tuple[float, pd.Series, float]:
        stays = rows[rows["los"].notna()]
        number = rows.index.to_series().where(rows["los"].notna()).groupby(rows["id"]).ffill()
        values = rows["lab"].notna().groupby(number).sum().reindex(stays.index)
        share = stays.groupby("id").size().value_counts(normalize=True)
        return float(stays["los"].astype(float).corr(values.astype(float))), share, stays["los"].mean()

    (r, share, los), (made_r, made_share, made_los) = found(real), found(made)
    assert made_r > 0.75 * r > 0.5
    assert (share - made_share.reindex(share.index, fill_value=0)).abs().max() < 0.05
    assert abs(made_los / los - 1) < 0.15


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "within: stays.csv, columns: [k",
            "within: deaths.csv, columns: [k",
            "'labs.csv' must be within another",
        ),
        ("lasts: stay", "lasts: k", "lasts must name one of the file's columns"),
        ("deaths.csv: {within: stays.csv", "deaths.csv: {lasts: died", "one file alone can say how long"),
        ("patients.csv: [end]", "patients.csv: {within: stays.csv, columns: [end]}", "lies within no stay"),
        ("upper: 40, decimals: 2", "upper: 40, missing: true", "which is never missing in its file"),
        ("lower: 0, upper: 40, decimals: 2", "lower: 1, upper: 40", "a number of rows from 0"),
        ("upper: 40, decimals: 2", "upper: 40, unit: hours", "in the unit of the order: days, not hours"),
        (
            "upper: 40, decimals: 2",
            "upper: 40, over_time: increasing",
            "length of stays cannot be increasing",
        ),
        ("until: end", "unique: true", "times and unique cannot stand beside lasts"),
    ],
)
def test_a_sentence_says_how_stays_are_declared(old: str, new: str, message: str) -> None:
    """A wrong declaration that is found after budget is spent, or never."""
    assert PatientSchema.from_yaml(PatientSchema.from_yaml(MINUTES).to_yaml()) == PatientSchema.from_yaml(
        MINUTES
    )
    plain = "\n".join(line for line in MINUTES.splitlines() if "name: left" not in line)
    assert old in plain
    with pytest.raises(SchemaError, match=message):
        PatientSchema.from_yaml(plain.replace(old, new))


def test_files_of_stays_are_written_and_read_again(tmp_path: Path) -> None:
    """A synthetic folder that the schema cannot read, or reads otherwise."""
    rows = drawn(ward_hours(200, 7), WARD_HOURS, 0)
    WARD_HOURS.folder.write(rows, tmp_path)
    again = WARD_HOURS.read(tmp_path)
    assert len(again) <= len(rows) and again["los"].sum() == rows["los"].sum()
    assert (
        again["lab"].sum() == rows["lab"].sum()
        and (again["died"] == "yes").sum() == (rows["died"] == "yes").sum()
    )
