"""Private synthetic tables with scikit-learn's methods: fit, sample, save, load."""

from __future__ import annotations

import warnings
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace as replaced
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from dpsynth.checks import checked_seed, whole
from dpsynth.errors import InputError, NotFittedError, PrivacyError
from dpsynth.files import codec, storage
from dpsynth.files.text import html_lines
from dpsynth.lazy import load_tensorflow_quietly
from dpsynth.patients.schema import Patients, patients_of
from dpsynth.privacy.guarantee import WARNING, Guarantee
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.ledger_file import VARIABLE
from dpsynth.privacy.noise import secure_generator
from dpsynth.privacy.records import PartitionedRecords
from dpsynth.privacy.risk import RiskLimit
from dpsynth.progress import shown_progress, training_bar
from dpsynth.studies.study import Estimates
from dpsynth.synthesis.check_inputs import (
    alone,
    check_options,
    record_provenance,
    records_of,
    tell_cautions,
    tell_few_records,
    tell_not_private,
    warn_of_flattened,
    warn_of_noise,
    warn_of_outcome,
)
from dpsynth.synthesis.fit import FitPlan, cost_of, plan_fit, read_parts, train
from dpsynth.synthesis.many_tables import part_files, redrawn_tables, sample_parts
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.part import Part, Parts, Reading
from dpsynth.synthesis.risk import epsilon_for
from dpsynth.synthesis.sampling import Acceptance
from dpsynth.synthesis.saved_fit import SavedFit
from dpsynth.synthesis.training import CriticTrainer, Progress, Training
from dpsynth.table.derived import Where, combinations, parse_where
from dpsynth.table.drafts import check_described
from dpsynth.table.expressions import Expression
from dpsynth.table.files import memory_bytes, write_table
from dpsynth.table.frames import as_came, library_of
from dpsynth.table.schema import TableSchema, require_reviewed
from dpsynth.wgan.history import TrainingHistory

#: one of many tables in a folder
TABLE = "table-{:02d}.csv"

if TYPE_CHECKING:
    from distributed import Client

    from dpsynth.wgan.checkpoint import Interrupted

# Of a seeded sample: a user who picks rows by the same seed must not get the numbers that order them.
_SAMPLING = 0x5A3


class Synthesizer(BaseEstimator, ABC):
    """A generator of private tables: fit, sample, save and load, the same for every generator.

    A generator is a subclass with options of its own. Its constructor takes them and nothing else, as
    scikit-learn asks.

    Attributes
    ----------
    ledger_ : Ledger
        Noisy statistics and their cost. A second ``fit`` adds to it. Its ``delta`` is that of all fits.
    delta_ : float
        Delta of this fit.
    history_ : DataFrame
        A row for each generator iteration, a mean over its steps of the WGAN critic, from released quantities
        alone. ``step`` counts critic steps. ``noise_std`` is the standard deviation of the noise in the
        released gradient, ``gradient_norm`` its norm, ``noise_share`` the noise's part of the squared norm.
        ``wasserstein`` estimates the Wasserstein distance between records and generated points from the
        released gradient. ``wasserstein_error`` is the standard error by the noise, to which that of Poisson
        samples comes. Neither is there for clipped gradients and ``penalty="data"``. ``penalty`` is the
        penalty's value at public or generated points. With random WGAN critics: ``difference``, the mean
        squared difference of the gradients, 1 is what their noise explains. Empty for other generators.
    model_ : GeneratorModel
    n_ : float
        Public or privately counted number of records.
    estimates_ : tuple of Estimates
        Coefficients of the pre-specified regressions, with intervals that include sampling and noise. `study`
        finds one by its name.
    acceptance_ : Acceptance
        After sampling: number of candidates that obeyed the schema's constraints and ``where``.
    """

    #: the checked options of the generator
    options: ClassVar[type[FitOptions]]

    @classmethod
    def of(cls, options: FitOptions) -> Self:
        """The estimator with these options."""
        return cls(**options.arguments())

    @classmethod
    def for_risk(
        cls,
        schema: TableSchema,
        *,
        advantage: float | None = None,
        tpr: float | None = None,
        fpr: float | None = None,
        also: Sequence[Part[Any]] = (),
        **options: Any,
    ) -> Self:
        """The estimator with the largest epsilon that keeps all membership attacks within a bound.

        Reads the schema alone. ``fit`` must be given the same schema and ``also``.

        Parameters
        ----------
        schema : Schema or PatientSchema
            Of the training records, with their ``n_public`` if it is public.
        advantage : float
            The most by which a true positive rate may exceed the false positive rate: the total variation.
        tpr, fpr : float
            In place of it, the largest true positive rate at a false positive rate.
        also : sequence of Part
            Further parts of the fit.
        **options
            All arguments of the constructor but ``epsilon``.

        Raises
        ------
        InputError
            If not one bound is given, or it or an option is out of range.
        PrivacyError
            If the bound asks for an epsilon below 0.002, or above 25.

        Examples
        --------
        >>> from dpsynth import Column, DPMarginals, Schema
        >>> age = Column(name="age", kind="integer", lower=18, upper=90)
        >>> model = DPMarginals.for_risk(Schema(columns=(age,), n_public=1000), advantage=0.2)
        >>> model.epsilon
        1.878
        """
        risk = RiskLimit.of(advantage=advantage, tpr=tpr, fpr=fpr)
        if "epsilon" in options:
            raise InputError("give epsilon, or a risk in its place")
        given = cls.options.of(**options)
        return cls(epsilon=epsilon_for(risk, schema, given, also), **options)

    def validate(self) -> FitOptions:
        """Check the constructor's arguments, as ``fit`` does first. An error names the wrong one."""
        return self.options.of(**self.get_params(deep=False))

    def fit(
        self,
        frame: pd.DataFrame | PartitionedRecords,
        y: None = None,
        *,
        schema: TableSchema,
        ledger: Ledger | str | Path | None = None,
        accept_n_public: bool = False,
        checkpoint: str | Path | None = None,
        log_dir: str | Path | None = None,
        progress: Callable[[Progress], None] | None = None,
        also: Sequence[Part[Any]] = (),
    ) -> Self:
        """Train on a private table.

        Neighbouring datasets differ by one added or removed record: a row, or a patient with all rows, as the
        schema says. ``ledger_`` states every sensitivity.

        Parameters
        ----------
        frame : DataFrame (n, columns), or PartitionedRecords
            Private records, in pandas, polars, pyarrow or duckdb. Numeric values outside the schema's bounds
            are clipped. Records in parts may be
            larger than memory. They are counted and summed there. Critic steps hold points of them, of
            large tables in a file that has no name, in the folder ``TMPDIR``. Each file of a table in parts
            has all rows of its patients.
        y : None
            Ignored.
        schema : TableSchema
            Public description of the table. Where it says that a patient may have several rows, the guarantee
            is for a patient with all rows.
        ledger : Ledger or path, optional
            :class:`~dpsynth.privacy.Ledger` of the table, to which this fit is added, or its file. The
            cost of this fit is reserved in the file, and each statistic posted there, before anything is
            read. By default the file that the environment variable ``DPSYNTH_LEDGER`` names, else the ledger
            of this object's earlier fit, or a new one in memory. For records of nobody, such as simulated
            ones, give ``Ledger()``.
        accept_n_public : bool
            Fit although the schema's ``n_public`` is far from the number of rows.
        checkpoint : path, optional
            A new folder for a private checkpoint of the critic steps, for `resume`. It is written at their
            start, every two minutes, after an interrupt or any other failure, and after the last step. With
            random critics also when their gradients are released. Delete it when the model is saved.
        log_dir : path, optional
            Folder for ``history_`` as scalars of TensorBoard while critic steps are made.
        progress : callable, optional
            Called with a `Progress` after every chunk of critic steps. By default a bar is shown in a
            notebook or at a prompt, and nothing in a script.
        also : sequence of Part
            Further statistics to read under the same budget, such as :class:`dpsynth.Studies`.
            ``results_`` holds what each found. A part of one's own is a
            :class:`dpsynth.synthesis.parts.part.Part`.

        Returns
        -------
        self

        Raises
        ------
        InputError, DataError, SchemaError
            For a bad argument, table or schema, or a ledger's file that cannot be used. If another thread is
            fitting this object.
        PrivacyError
            If the schema holds unreviewed fields, or if epsilon is too small for the run. If all fits
            together would pass the cap of the ledger's file, or it lacks this object's earlier fit.

        Warns
        -----
        OwnerWarning
            If ``n_public`` is not near the number of rows
            (:func:`dpsynth.synthesis.check_inputs.check_rows`). If noise is large for so few records, or
            nearly flattens some columns. If a study's outcome or predictors may have a long tail.
        """
        options = self.validate()
        check_described(schema)
        unreviewed = require_reviewed(schema, options.accept_unreviewed)
        check_options(schema, options, also)
        tell_not_private(options)
        with alone(self), options.placed():
            ledger = self._ledger(ledger)
            with ledger.reserved(cost_of(schema, options), "fit in Python"):
                tell_cautions(schema, also)
                rng = self._generator(len(ledger.entries))
                records, rows = records_of(frame, schema, options, accept_n_public=accept_n_public, rng=rng)
                if checkpoint is not None and options.holds_points:
                    load_tensorflow_quietly()
                    from dpsynth.wgan.checkpoint import check_target

                    check_target(checkpoint)
                record_provenance(ledger, schema, options, rng, unreviewed)
                self.ledger_, self._library = ledger, library_of(frame)
                plan = plan_fit(records, schema, options, rng, ledger, also=also)
                self.n_, self.delta_ = plan.n, plan.parts.delta
                tell_few_records(rows, plan.parts.of(Columns), options.epsilon, schema.protected)
                with shown_progress(progress, training_bar) as tell:
                    reading = Reading(ledger, records, rng, plan.n)
                    read_parts(plan, reading)
                    self.results_ = {type(part): reading.of(type(part)) for part in also}

                    def training(model: GeneratorModel, trainer: CriticTrainer) -> Training:
                        public = self._public_generator()
                        saved = partial(self._saved, plan.parts)
                        return Training(model, trainer, public, saved, checkpoint, tell, log_dir)

                    model, history = train(plan, reading, training)
                warn_of_flattened(model.encoder.marginals)
                warn_of_outcome(model.schema, model.encoder.marginals)
                warn_of_noise(history.frame)
            return self._finish(model, history, plan.parts)

    def sample(
        self, n_samples: int, *, where: Where | None = None, random_state: int | None = None
    ) -> pd.DataFrame:
        """Draw ``n_samples`` synthetic records: post-processing, free of cost.

        Every record obeys the schema's constraints. ``acceptance_`` then gives the number of candidates.

        Parameters
        ----------
        n_samples : int
            At least 0.
        where : str, sequence of str, or mapping, optional
            Conditions that every record fulfils: rules such as ``"age >= 65"``, or a mapping. It gives for
            each column a value, a range ``(low, high)``, a list of values, or None for missing.
        random_state : int, optional
            Seed of the sampling only. By default a new one of each call follows from the ``random_state`` of
            the model, if it has one.

        Returns
        -------
        DataFrame (n_samples, columns)
            Of the library of the table that was fitted, of pandas after `load`. In the schema's order and
            dtypes (:attr:`dpsynth.table.Column.dtype`), as ``schema.conform`` gives
            them. Whole numbers are ``int64``, or ``Int64`` if a value may be missing. Text categories stay
            text, as in a file. ``pandas.Categorical(values, schema["stage"].categories, ordered=True)``
            gives an ordinal column its order.

        Raises
        ------
        InputError
            If a condition cannot be read, or the records would not fit into this computer's memory.
        RejectionError
            If a constraint or condition is nearly impossible under the model, naming it.
        """
        self._check_room(n_samples, "sample_to(path, n_samples) writes them to a file piece by piece")
        made = pd.concat(list(self._blocks(n_samples, where, random_state)), ignore_index=True)
        return as_came(made, getattr(self, "_library", "pandas"))

    def sample_many(
        self,
        m: int,
        n_samples: int | None = None,
        *,
        study: str | None = None,
        where: Where | None = None,
        random_state: int | None = None,
    ) -> list[pd.DataFrame]:
        """Draw ``m`` synthetic tables to analyse alike and combine: post-processing, free of cost.

        Without a study, each table comes from a model of its own, whose released counts are redrawn with
        another sample and other noise (:mod:`dpsynth.synthesis.many_tables`). Fit the same regression to
        each, and give estimates and squared standard errors to :func:`dpsynth.combine`. Samples of `sample`
        share one model's noise and cannot be combined. Results are valid for means, shares, and associations
        of pairs that are edges of the base model (``model_.base_model.edges``). Any other association is
        equally wrong in all tables. The edges, the bins and a generator's weights are not redrawn.

        For a study, the released model generates the predictors of each table. The outcome follows the
        study's regression with coefficients drawn from their posterior. Fitting and combining gives the
        private estimates back. Similar analyses (another scale, fewer terms) are valid as far as its
        regression is. The outcome's associations with columns that are no terms are lost. Remarks on the
        study come as a warning.

        Parameters
        ----------
        m : int
            Number of tables, at least 2. Intervals of few tables are wide, 20 or more are better.
        n_samples : int, optional
            Records of each, or patients with all rows. By default ``n_``, as many as the real table has.
        study : str, optional
            Name of a pre-specified regression.
        where, random_state
            As for `sample`. Table k is the same whatever ``m`` is.

        Returns
        -------
        list of m DataFrames, each (n_samples, columns) in the schema's dtypes

        Raises
        ------
        InputError
            If a condition cannot be read, or the study was not declared before the fit.
        RejectionError
            If a constraint or condition is nearly impossible under the model, naming it.
        """
        return list(self._tables(m, n_samples, study, where, random_state))

    def sample_many_to(
        self,
        path: str | Path,
        m: int,
        n_samples: int | None = None,
        *,
        study: str | None = None,
        where: Where | None = None,
        random_state: int | None = None,
        escape_formulas: bool = True,
        replace: bool = False,
    ) -> Path:
        """Write the tables of `sample_many` to a folder, one after the other: ``table-01.csv`` and so on.

        Parameters
        ----------
        path : path
            The folder. It appears when it is complete.
        m, n_samples, study, where, random_state
            As for `sample_many`.
        escape_formulas : bool
            See :func:`dpsynth.table.files.write_table`.
        replace : bool
            Whether an existing folder may be replaced.

        Raises
        ------
        InputError
            As `sample_many` does, or if ``path`` exists and may not be replaced.
        RejectionError
            As `sample_many` does.
        """
        tables = self._tables(m, n_samples, study, where, random_state)
        shared = self.may_share

        def fill(folder: Path) -> None:
            for number, table in enumerate(tables, start=1):
                file = folder / TABLE.format(number)
                write_table(table, file, escape_formulas=escape_formulas, shared=shared)

        return self._write_folder(path, fill, replace=replace)

    def _tables(
        self, m: int, n_samples: int | None, study: str | None, where: Where | None, seed: int | None
    ) -> Iterator[pd.DataFrame]:
        """The tables of `sample_many`, one at a time. Bad arguments are refused before the first."""
        self._check_fitted()
        whole("m", m, 2)
        n = max(round(self.n_), 1) if n_samples is None else n_samples
        self._check_room(n, "ask for fewer")
        seed = self._sampling_seed(seed)
        declared = None if study is None else self.model_.study(study)
        if declared is not None and declared.estimates.remarks:
            said = f"study {study!r}, and so these tables: {' '.join(declared.estimates.remarks)}"
            warnings.warn(said, stacklevel=3)
        conditions = self._conditions(n, where)
        record = self.acceptance_ = Acceptance()
        fit = self._plan, self.model_
        return redrawn_tables(*fit, m, n, seed, study=declared, where=conditions, record=record)

    def sample_to(
        self,
        path: str | Path,
        n_samples: int,
        *,
        where: Where | None = None,
        random_state: int | None = None,
        escape_formulas: bool = True,
        replace: bool = False,
    ) -> Path:
        """Stream ``n_samples`` synthetic records to a CSV or Parquet file in bounded memory, atomically.

        If the schema names ``files``, any other ``path`` is a folder of these files. It appears when
        it is complete, and its rows are held in memory.

        Parameters
        ----------
        path : path
            A file that ends with ``.csv`` or ``.parquet``, or a folder.
        n_samples, where, random_state
            As for `sample`.
        escape_formulas : bool
            See :func:`dpsynth.table.files.write_table`.
        replace : bool
            Whether an existing folder may be replaced. A file is always replaced.

        Raises
        ------
        InputError
            As `sample` does, or if a folder exists and may not be replaced.
        """
        patients, shared = self.patients_, self.may_share
        if patients is not None and patients.writes_folder(path):
            rows = self.sample(n_samples, where=where, random_state=random_state)
            fill = partial(patients.folder.write, rows, escape_formulas=escape_formulas, shared=shared)
            return self._write_folder(path, fill, replace=replace)
        blocks = self._blocks(n_samples, where, random_state)
        write_table(blocks, path, escape_formulas=escape_formulas, shared=shared)
        self.guarantee().write_warning(Path(f"{path}.{WARNING}"))
        return Path(path)

    def sample_to_parts(
        self,
        path: str | Path,
        n_samples: int,
        *,
        client: Client,
        partitions: int | None = None,
        where: Where | None = None,
        random_state: int | None = None,
        replace: bool = False,
    ) -> Path:
        """Draw ``n_samples`` synthetic records into a folder of Parquet files, side by side on Dask workers.

        All rows of a patient lie in one file.

        Parameters
        ----------
        path : path
            The folder, which all workers must see under this name. It appears when it is complete.
        n_samples, where, random_state
            As for `sample`. Another number of parts gives another sample.
        client : distributed.Client
            Client of the workers, see :func:`dpsynth.parallel.connected`.
        partitions : int, optional
            Number of files. By default one for each million rows, if each patient had the most rows.
        replace : bool
            Whether an existing folder may be replaced.

        Raises
        ------
        InputError
            If a condition cannot be read, or ``path`` exists and may not be replaced.
        RejectionError
            If a constraint or condition is nearly impossible under the model, naming it.
        """
        self._conditions(n_samples, where)
        seed = self._sampling_seed(random_state)
        if partitions is not None:
            whole("partitions", partitions)

        def fill(folder: Path) -> None:
            parts = part_files(int(n_samples), partitions, seed, self.model_.declared_schema.most_rows)
            shared = self.may_share
            self.acceptance_ = sample_parts(self.model_, folder, parts, client, where=where, shared=shared)

        return self._write_folder(Path(path).absolute(), fill, replace=replace)

    def _conditions(self, n_samples: int, where: Where | None) -> tuple[Expression, ...]:
        self._check_fitted()
        whole("n_samples", n_samples, 0)
        conditions = parse_where(where, self.model_.schema.columns)
        for rule in conditions:
            every = combinations(rule, self.model_.schema.columns)
            if every is not None and not rule.selected(every).any():
                raise InputError(f"condition {rule.text!r}: no declared values fulfil it")
        return conditions

    def _blocks(self, n_samples: int, where: Where | None, seed: int | None) -> Iterator[pd.DataFrame]:
        conditions = self._conditions(n_samples, where)
        self.acceptance_ = Acceptance()
        seed = self._sampling_seed(seed)
        return self.model_.blocks(
            int(n_samples),
            np.random.default_rng(None if seed is None else [_SAMPLING, seed]),
            where=conditions,
            record=self.acceptance_,
        )

    @property
    def patients_(self) -> Patients:
        """The schema of the rows where patients have several, None elsewhere."""
        self._check_fitted()
        return patients_of(self.model_.declared_schema)

    @property
    def estimates_(self) -> tuple[Estimates, ...]:
        """Private estimates of the pre-specified regressions, in their order."""
        self._check_fitted()
        return tuple(study.estimates for study in self.model_.studies)

    @property
    def training_(self) -> dict[str, Any]:
        """A training as a report shows it. Empty for a generator that makes no private steps."""
        return {}

    def study(self, name: str) -> Estimates:
        """Return the private estimates of a pre-specified regression.

        Raises
        ------
        InputError
            If no study of this name was declared before the fit.
        """
        self._check_fitted()
        return self.model_.study(name).estimates

    def save(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write the released model (JSON and arrays, no private state) to a folder, atomically."""
        self._check_fitted()
        saved = self._saved(self._parts, self.model_, self._history)
        # The seed would give the noise away.
        saved = replaced(saved, params=saved.params.model_copy(update={"random_state": None}))

        def fill(folder: Path) -> None:
            codec.write(folder, "model", saved, shared=self.may_share)

        return self._write_folder(path, fill, replace=replace)

    def _write_folder(self, path: str | Path, fill: Callable[[Path], None], *, replace: bool) -> Path:
        """Write a folder of samples or of the model: its owner's alone unless it :attr:`may_share` them."""
        guarantee = self.guarantee()

        def warned(folder: Path) -> None:
            fill(folder)
            guarantee.write_warning(folder / WARNING)

        return storage.write_folder(path, warned, replace=replace, shared=self.may_share)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a folder written by `save`, without TensorFlow. :func:`dpsynth.load` reads any generator's.

        Raises
        ------
        InputError
            If the model is of another generator.
        DataError
            If the folder holds no model, a damaged one or one of another dpsynth. If its arrays have changed
            or are not finite. If the run's ledger beside it is not its own.
        """
        return read_model(path, {cls.options.generator: cls})

    def guarantee(self) -> Guarantee:
        """Return the privacy guarantee of ``ledger_``. Printed, it is one plain sentence."""
        self._check_fitted()
        return self.ledger_.guarantee()

    @property
    def may_share(self) -> bool:
        """Whether others may read files of samples and of the model (`Guarantee.may_share`)."""
        return self.guarantee().may_share(self.model_.declared_schema)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _repr_html_inner(self) -> str:
        """Scikit-learn's diagram, after a fit with the guarantee above it."""
        return self._told() + str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle = dict(super()._repr_mimebundle_(**options))
        if "text/html" in bundle:
            bundle["text/html"] = self._told() + bundle["text/html"]
        if self.__sklearn_is_fitted__():
            bundle["text/plain"] += f"\n{self.guarantee()}"
        return bundle

    def _told(self) -> str:
        if not self.__sklearn_is_fitted__():
            return ""
        return html_lines([str(self.guarantee())])

    def _generator(self, *place: int) -> np.random.Generator:
        """Generator of noise and samples. A seed gives each place its own stream: no noise comes twice."""
        if self.random_state is None:
            return secure_generator()
        return np.random.Generator(np.random.PCG64DXSM([self.random_state, *place]))

    def _sampling_seed(self, given: int | None) -> int | None:
        """The seed of one call that samples: the caller's, or the next one of a seeded model."""
        if given is not None or self.random_state is None:
            return checked_seed(given)
        self._calls += 1
        stream = np.random.SeedSequence([_SAMPLING, self.random_state, self._calls])
        return int(stream.generate_state(1, np.uint64)[0])

    def _check_room(self, n_samples: int, instead: str) -> None:
        """Refuse more records than memory holds, at eight bytes a cell, before any is drawn."""
        self._check_fitted()
        columns = len(self.model_.declared_schema)
        needed, there = 8.0 * whole("n_samples", n_samples, 0) * columns, memory_bytes()
        if needed > there:
            raise InputError(
                f"{n_samples:,} samples of {columns} columns need {needed / 1e9:,.0f} GB of memory or more, "
                f"and this computer has {there / 1e9:,.0f} GB: {instead}"
            )

    def _public_generator(self) -> np.random.Generator:
        """Generator of the initial weights, which a released model may disclose."""
        return np.random.default_rng(None if self.random_state is None else [self.random_state])

    def _finish(self, model: GeneratorModel, history: TrainingHistory, parts: Parts) -> Self:
        self.model_, self.history_, self._parts, self._calls = model, history.frame, parts, 0
        self._history = history
        return self

    @property
    def _plan(self) -> FitPlan:
        return FitPlan(self.model_.declared_schema, self.validate(), self.n_, self._parts)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted. Call fit first")

    def _saved(
        self,
        parts: Parts,
        model: GeneratorModel,
        history: TrainingHistory,
        left: Interrupted | None = None,
    ) -> SavedFit:
        """The content of this fit's file. ``left``: its training, where that was interrupted."""
        ledger = self.ledger_
        told = str(ledger.guarantee())
        if left is not None and ledger.file is not None:
            left = replaced(left, ledger=str(ledger.file.path))
        return SavedFit(self.validate(), self.n_, self.delta_, told, ledger, history, model, parts, left)

    def _ledger(self, given: Ledger | str | Path | None) -> Ledger:
        """The ledger of a fit. One that follows on another fit of this object counts that too."""
        earlier: Ledger | None = getattr(self, "ledger_", None)
        ledger = Ledger.named(given)
        if ledger is None:
            return earlier or Ledger()
        if given is None and earlier is not None and not ledger.counts(earlier):
            raise PrivacyError(
                f"{VARIABLE} names a ledger that does not count the earlier fit of this object: give "
                "fit(ledger=) the one that does"
            )
        return ledger

    @classmethod
    def _of(cls, saved: SavedFit) -> Self:
        """Inverse of `_saved`, without the model."""
        self = cls.of(saved.params)
        self.n_, self.delta_, self.ledger_ = saved.n, saved.delta, saved.ledger
        return self


Kind = TypeVar("Kind", bound=Synthesizer)


def read_model(path: str | Path, kinds: Mapping[str, type[Kind]]) -> Kind:
    """The fitted model in a folder, of one of these generators. Errors are those of `Synthesizer.load`."""
    path = Path(path)
    saved = codec.read(path, "model", SavedFit)
    if path.name == "model":  # of a run
        storage.check_same_ledger(path.with_name("ledger.json"), path)
    generator = saved.params.generator
    if generator not in kinds:
        raise InputError(f"the model in {path} is of generator {generator}. Read it with dpsynth.load")
    return kinds[generator]._of(saved)._finish(saved.model, saved.history, saved.parts)
