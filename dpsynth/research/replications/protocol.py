"""A study as written down before it is run: data, split, generators, classifiers, regressions.

A protocol is public. It names a data set or a cohort, a paper's findings in it, and the synthetic tables to
compare. It is frozen, checked as a whole before a record is read, and saved beside the results.

The protocols that come with the package, by name, and those of one's own, by path.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from dpsynth.datasets.table import Table
from dpsynth.errors import ConfigError, InputError, SchemaError
from dpsynth.evaluation.models import CLASSIFIERS
from dpsynth.files.codec import OptionGroup, listed
from dpsynth.files.text import dump_yaml, one_sentence, read_yaml, shipped_folder, stems
from dpsynth.studies.study import Study, read_studies
from dpsynth.synthesis.marginals import MarginalsOptions
from dpsynth.table.schema import Column, Schema

Texts = Annotated[tuple[str, ...], BeforeValidator(listed)]


class Reported(OptionGroup):
    """A number as a paper prints it. ``lower`` and ``upper`` are its 95 % interval, if any."""

    value: float
    lower: float | None = None
    upper: float | None = None
    #: table, figure or section of the paper
    where: str = Field(min_length=1)


class Finding(OptionGroup):
    """A conclusion of the paper that rests on one term of one regression.

    Parameters
    ----------
    text : str
        The conclusion in one sentence.
    study, term : str
        The pre-specified regression's name and the term as it prints it.
    effect : {"above", "below", "none"}
        The paper's conclusion: the interval lies above or below no effect (1 of a ratio, 0 of a difference),
        or no effect is shown.
    reported : Reported, optional
        On the scale of the regression's measure, for the units declared.
    """

    text: str = Field(min_length=1)
    study: str
    term: str
    effect: Literal["above", "below", "none"]
    reported: Reported | None = None


class ReportedAuc(Reported):
    """An area under the ROC curve as the paper prints it, and of which model."""

    model: str = Field(min_length=1)


class Baseline(OptionGroup):
    """HealthGAN, which adds no noise: NOT PRIVATE.

    ``training_steps`` counts the critic's. Pedersen (2022) has a million of them.
    """

    training_steps: int = Field(default=100_000, ge=1)


class Coverage(OptionGroup):
    """How often intervals cover the effect in all records, over resamples of them with replacement."""

    repetitions: int = Field(ge=2)


class Protocol(OptionGroup):
    """A whole study.

    Parameters
    ----------
    question : str
        The paper's question, in a sentence.
    dataset : str, optional
        A data set with a card. This or ``cohort`` is required.
    cohort : str, optional
        A study of :data:`dpsynth.datasets.cohorts.definitions.STUDIES`, whose table is made from MIMIC-III's
        files.
    columns : tuple of Column
        Derived columns that the regressions need beside the table's own: an interaction, a group.
    test_fraction : float
        Part of the records that is held out, in (0, 1), stratified by the outcome.
    seeds : int
        Number of splits, with a fit of everything in each.
    epsilons : tuple of float
        Epsilon of one fit, each.
    model : MarginalsOptions
        Options of a private generator. Their ``epsilon`` is not used.
    restarts : int
        Fits of each generator on one split, of which one is selected.
    sets : int
        Synthetic tables drawn from each fit.
    classifiers : tuple of str
        Names in :data:`dpsynth.evaluation.models.CLASSIFIERS`.
    studies : tuple of Study
        Regressions, specified before each private fit.

    Raises
    ------
    ConfigError
        If a key is unknown, absent, of the wrong type or out of range, naming it.
    """

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: str = Field(min_length=1)
    citation: str = Field(min_length=1)
    question: str = Field(min_length=1)
    dataset: str | None = None
    cohort: str | None = None
    columns: tuple[Column, ...] = ()
    test_fraction: float = Field(default=0.5, gt=0, lt=1)
    seeds: int = Field(default=5, ge=1)
    epsilons: Annotated[tuple[Annotated[float, Field(gt=0)], ...], BeforeValidator(listed)] = (1.0, 3.0, 10.0)
    model: MarginalsOptions = MarginalsOptions()
    restarts: int = Field(default=1, ge=1)
    sets: int = Field(default=1, ge=1)
    baseline: Baseline | None = None
    classifiers: Texts = ("logistic_regression", "hist_gradient_boosting", "random_forest")
    studies: tuple[Study, ...] = ()
    findings: Annotated[tuple[Finding, ...], BeforeValidator(listed)] = ()
    aucs: Annotated[tuple[ReportedAuc, ...], BeforeValidator(listed)] = ()
    coverage: Coverage | None = None

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as problem:
            raise ConfigError(one_sentence(problem, tuple(type(self).model_fields))) from None

    @field_validator("columns", mode="before")
    @classmethod
    def _columns(cls, given: Any) -> Any:
        if not isinstance(given, list | tuple) or not all(isinstance(c, dict | Column) for c in given):
            raise ValueError("a list of columns, each a mapping of fields, is required")
        columns = tuple(c if isinstance(c, Column) else Column(**c) for c in given)
        own = next((column.name for column in columns if column.derived is None), None)
        if own is not None:
            raise ValueError(f"{own!r} has no formula. A study adds derived columns only")
        return columns

    @field_validator("studies", mode="before")
    @classmethod
    def _studies(cls, given: Any) -> Any:
        return read_studies(given)

    @field_validator("epsilons")
    @classmethod
    def _are_different(cls, epsilons: tuple[float, ...]) -> tuple[float, ...]:
        if not epsilons or len(set(epsilons)) < len(epsilons):
            raise ValueError(f"at least one value, and none twice, is needed, got {list(epsilons)}")
        return epsilons

    @field_validator("classifiers")
    @classmethod
    def _are_known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in names if name not in CLASSIFIERS]
        if unknown or not names:
            raise ValueError(f"choose from {', '.join(CLASSIFIERS)}, got {', '.join(unknown) or 'none'}")
        return names

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.dataset is None) == (self.cohort is None):
            said = "neither is" if self.dataset is None else "both are"
            raise ValueError(f"one of dataset and cohort is required, and {said} given")
        labels = [study.label for study in self.studies]
        for finding in self.findings:
            if finding.study not in labels:
                known = ", ".join(labels) or "none"
                raise ValueError(f"findings name the study {finding.study!r}, which is none of {known}")
        if self.coverage is not None and not self.studies:
            raise ValueError("coverage needs studies, whose intervals it counts")
        return self

    def check(self, schema: Schema) -> None:
        """Raise ConfigError if columns, regressions or findings do not fit the table's schema, as card or
        cohort has it."""
        from dpsynth.studies.model import model_terms

        if schema.outcome is None:
            raise ConfigError(f"study {self.name!r}: the table has no outcome")
        schema = self.wider(schema)
        try:
            terms = {
                study.label: [term.name for term in model_terms(schema, study.effects(schema))]
                for study in self.studies
            }
        except InputError as problem:
            raise ConfigError(str(problem)) from None
        for finding in self.findings:
            if finding.term not in terms[finding.study]:
                known = ", ".join(terms[finding.study])
                raise ConfigError(
                    f"findings: {finding.term!r} is no term of {finding.study!r} (terms: {known})"
                )

    @property
    def records(self) -> str:
        """Its records, in words."""
        return f"data set {self.dataset}" if self.dataset is not None else f"MIMIC-III, cohort {self.cohort}"

    def changed(
        self,
        *,
        seeds: int | None = None,
        epsilons: Sequence[float] | None = None,
        coverage: int | None = None,
        baseline_steps: int | None = None,
    ) -> Protocol:
        """Return the protocol with these values in place of its own. 0 leaves coverage or HealthGAN out."""
        plain = self.to_dict()
        if seeds is not None:
            plain["seeds"] = seeds
        if epsilons:
            plain["epsilons"] = list(epsilons)
        if coverage is not None:
            plain["coverage"] = {"repetitions": coverage} if coverage else None
        if baseline_steps is not None:
            plain["baseline"] = {"training_steps": baseline_steps} if baseline_steps else None
        return Protocol.from_dict(plain)

    def wider(self, schema: Schema) -> Schema:
        """Return the table's schema with the study's own columns at its end. Those that it has stay."""
        new = tuple(column for column in self.columns if column not in schema.columns)
        fields = {field: getattr(schema, field) for field in type(schema).model_fields}
        try:
            return Schema(**{**fields, "columns": (*schema.columns, *new)}) if new else schema
        except SchemaError as problem:
            raise ConfigError(f"study {self.name!r}: {problem}") from None

    def table(self, table: Table) -> Table:
        """Return the table with the study's own columns, computed."""
        schema = self.wider(table.schema)
        if schema is table.schema:
            return table
        return Table(schema.check(table.frame), schema, table.name, table.card)

    def to_dict(self) -> dict[str, Any]:
        """Return every key that was given a value or has a default that is one."""
        plain = self.model_dump(mode="json", exclude_none=True)
        plain["model"] = self.model.model_dump(mode="json", exclude_defaults=True)
        plain["columns"] = [c.model_dump(mode="json", exclude_defaults=True) for c in self.columns]
        plain["studies"] = [study.to_dict() for study in self.studies]
        return plain

    def to_yaml(self) -> str:
        """Return the protocol as YAML text."""
        return dump_yaml(self.to_dict())

    @classmethod
    def from_dict(cls, data: Any) -> Protocol:
        """Build a protocol from nested mappings, or raise ConfigError with one sentence."""
        if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
            raise ConfigError(f"a mapping of keys is required, got {data!r:.80}")
        return cls(**data)


def protocol_names() -> tuple[str, ...]:
    """Return the names of the protocols that come with the package, in alphabetical order."""
    return stems(_folder())


def find_protocol(name: str) -> Protocol:
    """Return a protocol by its name, or from a YAML file of one's own.

    Raises
    ------
    ConfigError
        If there is none of that name, or the file is not a protocol. The message starts with the file's name.
    """
    if name.endswith(".yaml"):
        return read_yaml(name, Protocol.from_dict, error=ConfigError)
    if name not in protocol_names():
        raise ConfigError(f"there is no study {name!r} (studies: {', '.join(protocol_names())})")
    with resources.as_file(_folder().joinpath(f"{name}.yaml")) as path:
        return read_yaml(path, Protocol.from_dict, error=ConfigError)


def _folder() -> Traversable:
    return shipped_folder("dpsynth.research.replications", "protocols", "configs/studies")
