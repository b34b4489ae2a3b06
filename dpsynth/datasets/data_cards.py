"""Card of a data set: what it is, where it comes from, how its file becomes a table.

Cards are the YAML files of the project's ``datasets`` folder. An installed package carries them as
``dpsynth/datasets/cards``. A checkout, or an editable installation, reads the folder itself.
"""

from __future__ import annotations

from importlib.resources.abc import Traversable
from typing import Annotated, Any, Literal
from urllib.parse import quote

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
from dpsynth.datasets.preparations import PREPARATIONS
from dpsynth.errors import DataError, SchemaError
from dpsynth.files.text import load_yaml, one_sentence, read_text, shipped_folder, stems
from dpsynth.table.schema import Schema

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
    source : {"file", "dpsynth", "scikit-learn", "statsmodels"}
        A CSV file of the data folder, or the package that carries the data set. This one carries a CSV file
        beside the card.
    file : str
        Its name: a CSV file's within its folder, scikit-learn's ``load_<file>`` or the module
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
        One of :data:`dpsynth.datasets.preparations.PREPARATIONS`. The fields below act on its outcome.
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
    source: Literal["file", "dpsynth", "scikit-learn", "statsmodels"] = "file"
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


#: data that may not be fetched by a program, with what must be signed and where
CREDENTIALED = {
    "mimic3": (
        "MIMIC-III",
        "PhysioNet Credentialed Health Data License 1.5.0",
        "https://physionet.org/content/mimiciii/1.4/",
    )
}


def names() -> tuple[str, ...]:
    """Return the names of the data sets that have a card, in alphabetical order."""
    return stems(cards_folder())


def card(name: str) -> Card:
    """Return the card of a data set: one of :func:`names`, or the path of a card of one's own (``.yaml``).

    Raises DataError if there is none, it needs credentials and has no card, or it is not a valid card.

    Examples
    --------
    >>> card("flchain").table.outcome
    'death'
    """
    if name.endswith(".yaml"):
        return Card.from_yaml(read_text(name, error=DataError), origin=name)
    if name in CREDENTIALED:
        what, licence, page = CREDENTIALED[name]
        raise DataError(credentials_needed(what, licence, page))
    if name not in names():
        raise DataError(f"there is no data set {name!r} (data sets: {', '.join(names())})")
    entry = cards_folder().joinpath(f"{name}.yaml")
    found = Card.from_yaml(entry.read_text(encoding="utf-8"), origin=f"data card {name}.yaml")
    if found.name != name:
        raise DataError(f"data card {name}.yaml: name must be {name!r}, got {found.name!r}")
    return found


def credentials_needed(what: str, licence: str, page: str | None) -> str:
    """Error for data that are given to persons only."""
    return (
        f"{what} is given only to persons who have signed for it ({licence}): apply and download it at {page}"
        ", and keep it where that licence allows"
    )
