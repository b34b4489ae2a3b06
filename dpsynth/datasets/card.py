"""The card of a data set: what it is, where it comes from, how its file becomes a table.

Cards are the YAML files of the project's ``datasets`` folder. An installed package carries them as
``dpsynth/datasets/cards``; a checkout, or an editable installation, reads the folder itself.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from dpsynth.errors import DataError, SchemaError
from dpsynth.files.yaml_text import load_yaml, one_sentence
from dpsynth.table.schema import Schema


class Origin(BaseModel):
    """Where a data set was taken from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    citation: str
    url: str | None = None
    repository: str | None = None
    commit: str | None = None
    path: str | None = None


class Card(BaseModel):
    """A frozen data card.

    Attributes
    ----------
    name, title, description : str
    origin : Origin
        Citation, and repository, commit and path of the file the checksum is of.
    licence : str
    source : {"file", "scikit-learn"}
        A CSV file of the data folder, or a data set that scikit-learn carries.
    file : str
        Its name: a CSV file's within the data folder, or scikit-learn's ``load_<file>``.
    sha256 : str
        Of the file's bytes; for scikit-learn of the values (float64, then the int64 target, little-endian).
    bounds : str
        How the schema's bounds, categories and cells are known without reading the records.
    columns : dict of str to str
        For renamed columns, the schema's name to the file's.
    fill : dict of str to float
        A public constant that takes the place of a missing value, a column; applied record by record.
    table : Schema
        Written ``schema`` in the file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    title: str
    description: str
    origin: Origin
    licence: str
    source: Literal["file", "scikit-learn"] = "file"
    file: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bounds: str
    columns: dict[str, str] = {}
    fill: dict[str, float] = {}
    table: Schema = Field(alias="schema")

    @field_validator("table", mode="before")
    @classmethod
    def _read_schema(cls, value: Any) -> Any:
        return value if isinstance(value, Schema) else Schema.from_dict(value)

    @model_validator(mode="after")
    def _fields_fit(self) -> Card:
        for field in ("columns", "fill"):
            for name in getattr(self, field):
                if name not in self.table.names:
                    raise ValueError(f"{field} names {name!r}, which is not a column of the schema")
        if self.table.n_public is None or self.table.outcome is None:
            raise ValueError("the schema of a data card needs n_public and outcome")
        if self.table.unreviewed:
            raise ValueError(
                f"the schema of a data card must be reviewed: {', '.join(self.table.unreviewed)}"
            )
        return self

    @classmethod
    def from_yaml(cls, text: str, *, origin: str = "data card") -> Card:
        """Read a card from YAML text; raise DataError with one sentence that starts with ``origin``."""
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
    """Return the folder of the data cards: the installed copy, or else the checkout's ``datasets``.

    Raises
    ------
    DataError
        If neither is there.
    """
    installed = resources.files("dpsynth.datasets").joinpath("cards")
    if installed.is_dir():
        return installed
    checkout = Path(__file__).resolve().parents[2] / "datasets"
    if checkout.is_dir():
        return checkout
    raise DataError("the data cards are not installed: neither dpsynth/datasets/cards nor datasets is there")
