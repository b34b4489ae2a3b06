"""A table, that is a frame together with its schema, and its splits into a training and a test part.

A record is a row, or a patient with all rows if patients have several. It is in one part as a whole.
`independent_split` decides each record by itself. One record more or less in the table is therefore one more
or less in the training part. So a guarantee about the training part is one about the table. `train_test`
splits in exact numbers and in proportion to the outcome, as experiments want it. There, one record less
reshuffles the halves. A guarantee is then about the training half as it is.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, overload
from urllib.parse import quote

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from dpsynth.checks import few, file_name
from dpsynth.errors import DataError, InputError, SchemaError, of_records
from dpsynth.files.text import load_yaml, one_sentence, shipped_folder
from dpsynth.patients.reader import reader_of
from dpsynth.table.csv_format import CsvFormat
from dpsynth.table.files import read_cells
from dpsynth.table.identity import identities, warn_of_repeated_persons
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.schema import Schema, TableSchema

# ------------------------------------------------------------------------------------------------
# Make tables of one row a patient from published files that are not one already.
#
# One function a data set, named as the data set. It takes the file's cells as text (None if a value is
# absent). It returns a frame with the columns that the card names.
#
# Functions are part of what the card's unit promises. A row of the outcome depends on one patient's rows of
# the file and on nothing else. So one patient more or less in the file is at most one row more or less in
# the table. A file that does not say whose a row is, as randhie's, keeps one row a line. Its card's unit
# says that it is no person.


def require(raw: pd.DataFrame, columns: Iterable[str]) -> None:
    """Refuse a file that lacks a column, naming it."""
    for name in columns:
        if name not in raw.columns:
            raise DataError(f"the column {name!r} is absent from the file")


def text_numbers(values: pd.Series) -> pd.Series:
    """Text as numbers, NaN where a value is absent."""
    read = pd.to_numeric(values, errors="coerce")
    wrong = values[read.isna() & values.notna()]
    if len(wrong):
        raise DataError(f"column {values.name!r}, row {wrong.index[0]}: {wrong.iloc[0]!r} is not a number")
    return read


_ENCOUNTER, _PATIENT = "encounter_id", "patient_nbr"
# discharge_disposition_id of the data dictionary: expired, or to a hospice
_ENDED = ["11", "13", "14", "19", "20", "21"]
_ADMISSION = {
    "1": "emergency",
    "2": "urgent",
    "3": "elective",
    "4": "newborn",
    "7": "trauma centre",
}
_SOURCE = {"1": "referral", "2": "referral", "7": "emergency room"}
_SPECIALTY = {
    "InternalMedicine": "internal medicine",
    "Family/GeneralPractice": "general practice",
    "Surgeon": "surgery",
    "SurgicalSpecialty": "surgery",
    "?": "unknown",
    "PhysicianNotFound": "unknown",
}
# Table 2: the first three digits of ICD-9, ends included; 250 is diabetes, everything else is "other"
_GROUPS = (
    (390, 459, "circulatory"),
    (785, 785, "circulatory"),
    (460, 519, "respiratory"),
    (786, 786, "respiratory"),
    (520, 579, "digestive"),
    (787, 787, "digestive"),
    (250, 250, "diabetes"),
    (800, 999, "injury"),
    (710, 739, "musculoskeletal"),
    (580, 629, "genitourinary"),
    (788, 788, "genitourinary"),
    (140, 239, "neoplasms"),
)
# given too seldom for a column each; examide and citoglipton are in the dictionary and were given to nobody
_OTHER_DRUGS = (
    "repaglinide", "nateglinide", "chlorpropamide", "acetohexamide", "tolbutamide", "acarbose",
    "miglitol", "troglitazone", "tolazamide", "examide", "citoglipton", "glyburide-metformin",
    "glipizide-metformin", "glimepiride-pioglitazone", "metformin-rosiglitazone",
    "metformin-pioglitazone",
)  # fmt: skip
#: primary diagnoses between which the study compares what the measurement of HbA1c goes with
_COMPARED = ("diabetes", "circulatory", "respiratory")
_READ = (
    _ENCOUNTER, _PATIENT, "gender", "admission_type_id", "discharge_disposition_id",
    "admission_source_id", "medical_specialty", "diag_1", "diag_2", "diag_3", "max_glu_serum",
    "A1Cresult", "readmitted", *_OTHER_DRUGS,
)  # fmt: skip


def diabetes130(raw: pd.DataFrame) -> pd.DataFrame:
    """Diabetes in 130 hospitals of the United States, prepared as in the study that published it.

    Strack et al., "Impact of HbA1c measurement on hospital readmission rates", BioMed Research International
    2014, 781670, section 2. One row a patient, the first encounter. Encounters that ended in death or in a
    hospice are removed, since such a patient is not readmitted. Diagnoses are in the nine groups of Table 2.
    Admission, discharge and specialty have the levels that the study compares.

    Encounters are numbered in the order of time. The first encounter is chosen before its end is looked at. A
    patient's row, or its absence, therefore follows from that patient's own encounters.
    """
    require(raw, _READ)
    first = first_encounters(raw)
    kept = first[~first["discharge_disposition_id"].isin(_ENDED)]
    made = kept.copy()
    made["gender"] = kept["gender"].where(kept["gender"] != "Unknown/Invalid", None)
    made["admission_type"] = kept["admission_type_id"].map(_ADMISSION)
    made["admission_source"] = kept["admission_source_id"].map(_SOURCE).fillna("other")
    made["discharge"] = kept["discharge_disposition_id"].eq("1").map({True: "home", False: "other"})
    made["specialty"] = kept["medical_specialty"].map(_specialty)
    for name in ("diag_1", "diag_2", "diag_3"):
        made[name] = kept[name].map(diagnosis_group, na_action="ignore")
    for name in ("max_glu_serum", "A1Cresult"):  # the file's word for no test is None
        made[name] = kept[name].fillna("not measured")
    made["measured_in"] = _measured_in(made)
    other = kept[list(_OTHER_DRUGS)].isin(["Down", "Steady", "Up"]).any(axis=1)
    made["other_drug"] = other.map({True: "Yes", False: "No"})
    made["readmitted"] = kept["readmitted"].map({"<30": "yes", ">30": "no", "NO": "no"})
    return made


def first_encounters(raw: pd.DataFrame) -> pd.DataFrame:
    """Each patient's encounter with the lowest number, in the order of the file."""
    patient = pd.Series(identities(raw[_PATIENT]), raw.index)
    nobody = raw.index[(patient == "") | raw[_ENCOUNTER].isna()]
    if len(nobody):
        raise DataError(f"row {nobody[0]}: {_PATIENT} or {_ENCOUNTER} is missing, so whose row it is unknown")
    number = text_numbers(raw[_ENCOUNTER])
    if number.duplicated().any():
        raise DataError(f"the {_ENCOUNTER} {raw[_ENCOUNTER][number.duplicated()].iloc[0]} stands twice")
    return raw.loc[number.groupby(patient).idxmin().sort_values()]


def diagnosis_group(code: str) -> str | None:
    """The group of an ICD-9 code in Table 2, or None for the file's ``?``.

    Examples
    --------
    >>> [diagnosis_group(code) for code in ("428", "250.83", "V57", "276", "?")]
    ['circulatory', 'diabetes', 'other', 'other', None]
    """
    if code == "?":
        return None
    digits = code.split(".")[0]
    if not digits.isdigit():  # V and E codes
        return "other"
    return next((name for low, high, name in _GROUPS if low <= int(digits) <= high), "other")


def _measured_in(made: pd.DataFrame) -> pd.Series:
    """The primary diagnosis if HbA1c was measured (an unknown one is other), else ``not measured``."""
    diagnosis = made["diag_1"].where(made["diag_1"].isin(_COMPARED), "other")
    return diagnosis.where(made["A1Cresult"] != "not measured", "not measured")


def _specialty(word: str | None) -> str:
    if word is None:
        return "unknown"
    if word.startswith("Surgery"):
        return "surgery"
    if word.startswith("Cardiology"):
        return "cardiology"
    return _SPECIALTY.get(word, "other")


_UNITS = {"CCU": "coronary", "CSRU": "cardiac surgery", "SICU": "surgical"}
_MEASURED = (
    "GCS_lowest", "HR_median", "Temp_median", "NISysABP_lowest", "Glucose_median", "BUN_last",
    "Creatinine_last", "Na_last", "K_last", "HCO3_last", "HCT_last", "WBC_last", "Platelets_last",
    "Lactate_last",
)  # fmt: skip
# degrees Celsius and mmHg below which a value is a fault of the measurement
_LEAST = {"Temp_median": 25.0, "NISysABP_lowest": 20.0}


def physionet2012(raw: pd.DataFrame) -> pd.DataFrame:
    """PhysioNet/Computing in Cardiology Challenge 2012, set A: one row a stay, as it is in the file.

    The flags of the unit become one column, the start of a ventilation a yes or no. Values with which nobody
    is alive are taken for missing. So are negative ones: the challenge writes -1 for unknown.

    Examples
    --------
    >>> cells = dict.fromkeys((*_UNITS, *_MEASURED, "MechVentStartTime"), "0")
    >>> made = physionet2012(pd.DataFrame([cells | {"SICU": "1", "Temp_median": "17.8", "HR_median": "-1"}]))
    >>> made.loc[0, ["icu", "ventilated"]].tolist(), made[["Temp_median", "HR_median"]].count().tolist()
    (['surgical', 'yes'], [0, 0])
    """
    require(raw, (*_UNITS, *_MEASURED, "MechVentStartTime"))
    made = raw.copy()
    icu = pd.Series("medical", index=raw.index, dtype=object)
    for flag, name in _UNITS.items():
        icu[text_numbers(raw[flag]) == 1] = name
    made["icu"] = icu
    for name in _MEASURED:
        values = text_numbers(raw[name])
        made[name] = values.where(values >= _LEAST.get(name, 0.0))
    made["ventilated"] = np.where(raw["MechVentStartTime"].notna(), "yes", "no")
    return made


_HEALTH = {"hlthg": "good", "hlthf": "fair", "hlthp": "poor"}
_LOGARITHMS = ("lncoins", "lpi", "fmde")


def randhie(raw: pd.DataFrame) -> pd.DataFrame:
    """RAND Health Insurance Experiment as statsmodels ships it: logarithms become the amounts again.

    ``ln(coinsurance + 1)`` and ``ln(max(1, dollars))`` are undone and rounded to whole percent and dollars,
    where a logarithm of 0 stands for 0 dollars. The index of diseases has one decimal. The three flags of
    health become one column. A limitation that is a fraction is a mean that stands for an unknown answer, and
    is missing.

    Examples
    --------
    >>> row = dict.fromkeys((*_HEALTH, *_LOGARITHMS, "idp", "physlm", "mdvis", "disea"), 0.0)
    >>> row |= {"lncoins": 3.258096, "fmde": 8.006368, "hlthf": 1.0, "physlm": 0.1442925}
    >>> print(*randhie(pd.DataFrame([row])).loc[0, ["coinsurance", "expense_limit", "health"]])
    25 3000.0 fair
    """
    require(raw, (*_HEALTH, *_LOGARITHMS, "idp", "physlm", "mdvis", "disea"))
    known = {name: text_numbers(raw[name]) for name in raw.columns}
    health = pd.Series("excellent", index=raw.index, dtype=object)
    for flag, word in _HEALTH.items():
        health[known[flag] == 1] = word
    return pd.DataFrame(
        {
            "coinsurance": (np.exp(known["lncoins"]) - 1).round().map("{:.0f}".format),
            "deductible": np.where(known["idp"] == 1, "yes", "no"),
            "incentive": _dollars(known["lpi"]),
            "expense_limit": _dollars(known["fmde"]),
            "diseases": known["disea"].round(1),
            "health": health,
            "visits": known["mdvis"],
            "limitation": known["physlm"].map({0.0: "no", 1.0: "yes"}),
        }
    )


def _dollars(logarithm: pd.Series) -> pd.Series:
    return np.exp(logarithm).round().where(logarithm > 0, 0.0)


#: for data sets that need more than the card's renames, recodes and constants
PREPARATIONS = {function.__name__: function for function in (diabetes130, physionet2012, randhie)}


# ------------------------------------------------------------------------------------------------
# Card of a data set: what it is, where it comes from, how its file becomes a table.
#
# Cards are the YAML files of the project's ``datasets`` folder. An installed package carries them as
# ``dpsynth/datasets/cards``. A checkout, or an editable installation, reads the folder itself.

_RAW = "https://raw.githubusercontent.com"


class DataSource(BaseModel):
    """The source of a data set: a file in a public repository of GitHub, or its address ``download``.

    If that file is a zip archive, ``member`` is the data set, and ``archive_sha256`` the archive's checksum.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    citation: str
    url: str | None = None  # the data set's page, for people
    repository: str | None = None
    commit: str | None = None
    path: str | None = None
    member: str | None = None
    archive_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    download: str | None = None  # the file's address, where it is not in such a repository

    @model_validator(mode="after")
    def _one_address(self) -> DataSource:
        place = (self.repository, self.commit, self.path)
        if any(place) and not all(place):
            raise ValueError("repository, commit and path belong together")
        if self.download is not None and any(place):
            raise ValueError("give either download, or repository, commit and path")
        if (self.member is None) != (self.archive_sha256 is None):
            raise ValueError("member and archive_sha256 belong together")
        return self

    @property
    def address(self) -> str | None:
        """Address of the file, or of the archive that holds it. None if unknown.

        Examples
        --------
        >>> DataSource(citation="", repository="a/b", commit="c0ffee", path="data/x y.csv").address
        'https://raw.githubusercontent.com/a/b/c0ffee/data/x%20y.csv'
        """
        if self.repository is None:
            return self.download
        return f"{_RAW}/{self.repository}/{self.commit}/{quote(str(self.path))}"


class Card(BaseModel):
    """A frozen data card.

    Attributes
    ----------
    name, title, description : str
        The name as commands take it, then texts for people.
    origin : Origin
        Citation, and repository, commit and path of the file the checksum is of.
    licence : str
        Licence of the data.
    licence_page : str, optional
        Page on which the licence can be read, or is signed.
    credentials : bool
        Whether the file is given to persons only, who sign for it on ``licence_page``.
    source : {"file", "scikit-learn", "statsmodels"}
        A CSV file of the data folder, or the package that carries the data set.
    file : str
        Its name: a CSV file's within the data folder, scikit-learn's ``load_<file>`` or the module
        ``statsmodels.datasets.<file>``.
    sha256 : str
        Checksum of the file's bytes. For a package: of the values (float64, then scikit-learn's int64
        target), all little-endian.
    bounds : str
        How the schema's bounds, categories and cells are known without reading the records.
    one_row : str
        How many rows a patient has in the file, and how one is chosen. Why a patient adds or removes at most
        one row of the table. The schema's ``unit``, and so the ledger, has it in short.
    leaking : dict of str to str
        Columns of the file that are left out because they say the outcome or who somebody is, each with the
        reason.
    preparation : str, optional
        One of :data:`dpsynth.datasets.table.PREPARATIONS`. The fields below act on its outcome.
    columns : dict of str to str
        For renamed columns, the schema's name to the file's.
    recode : dict of str to dict
        For columns of the schema, the file's words and what takes their place (null: missing).
    required : tuple of str
        Records in which one of these is missing are left out, record by record.
    fill : dict of str to float
        A public constant that takes the place of a missing value, a column, record by record.
    table : Schema
        Written ``schema`` in the file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    title: str
    description: str
    origin: DataSource
    licence: str
    licence_page: str | None = None
    credentials: bool = False
    source: Literal["file", "scikit-learn", "statsmodels"] = "file"
    file: Annotated[str, AfterValidator(file_name)]
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bounds: str
    one_row: str
    leaking: dict[str, str] = {}
    preparation: str | None = None
    columns: dict[str, str] = {}
    recode: dict[str, dict[str, str | int | None]] = {}
    required: tuple[str, ...] = ()
    fill: dict[str, float] = {}
    table: Schema = Field(alias="schema")

    @field_validator("table", mode="before")
    @classmethod
    def _read_schema(cls, value: Any) -> Any:
        return value if isinstance(value, Schema) else Schema.from_dict(value)

    @model_validator(mode="after")
    def _fields_fit(self) -> Card:
        for field in ("columns", "recode", "required", "fill"):
            for name in getattr(self, field):
                if name not in self.table.names:
                    raise ValueError(f"{field} names {name!r}, which is not a column of the schema")
        taken = next((name for name in self.leaking if name in self.sources.values()), None)
        if taken is not None:
            raise ValueError(f"the column {taken!r} is both leaking and taken")
        if self.preparation is not None and self.preparation not in PREPARATIONS:
            known = ", ".join(PREPARATIONS)
            raise ValueError(f"preparation must be one of {known}, got {self.preparation!r}")
        if self.credentials and self.licence_page is None:
            raise ValueError("credentials need the licence_page where they are given")
        if self.table.unit is None:
            raise ValueError("the schema of a data card needs a unit: what is one row?")
        if self.table.n_public is None or self.table.outcome is None:
            raise ValueError("the schema of a data card needs n_public and outcome")
        if self.table.unreviewed:
            raise ValueError(f"the schema of a data card must be reviewed: {few(self.table.unreviewed)}")
        return self

    @property
    def sources(self) -> dict[str, str]:
        """For each column of the schema that is not computed, the column that it is taken from."""
        return {c.name: self.columns.get(c.name, c.name) for c in self.table.columns if c.derived is None}

    @classmethod
    def from_yaml(cls, text: str, *, origin: str = "data card") -> Card:
        """Read a card from YAML text, or raise DataError with one sentence that starts with ``origin``."""
        data = load_yaml(text, origin=origin, error=DataError)
        if not isinstance(data, dict):
            raise DataError(f"{origin}: a mapping is required, got {type(data).__name__}")
        try:
            return cls.model_validate(data)
        except ValidationError as problem:
            raise DataError(f"{origin}: {one_sentence(problem, tuple(cls.model_fields))}") from None
        except SchemaError as problem:
            raise DataError(f"{origin}: {problem}") from None


def cards_folder() -> Traversable:
    """Return the folder of the data cards."""
    return shipped_folder("dpsynth.datasets", "cards", "datasets")


@dataclass(frozen=True)
class PatientTable:
    """Rows of patients, several for each, with the unit's column.

    ``name`` is for messages and reports. ``card`` is None for tables that are not of the registry.
    """

    frame: pd.DataFrame
    schema: TableSchema
    name: str
    card: Card | None = None

    @property
    def outcome(self) -> str | None:
        """The schema's outcome column."""
        return self.schema.outcome

    @property
    def records(self) -> int:
        """The number of records, of patients or of rows."""
        return int(self.units.max(initial=-1)) + 1

    @property
    def units(self) -> NDArray[np.int64]:
        """The number of each row's record, from 0. Raises DataError if a row does not say whose it is."""
        return reader_of(self.schema).units(self.frame)

    @property
    def strata(self) -> NDArray[np.int64]:
        """The number of each patient's outcome, from 0: the highest category in the rows, or no value."""
        codes = category_codes(self.schema.column(str(self.outcome)), self.frame[self.outcome])
        return np.asarray(pd.Series(codes).groupby(self.units).max(), np.int64) + 1

    def identities(self) -> Iterable[str]:
        """Identifiers of the patients, as text, in the order of `units`."""
        return reader_of(self.schema).persons(self.frame)


@dataclass(frozen=True)
class Table(PatientTable):
    """A frame that fits a schema, with one row for each record.

    ``frame`` has the schema's columns, in their order, with their canonical dtypes.
    """

    schema: Schema

    @property
    def strata(self) -> NDArray[np.int64]:
        """The number of each record's outcome."""
        return pd.factorize(self.frame[self.outcome], use_na_sentinel=False)[0]

    def identities(self) -> Iterable[str]:
        """The values of each record, as text."""
        return map(repr, self.frame.astype(object).itertuples(index=False, name=None))


#: of either kind
AnyTable = TypeVar("AnyTable", bound=Table | PatientTable)


Described = TypeVar("Described", bound=TableSchema)


@overload
def open_table(
    path: str | Path,
    schema: Schema | str | Path,
    name: str | None = None,
    *,
    csv_format: CsvFormat | None = None,
    schema_file: str | Path | None = None,
) -> Table: ...


@overload
def open_table(
    path: str | Path,
    schema: TableSchema,
    name: str | None = None,
    *,
    csv_format: CsvFormat | None = None,
    schema_file: str | Path | None = None,
) -> Table | PatientTable: ...


def open_table(
    path: str | Path,
    schema: TableSchema | str | Path,
    name: str | None = None,
    *,
    csv_format: CsvFormat | None = None,
    schema_file: str | Path | None = None,
) -> Table | PatientTable:
    """Read a CSV or Parquet file of one's own and its schema (an object, or the YAML file of a Schema).

    ``csv_format`` describes how a CSV file is written, by default as the schema says. Errors name
    ``schema_file``, from which an object was read. Warns
    (OwnerWarning) if something was guessed, or a column that is not declared shows a person in several rows.
    Raises DataError or SchemaError if either cannot be read or they do not fit each other.
    """
    given = schema if isinstance(schema, TableSchema) else Schema.from_yaml(Path(schema))
    form = csv_format or given.csv
    called, known = name or given.name or Path(path).stem, given.table
    if given.several:
        return PatientTable(reader_of(given).read(path, form), given, called)
    try:
        cells, file = read_cells(path, known.columns, form)
        frame = known.check(cells, path=file)
    except DataError as problem:
        if Path(path).name in str(problem):
            raise
        other = schema_file or ("the schema" if given is schema else schema)
        raise DataError(f"{path} does not fit {other}: {problem}") from None
    # what is declared reaches the fit, which looks at it
    warn_of_repeated_persons(cells.drop(columns=[name for name in known.names if name in cells.columns]))
    return Table(frame, known, called)


def independent_split(
    table: AnyTable, test_fraction: float = 0.5, seed: int = 0
) -> tuple[AnyTable, AnyTable]:
    """Split a table by a keyed hash of each record, whatever the other records are.

    A patient with several rows goes to one part, by a hash of the patient's identifier.

    A record goes to the test part with probability ``test_fraction``, in (0, 1). ``seed`` is the key of the
    hash. Rows keep their order, with indices from 0. The public number of each part is the table's times its
    share: the number to expect, which is public where the table's is. Raises DataError if one part would be
    empty.

    Notes
    -----
    Privacy: equal records are hashed with their number, the first without, so that they part as others do.
    One record more is the last of its equals: it goes to one part, and no other record moves.

    Examples
    --------
    >>> from dpsynth import datasets
    >>> whole = datasets.load("breast_cancer")
    >>> train, test = independent_split(whole, test_fraction=0.5, seed=1)
    >>> train.schema.n_public, len(train.frame) + len(test.frame)
    (285, 569)
    """
    _check_fraction(test_fraction)
    key = f"dpsynth split {seed}".encode()
    units = table.units
    copies: Counter[str] = Counter()
    digests = []
    for record in table.identities():
        text = f"{record} {copies[record]}" if copies[record] else record
        copies[record] += 1
        digests.append(hashlib.blake2b(text.encode(), digest_size=8, key=key).digest())
    uniform = np.array([int.from_bytes(d, "big") for d in digests], dtype=np.float64) / 2.0**64
    in_test = uniform < test_fraction
    if in_test.all() or not in_test.any():
        raise _cannot_be_split(table, len(in_test), test_fraction)
    return _parts(table, in_test[units], test_fraction)


def train_test(table: AnyTable, test_fraction: float = 0.5, seed: int = 0) -> tuple[AnyTable, AnyTable]:
    """Split a table at random, each outcome value in proportion.

    ``test_fraction``, in (0, 1), is the share of the test half: ``round(test_fraction * n)`` records exactly.
    Outcome values share it by largest remainders. Without an outcome the split is a plain random one.
    ``seed`` protects nobody: a split is part of the design of an experiment. Rows keep their order, with
    indices from 0. Each half's public number follows from the table's, never from the frame. Raises DataError
    if one half would be empty.

    Notes
    -----
    The privacy guarantee of a run is about the training half as it is: two training tables that differ in one
    record.

    Examples
    --------
    >>> from dpsynth import datasets
    >>> train, test = train_test(datasets.load("breast_cancer"), test_fraction=0.5, seed=1)
    >>> train.schema.n_public, len(test.frame)
    (285, 284)
    """
    _check_fraction(test_fraction)
    units, n = table.units, table.records
    n_test = _test_size(n, test_fraction)
    if not 0 < n_test < n:
        raise _cannot_be_split(table, n, test_fraction)
    rng = np.random.default_rng(seed)
    strata = np.zeros(n, dtype=np.intp) if table.outcome is None else table.strata
    in_test = _stratified(strata, n_test, rng)
    return _parts(table, in_test[units], test_fraction)


def _cannot_be_split(table: Table | PatientTable, n: int, test_fraction: float) -> DataError:
    return of_records(
        f"a table of {n} {table.schema.protected} cannot be split with test_fraction {test_fraction!r}"
    )


def _parts(table: AnyTable, in_test: np.ndarray, test_fraction: float) -> tuple[AnyTable, AnyTable]:
    n_public = table.schema.n_public
    n_public_test = None if n_public is None else _test_size(n_public, test_fraction)
    train = _part(table, ~in_test, training_schema(table.schema, test_fraction).n_public)
    return train, _part(table, in_test, n_public_test or None)


def training_schema(schema: Described, test_fraction: float) -> Described:
    """Return the schema of a table's training part, whose public number follows from the table's."""
    if schema.n_public is None:
        return schema
    # a public number so small that a half of it is nothing says nothing
    return schema.with_n_public(schema.n_public - _test_size(schema.n_public, test_fraction) or None)


def _check_fraction(test_fraction: float) -> None:
    if not 0 < test_fraction < 1:
        raise InputError(f"test_fraction must be between 0 and 1, got {test_fraction!r}")


def _test_size(n: int, test_fraction: float) -> int:
    return round(test_fraction * n)


def _part(table: AnyTable, rows: np.ndarray, n_public: int | None) -> AnyTable:
    changes: dict[str, Any] = {"schema": table.schema.with_n_public(n_public)}
    return replace(table, frame=table.frame.loc[rows].reset_index(drop=True), **changes)


def _stratified(strata: np.ndarray, n_test: int, rng: np.random.Generator) -> np.ndarray:
    """Mark ``n_test`` rows, from each stratum in proportion (largest remainders, ties at random)."""
    sizes = np.bincount(strata)
    shares = sizes * (n_test / len(strata))
    counts = np.floor(shares).astype(int)
    order = np.lexsort((rng.random(len(sizes)), -(shares - counts)))
    counts[order[: n_test - counts.sum()]] += 1
    chosen = np.zeros(len(strata), dtype=bool)
    for stratum, count in enumerate(counts):
        chosen[rng.permutation(np.flatnonzero(strata == stratum))[:count]] = True
    return chosen
