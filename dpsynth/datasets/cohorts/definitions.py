"""Three studies of Pedersen (2022) on MIMIC-III: who is in, when predictors are known, and what is predicted.

Section 3.4 names three publications and the sizes of their tables (Table 3.2). Some steps were not published
and are ours: see ``docs/how-to/mimic-cohorts.md``.

References
----------
Anand R. S. et al. (2018). Predicting mortality in diabetic ICU patients using machine learning and severity
indices. AMIA Joint Summits on Translational Science 2017, 310-319.

Celi L. A. G. et al. (2011). A clinical
database-driven approach to decision support: predicting mortality among patients with acute kidney injury.
Journal of Healthcare Engineering 2(1), 97-110.

Fernandes M. P. B. et al. (2014). Multimodeling for the
prediction of patient readmissions in intensive care units. FUZZ-IEEE, 1837-1842.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from dpsynth.errors import InputError
from dpsynth.table.schema import Schema

#: the package's folder of SQL, definitions and schemas
RESOURCES: Traversable = files("dpsynth.datasets.cohorts")


@dataclass(frozen=True)
class Criterion:
    """A condition that a stay must meet, as people and as SQL read it.

    ``condition`` is a Boolean SQL expression over the table ``stay``. ``on`` is a table that must be loaded
    first (``diagnosis``, ``laboratory``), or nothing.
    """

    label: str
    condition: str
    on: str = ""


@dataclass(frozen=True)
class CohortStudy:
    """A study: its stays, its two times and its query.

    ``schemas/NAME.yaml`` is its schema, ``sql/NAME.sql`` (with underscores) its query. ``window_start`` and
    ``prediction_time`` are SQL expressions over a stay: predictors are measured between the two, both ends
    included. ``steps`` say who is kept, in order. Each patient's first eligible stay is then taken.
    """

    name: str
    title: str
    source: str
    window_start: str
    prediction_time: str
    steps: tuple[Criterion, ...]
    scripts: tuple[str, ...]  # SQL scripts that are run on the cohort, in order

    @property
    def schema(self) -> Schema:
        """The public schema of the cohort."""
        text = (RESOURCES / "schemas" / f"{self.name}.yaml").read_text(encoding="utf-8")
        return Schema.from_yaml(text)

    @property
    def query(self) -> str:
        """Query of the cohort's table. Its first column is the stay."""
        return sql(self.name.replace("-", "_"))


def sql(name: str) -> str:
    """Read a script of the folder ``sql``."""
    return (RESOURCES / "sql" / f"{name}.sql").read_text(encoding="utf-8")


_ADULT = Criterion("18 years or older", "age >= 18")
_A_DAY = Criterion(
    "alive and in the unit 24 hours after admission to it",
    "outtime >= prediction_time AND (deathtime IS NULL OR deathtime > prediction_time)",
)
_LEFT_ALIVE = Criterion(
    "left the unit alive after 24 hours or more",
    "outtime >= intime + INTERVAL 24 HOUR AND NOT (hospital_expire_flag = 1 "
    "AND coalesce(least(deathtime, dischtime), outtime) <= outtime)",
)


def _coded(condition: str, label: str) -> Criterion:
    return Criterion(
        label,
        "EXISTS (FROM diagnosis d WHERE d.hadm_id = stay.hadm_id AND d.use = 'study' "
        f"AND d.condition = '{condition}')",
        on="diagnosis",
    )


_SCORES = (
    "chart", "measurements", "coma", "urine", "support", "vasopressors", "oxygenation", "admission_kind",
    "comorbidity", "scores", "people",
)  # fmt: skip

STUDIES = {
    study.name: study
    for study in (
        CohortStudy(
            name="diabetes-mortality",
            title="Death in hospital of patients with diabetes in intensive care",
            source="Anand et al. 2018",
            window_start="intime",
            prediction_time="intime + INTERVAL 24 HOUR",
            steps=(
                _ADULT,
                _A_DAY,
                _coded("diabetes", "diabetes mellitus coded (ICD-9-CM 250)"),
                Criterion(
                    "haemoglobin A1c measured in the 90 days before the unit or the first 24 hours there",
                    "EXISTS (FROM laboratory l WHERE l.icustay_id = stay.icustay_id "
                    "AND l.concept = 'haemoglobin_a1c')",
                    on="laboratory",
                ),
            ),
            scripts=_SCORES,
        ),
        CohortStudy(
            name="aki-mortality",
            title="Death in hospital of patients with acute kidney injury in intensive care",
            source="Celi et al. 2011",
            window_start="intime",
            prediction_time="intime + INTERVAL 24 HOUR",
            steps=(
                _ADULT,
                _A_DAY,
                _coded("acute_kidney_injury", "acute kidney failure coded (ICD-9-CM 584)"),
            ),
            scripts=(*_SCORES, "kdigo"),
        ),
        CohortStudy(
            name="icu-readmission",
            title="Return to intensive care within 30 days",
            source="Fernandes et al. 2014",
            window_start="outtime - INTERVAL 24 HOUR",
            prediction_time="outtime",
            steps=(_ADULT, _LEFT_ALIVE),
            scripts=("chart", "measurements"),
        ),
    )
}


def find_study(name: str) -> CohortStudy:
    """Return the study of that name.

    Examples
    --------
    >>> find_study("aki-mortality").schema.outcome
    'died'
    >>> find_study("sepsis")
    Traceback (most recent call last):
    dpsynth.errors.InputError: --study 'sepsis' is none of diabetes-mortality, aki-mortality, icu-readmission
    """
    if name not in STUDIES:
        raise InputError(f"--study {name!r} is none of {', '.join(STUDIES)}")
    return STUDIES[name]
