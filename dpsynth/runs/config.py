"""A run, written down: which table, how it is split, which model, how much is sampled and measured.

A configuration is frozen and validated as a whole before anything runs, and is saved as YAML beside what it
made. Every mistake is one sentence that names the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    SerializeAsAny,
    StrictStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails

from dpsynth.errors import ConfigError, InputError
from dpsynth.evaluation.settings import Settings
from dpsynth.files.codec import OptionGroup
from dpsynth.files.storage import write_text
from dpsynth.files.text import dump_yaml, one_sentence, read_yaml, shipped_folder, stems
from dpsynth.privacy.risk import RiskLimit
from dpsynth.studies.study import Study, read_studies
from dpsynth.synthesis.generators import DEFAULT, estimator
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.studies import Studies

#: arguments of an estimator that are other keys of a configuration
ELSEWHERE = {
    "studies": "studies beside model",
    "accept_unreviewed": "data.accept_unreviewed",
    "statistics": "no statistics: rules choose them",
}


def _no_zero_byte(path: str) -> str:
    if "\0" in path:
        raise ValueError("it must not hold a zero byte")
    return path


#: path of a file as people write it
FilePath = Annotated[str, Field(min_length=1), AfterValidator(_no_zero_byte)]


class DataConfig(OptionGroup):
    """A table of one's own: a CSV or Parquet file and the YAML file of its schema (written ``schema``).

    Relative paths are taken from the configuration's folder. With ``accept_unreviewed`` the run goes on
    although bounds or categories were read off the records, and the ledger says so.
    """

    # the YAML key is `schema`, a name that pydantic's models have taken; only that spelling is accepted
    path: FilePath
    schema_path: FilePath = Field(alias="schema")
    accept_unreviewed: bool = False

    def located(self, folder: str | Path) -> DataConfig:
        """Return the same files with absolute paths, relative ones taken from ``folder``."""
        paths = {
            name: str((Path(folder) / getattr(self, name)).resolve()) for name in ("path", "schema_path")
        }
        return self.model_copy(update=paths)


class SplitConfig(OptionGroup):
    """The test part: records that the model never sees.

    ``independent`` decides each record by itself. The guarantee is then about the whole table.
    ``stratified`` splits in exact numbers and in proportion to the outcome, for experiments. The guarantee is
    then about the training part as it is, and the ledger says so.
    """

    method: Literal["independent", "stratified"] = "independent"

    test_fraction: float = Field(default=0.5, gt=0, lt=1)
    seed: int = Field(default=0, ge=0)


class SampleConfig(OptionGroup):
    """Number of records to generate. The default is the public number of the training table.

    ``license`` is that under which the table is shared, best as an address. It is written to
    ``croissant.json``.
    """

    n: int | None = Field(default=None, ge=1)
    license: StrictStr | None = None


class EvaluateConfig(Settings):
    """The evaluation's :class:`~dpsynth.evaluation.settings.Settings`, and whether there is one."""

    enabled: bool = True


class AttackConfig(OptionGroup):
    """Whether the synthetic table is attacked for the report. ``dpsynth attack`` does so at length.

    By default it is attacked if it is evaluated.
    """

    enabled: bool | None = None


def _one_line(text: str) -> str:
    """Return a text with single blanks, or raise ValueError if it is not one printable line."""
    text = " ".join(text.split())
    if not 0 < len(text) <= 200 or not text.isprintable():
        raise ValueError("it must be 1 to 200 printable characters")
    return text


Line = Annotated[StrictStr, AfterValidator(_one_line)]


class RunConfig(OptionGroup):
    """A whole run.

    ``dataset`` is the name of a data set with a card, or the path of a card of one's own. This or ``data`` is
    required. ``studies`` are regressions that part of the budget estimates, each a text or a mapping with the
    keys of :class:`~dpsynth.studies.study.Study`. ``studies_share`` is that part, of mu^2. ``ledger`` is the
    file of the data set's ledger, by default that of the environment variable ``DPSYNTH_LEDGER``, else one
    beside the run's folder. ``owner`` of the real records and ``contact`` for readers are published with the
    table. ``model`` has the ``generator`` (marginals by default) and the options of its estimator.
    ``risk`` is what epsilon was chosen for. A run that allows more is refused.
    ``model.epsilon``, the whole budget, must be written: ``null`` asks for a run without privacy, and every
    output then says so. A wrong key raises ConfigError.

    Examples
    --------
    >>> config = RunConfig.from_dict({"dataset": "flchain", "model": {"epsilon": 3, "delta": 1e-5}})
    >>> config.split.test_fraction, config.model.epsilon
    (0.5, 3.0)
    >>> RunConfig.from_dict({"dataset": "flchain", "model": {"epsilon": -1}})
    Traceback (most recent call last):
    dpsynth.errors.ConfigError: model.epsilon must be greater than 0, got -1
    """

    description: str | None = None
    dataset: FilePath | None = None
    data: DataConfig | None = None
    split: SplitConfig = SplitConfig()
    model: SerializeAsAny[FitOptions]
    risk: RiskLimit | None = None
    studies: tuple[Study, ...] = ()
    studies_share: float = Field(default=0.3, gt=0, lt=1)
    ledger: FilePath | None = None
    sample: SampleConfig = SampleConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    attack: AttackConfig = AttackConfig()
    owner: Line | None = None
    contact: Line | None = None

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as problem:
            raise ConfigError(one_sentence(problem, tuple(type(self).model_fields))) from None

    @field_validator("model", mode="before")
    @classmethod
    def _model(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        options = dict(given)
        try:
            kind = estimator(options.pop("generator", DEFAULT), options).options
        except InputError as problem:
            raise ValueError(str(problem)) from None
        for name in options.keys() & ELSEWHERE.keys():
            raise ValueError(f"{name} is not a known key. Write {ELSEWHERE[name]}")
        checked = kind.model_validate(options)
        if "epsilon" not in options:
            missing = InitErrorDetails(type="missing", loc=("epsilon",), input=options)
            raise ValidationError.from_exception_data("model", [missing])
        return checked

    @field_validator("studies", mode="before")
    @classmethod
    def _studies(cls, given: Any) -> Any:
        return read_studies(given)

    @model_validator(mode="after")
    def _one_table(self) -> RunConfig:
        if (self.dataset is None) == (self.data is None):
            said = "neither is" if self.dataset is None else "both are"
            raise ValueError(f"one of dataset and data is required, and {said} given")
        return self

    @model_validator(mode="after")
    def _studies_have_a_model(self) -> RunConfig:
        if self.studies and not self.model.associates:
            raise ValueError(
                f"studies need generator marginals, and model.generator is {self.model.generator}"
            )
        return self

    @property
    def accept_unreviewed(self) -> bool:
        """Whether the run goes on with fields that were read off the data. Cards of data sets have none."""
        return self.data is not None and self.data.accept_unreviewed

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the generator's estimator, some of which are keys beside ``model``."""
        return {**self.model.arguments(), "accept_unreviewed": self.accept_unreviewed}

    @property
    def also(self) -> tuple[Studies, ...]:
        """The parts that the fit reads beside those of the generator."""
        return (Studies(self.studies, share=self.studies_share),) if self.studies else ()

    def published(self) -> dict[str, str]:
        """Return what ``ledger.json``, and so the page to share, say of the owner."""
        told = {"data_owner": self.owner, "contact": self.contact}
        return {name: value for name, value in told.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return every key with its value, defaults written out, keys without a value left out."""
        # not exclude_none, which would also drop an option that is set to null
        dumped = self.model_dump(mode="json", by_alias=True)
        plain = {
            key: _without_none(value) if isinstance(value, dict) else value
            for key, value in _without_none(dumped).items()
        }
        # Left out, an epsilon of null would be a missing one.
        model = {name: value for name, value in plain["model"].items() if name not in ELSEWHERE}
        plain["model"] = {"generator": self.model.generator, "epsilon": self.model.epsilon, **model}
        del plain["studies"], plain["studies_share"]
        if self.studies:
            plain["studies_share"] = self.studies_share
            plain["studies"] = [study.to_dict() for study in self.studies]
        return plain

    @property
    def attacked(self) -> bool:
        """Whether the synthetic table is attacked for the report."""
        return self.evaluate.enabled if self.attack.enabled is None else self.attack.enabled

    def of_fit(self) -> dict[str, Any]:
        """Return the keys of :meth:`to_dict` that a fit depends on."""
        return keys_of_fit(self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunConfig:
        """Build a configuration from nested mappings, or raise ConfigError with one sentence."""
        if not isinstance(data, Mapping) or not all(isinstance(key, str) for key in data):
            raise ConfigError(f"a mapping of keys is required, got {data!r:.80}")
        if "columns" in data:
            raise ConfigError(
                "this is a schema, not a run's configuration, which names one under data: schema"
            )
        return cls(**data)

    def to_yaml(self, path: str | Path | None = None) -> str:
        """Return the configuration as YAML text, and write it to ``path`` if one is given."""
        text = dump_yaml(self.to_dict())
        if path is not None:
            write_text(path, text, shared=True)
        return text

    @classmethod
    def from_yaml(cls, path: str | Path) -> RunConfig:
        """Read a YAML file, or a configuration of the package by its name, such as ``support2``.

        The message of a ConfigError starts with what was given.
        """
        if Path(path).exists():
            return read_yaml(path, cls.from_dict, error=ConfigError).located(Path(path).parent)
        folder = shipped_folder("dpsynth.runs", "configs", "configs")
        if str(path) not in stems(folder):
            known = ", ".join(stems(folder))
            raise ConfigError(f"{path}: no such file or configuration of the package ({known})")
        with resources.as_file(folder.joinpath(f"{path}.yaml")) as shipped:
            return read_yaml(shipped, cls.from_dict, error=ConfigError)

    def located(self, folder: str | Path) -> RunConfig:
        """Return the configuration with its paths absolute, relative ones taken from ``folder``.

        The copy saved beside a run's results still names the same files.
        """
        if self.ledger is not None:
            self = self.model_copy(update={"ledger": str((Path(folder) / self.ledger).resolve())})
        if self.data is None:
            named = str(self.dataset)
            own = named.endswith(".yaml")  # the path of a card
            return self.model_copy(
                update={"dataset": str((Path(folder) / named).resolve()) if own else named}
            )
        return self.model_copy(update={"data": self.data.located(folder)})


def keys_of_fit(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a saved configuration that a fit depends on."""
    # none of which changes one
    about = ("ledger", "risk", "evaluate", "sample", "attack", "description", "owner", "contact")
    return {key: value for key, value in record.items() if key not in about}


def _without_none(section: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if value is not None}
