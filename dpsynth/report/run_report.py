"""The report of one run or evaluation, as one record: the promise, its cost, and the quality of the table.

:meth:`RunReport.released` keeps the entries of a list and drops the rest. So nothing that is added to a run
later gets onto a page to share by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsynth.attacks.attempt import Attempt
from dpsynth.checks import Counted, few
from dpsynth.errors import InputError
from dpsynth.evaluation.results import Evaluation
from dpsynth.files.codec import from_plain, to_plain
from dpsynth.files.storage import finite
from dpsynth.files.text import html_lines, show_figures
from dpsynth.privacy.guarantee import Guarantee
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.profile import Profile
from dpsynth.privacy.stages import Summary
from dpsynth.report.plots import Plot, plots_of
from dpsynth.report.verdicts import ORDER, Verdict, within_few
from dpsynth.report.verdicts.rules import judge, judge_attempts, judge_guarantee, judge_studies, smallest
from dpsynth.report.words import wording
from dpsynth.studies.study import MEASURES, Estimates

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: marginal distributions that stand in a notebook's summary, the worst first
_SHOWN = 4
# What was decided or published before any record was read. A description is free text and may hold anything.
# ``mostly_noise`` and ``outcome_noise`` follow from the noisy counts.
_TABLE = (
    "name",
    "synthetic_records",
    "synthetic_rows",
    "columns",
    "outcome",
    "schema_sha256",
    "n_public",
    "mostly_noise",
    "unconfirmed",
    "outcome_noise",
)
_SETTINGS = ("outcome", "level", "counted", "unconfirmed")
_CONFIG: dict[str, tuple[str, ...]] = {
    "split": ("method", "test_fraction"),
    "sample": ("n",),
    "model": (
        "generator",
        "epsilon",
        "delta",
        "steps",
        "batch_size",
        "critics",
    ),
}


#: how a printed report marks a verdict
_MARKS = {"good": "✓ Good", "caution": "! Caution", "bad": "✕ Bad", "open": "? No verdict"}
_CONFIDENTIAL = (
    "Confidential (internal): some of these numbers were computed from real {records} without noise. "
    "The method released() keeps what may be shared."
)


@dataclass(frozen=True, repr=False)
class RunReport:
    """The known facts about one synthetic table.

    Printed, it is a summary. A notebook shows plots with it, and :meth:`plot` draws each one.

    Parameters
    ----------
    ledger : Ledger, optional
        None if nothing is known of how the table was made.
    delta : float, optional
        The delta of the epsilon shown, in [0, 1). It belongs to ``ledger``.
    table : dict
        Facts: name, synthetic_records, columns, outcome, schema_sha256, n_public. ``synthetic_rows`` counts
        the rows of synthetic patients who have several. ``mostly_noise`` names columns of which noise has
        left little, and ``outcome_noise`` says that it hides the outcome's rarest class, both from released
        counts. ``unreviewed`` names columns with fields that were read off the records, if there are any.
        ``unconfirmed`` names columns whose list of categories or codes nobody confirmed.
    config : dict
        The run's configuration.
    evaluation : Evaluation, optional
        Most of its numbers are internal.
    versions : dict of str to str
        Versions of Python and of the packages that decide the result.
    seconds : dict of str to float
        Wall time of each stage, kept to milliseconds. Internal: it depends on the number of real records.
    created : str, optional
        ISO date or time of the run.
    studies : tuple of Estimates
        Private estimates of the studies that were declared before the fit, with unique names.
    attempts : tuple of Attempt
        Results of attacks beside the proved bounds. Most of them are internal.
    training : dict
        Training of a generator (:mod:`dpsynth.report.training`). It has ``planned`` and ``made`` steps,
        ``rows`` of the history, ``columns`` at the steps of ``snapshots``, ``layers`` with their bounds, and
        a ``warning`` if it learned from noise. All of it was released with the model. ``columns`` repeat
        limits and categories of the schema.

    Raises
    ------
    InputError
        If ``created`` is not an ISO date or time, only one of ``ledger`` and ``delta`` is given, or two
        studies have one name.
    """

    ledger: Ledger | None = None
    delta: float | None = None
    table: Mapping[str, object] = field(default_factory=dict)
    config: Mapping[str, object] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    created: str | None = None
    studies: tuple[Estimates, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    training: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.ledger is None) != (self.delta is None):
            raise InputError("ledger and delta belong together, and only one of them is given")
        names = [told.study for told in self.studies]
        if twice := {name for name in names if names.count(name) > 1}:
            raise InputError(f"the study {min(twice)!r} is given twice")
        # as the file has them, so that a page from memory is the page from the file
        rounded = {stage: round(value, 3) for stage, value in self.seconds.items()}
        object.__setattr__(self, "seconds", rounded)
        if self.created is not None:
            try:
                datetime.fromisoformat(self.created)
            except (TypeError, ValueError):
                raise InputError(f"created must be an ISO date, got {self.created!r}") from None

    @classmethod
    def of_evaluation(
        cls, evaluation: Evaluation, *, ledger: Ledger | None = None, studies: Sequence[Estimates] = ()
    ) -> RunReport:
        """The report of a table from its evaluation, and from what is known of how it was made.

        Parameters
        ----------
        evaluation : Evaluation
            The result of :func:`dpsynth.evaluate`.
        ledger : Ledger, optional
            The ledger of the fit, such as ``model.ledger_``. It must name a delta, as that of a fit does.
        studies : sequence of Estimates
            Private estimates of pre-specified regressions, such as ``model.estimates_``.

        Raises
        ------
        InputError
            If the ledger names no delta.

        Examples
        --------
        >>> from dpsynth.evaluation import Measure
        >>> report = RunReport.of_evaluation(Evaluation((Measure("Utility", "auc_mean", 0.81, True),)))
        >>> report.plots
        ('auc',)
        """
        if ledger is not None and ledger.delta is None:
            raise InputError("the ledger names no delta. Give the ledger of a fit")
        return cls(
            ledger,
            None if ledger is None else ledger.delta,
            table={"outcome": evaluation.settings.get("outcome")},
            evaluation=evaluation,
            studies=tuple(studies),
        )

    @property
    def counted(self) -> Counted:
        """What the records are called. If they are patients with several rows, one is a patient's levels."""
        return self.measured.counted

    def say(self, name: str, /, **values: object) -> str:
        """Return sentences of the page with the nouns of this table (`dpsynth.report.words.wording`)."""
        return str(wording(name, self.counted, **values))

    def words(self, name: str) -> Any:
        """Several sentences of the page by name, of which one is chosen."""
        return wording(name, self.counted)

    @property
    def title(self) -> str:
        """The title of the page."""
        name = self.table.get("name")
        return f"Synthetic table: {name}" if name else "Synthetic table"

    @property
    def day(self) -> str | None:
        """The day on which it was made, as ``2026-01-31``."""
        return None if self.created is None else date.isoformat(datetime.fromisoformat(self.created).date())

    @cached_property
    def measured(self) -> Evaluation:
        """The evaluation, or an empty one, of patients if those of the ledger have several rows."""
        found = self.evaluation or Evaluation(())
        if self.guarantee is None or not self.guarantee.with_all_rows:
            return found
        return replace(found, settings={**found.settings, "counted": Counted.PATIENTS})

    def fact(self, name: str) -> Any:
        """A fact about the schema: of the run, or of the evaluation. None if neither says it."""
        return self.table.get(name) or self.measured.settings.get(name, self.table.get(name))

    @property
    def undecided(self) -> tuple[str, ...]:
        """Parts that may repeat values of records, by schema or ledger (`Guarantee.may_share`)."""
        of_schema = () if self.guarantee is None else self.guarantee.of_schema
        return (
            *of_schema,
            *filter(None, (str(self.fact(name) or "") for name in ("unreviewed", "unconfirmed"))),
        )

    @cached_property
    def guarantee(self) -> Guarantee | None:
        """The promise of the ledger, computed once. None if nothing is known."""
        return None if self.ledger is None else self.ledger.guarantee(self.delta)

    @property
    def holds(self) -> bool:
        """Whether a guarantee is known, and holds."""
        return self.guarantee is not None and self.guarantee.private

    @cached_property
    def summary(self) -> Summary | None:
        """The cost of each entry of the ledger, computed once."""
        return None if self.ledger is None else self.ledger.summary(self.delta)

    @cached_property
    def profile(self) -> Profile | None:
        """The privacy profile of the ledger, which bounds every attacker. Computed once."""
        return None if self.ledger is None else self.ledger.profile()

    @cached_property
    def findings(self) -> tuple[Verdict, ...]:
        """The verdicts on the guarantee, the attacks, the studies and the evaluation, the worst first."""
        people = smallest(self.measured)
        attacked = [
            within_few(v, people if v.internal else None, self.counted)
            for v in judge_attempts(self.attempts, self.counted)
        ]
        found = [
            *judge_guarantee(self.guarantee, self.profile),
            *attacked,
            *judge_studies(self.studies, internal=bool(self.withheld)),
            *judge(self.measured, self.guarantee),
        ]
        return tuple(sorted(found, key=lambda verdict: ORDER.index(verdict.severity)))

    @property
    def plots(self) -> tuple[str, ...]:
        """Names of the plots that the report has, for :meth:`plot`."""
        return tuple(self._plots)

    def plot(self, name: str) -> Figure:
        """Draw one plot as a matplotlib figure.

        Parameters
        ----------
        name : str
            One of :attr:`plots`. The guarantee has ``costs``, ``trade_off``, ``roc_bound``, ``advantage``,
            ``privacy_profile``. Attacks have ``attempts[MEASURE]``. Pre-specified regressions have
            ``estimates[STUDY]``, ``survival[STUDY]``. An evaluation has ``auc``, ``r2``, ``roc[MODEL]``,
            ``calibration[MODEL]``, ``effects…``, ``marginal[COLUMN]``, ``associations[TABLE]``,
            ``nn_accuracy``, ``attacks``, ``distances``. If patients have several rows, it has
            ``paths[COLUMN]``, ``rows``, ``gaps``, ``lags[COLUMN]`` and ``events[COLUMN]``.

        Returns
        -------
        matplotlib.figure.Figure
            A new figure each time. Plots of real records are confidential: those of ``released()`` are not.

        Raises
        ------
        InputError
            If the report has no plot of that name. The message names those it has.
        """
        if name not in self._plots:
            raise InputError(
                f"the report has no plot {name!r}. It has: {few(self._plots, most=40) or 'none'}"
            )
        show_figures()
        return self._plots[name].figure()

    @cached_property
    def _plots(self) -> dict[str, Plot]:
        known = (self.measured, self.profile, self.summary, self.attempts, self.studies)
        return plots_of(*known, internal=bool(self.withheld))

    def plot_of(self, name: str) -> Plot:
        """One plot for a page."""
        return self._plots[name]

    def drawn(self, *kinds: str) -> tuple[Plot, ...]:
        """The plots of some kinds, such as ``roc`` for all of ``roc[MODEL]``."""
        return tuple(
            plot for kind in kinds for name, plot in self._plots.items() if name.partition("[")[0] == kind
        )

    def __repr__(self) -> str:
        """A summary: the guarantee, and what was found, the worst first."""
        lines = [self.title, *self._promised()]
        return "\n".join([*lines, *self._found, *self._closing])

    def _repr_html_(self) -> str:
        """The same for a notebook, with plots."""
        head = html_lines([self.title], "h3") + html_lines(self._promised())
        head += f"<ul>{html_lines(self._found, 'li')}</ul>"
        head += html_lines(self._closing, "strong")
        shown = [*self.drawn("costs")[:1], *self.drawn("auc", "r2"), *self.drawn("marginal")[:_SHOWN]]
        drawn = "".join(
            f'<figure style="display: inline-block; max-width: 24rem; margin: 0.5rem; vertical-align: top">'
            f'<img style="max-width: 100%" src="{plot.uri}" alt="{escape(plot.alt)}">'
            f"<figcaption>{escape(plot.caption)}{' (confidential)' if plot.internal else ''}</figcaption>"
            "</figure>"
            for plot in (*shown, *self.drawn("associations"))
        )
        return f"<div>{head}<div>{drawn}</div></div>"

    @property
    def _found(self) -> list[str]:
        return [f"{_MARKS[verdict.severity]}: {verdict.sentence}" for verdict in self.findings]

    @property
    def _closing(self) -> list[str]:
        return [self.counted.fill(_CONFIDENTIAL)] if self._internal else []

    def _promised(self) -> list[str]:
        return ["No guarantee is known." if self.guarantee is None else str(self.guarantee)]

    @property
    def _internal(self) -> bool:
        """Whether something here was computed from real records without noise."""
        found = any(verdict.internal for verdict in self.findings)
        return found or any(measure.internal for measure in self.measured.measures)

    @property
    def schema_of_records(self) -> bool:
        """Whether limits and categories of the schema may be values of real records."""
        by_ledger = self.guarantee is not None and bool(self.guarantee.of_schema)
        return by_ledger or bool(self.fact("unreviewed"))

    @property
    def exact_size(self) -> bool:
        """Whether the number of synthetic records may be that of the real ones, which nothing protects.

        A table without a guarantee has as many records as the training part, if neither the configuration nor
        the schema names a number.
        """
        if self.guarantee is None or self.guarantee.private:
            return False
        sample = self.config.get("sample")
        named = (self.table.get("n_public"), sample.get("n") if isinstance(sample, Mapping) else None)
        made = self.table.get("synthetic_records")
        return not made or made not in named

    @property
    def withheld(self) -> str:
        """Why the estimates of pre-specified regressions may not be shared. Empty if they may.

        They are covered only if a guarantee holds. Names of terms repeat categories and steps of the schema.
        They are kept back if these fields were read off the records.
        """
        if self.guarantee is None:
            return self.say("no ledger of estimates")
        if not self.guarantee.private:
            return self.say("void estimates")
        unreviewed = self.fact("unreviewed")
        named = f" ({few(unreviewed)})" if isinstance(unreviewed, list | tuple) else ""
        return self.say("unreviewed estimates", named=named) if unreviewed else ""

    def released(self) -> RunReport:
        """Return the part to share: covered by the guarantee, public, or from the synthetic table alone.

        A table without a guarantee follows from real records without noise. So do all numbers about it, and
        they are left out. Its number of records is kept if that is public.

        Pre-specified regressions are kept unless they are :attr:`withheld`. The name is kept if the schema
        gives it, or if the table is a registered one. The name of a private file is left out, as are times,
        seeds, paths and free text.

        Examples
        --------
        >>> report = RunReport(seconds={"fit": 1.5}, config={"model": {"random_state": 7}})
        >>> report.released().seconds, report.released().config
        ({}, {})
        """
        evaluation = self.evaluation
        if evaluation is not None:
            evaluation = replace(evaluation.released(), settings=_kept(evaluation.settings, _SETTINGS))
            if self.guarantee is not None and self.guarantee.of_schema:
                # They show bounds and categories, whatever schema the evaluation was given.
                evaluation = replace(evaluation, details={})
        if evaluation is not None and self.guarantee is not None and not self.guarantee.private:
            evaluation = replace(evaluation, measures=(), details={})
        table = _kept(self.table, _TABLE)
        if self.exact_size:
            table.pop("synthetic_records", None)
            table.pop("synthetic_rows", None)
        if self.measured.settings.get("unreviewed") or (self.ledger is not None and self.ledger.excluded):
            # of bounds that were read off the records: a guess can be checked
            table.pop("schema_sha256", None)
        if self.schema_of_records or not self.holds:
            for name in ("mostly_noise", "outcome_noise"):
                table.pop(name, None)
        training = self.training if self.holds else {}
        if training and self.schema_of_records:
            training = {**training, "columns": []}
        dataset = self.config.get("dataset")
        registered = {"dataset": dataset} if _is_plain(dataset) else {}
        if not registered and table.get("name") != self.table.get("schema_name"):
            table.pop("name", None)
        config = {key: _kept(self.config.get(key), names) for key, names in _CONFIG.items()}
        config = {key: values for key, values in config.items() if values}
        return replace(
            self,
            table=table,
            config=registered | config,
            evaluation=evaluation,
            seconds={},
            created=self.day,
            studies=() if self.withheld else self.studies,
            attempts=tuple(attempt for attempt in self.attempts if not attempt.internal),
            training=training,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``report.json``. An infinite epsilon is null."""
        record = {
            "guarantee": None if self.guarantee is None else str(self.guarantee),
            "private": self.guarantee is not None and self.guarantee.status == "private",
            "created": self.created,
            "release": False,  # the report holds internal numbers; the table, model and ledger may be shared
            "ledger": self.summary,
            "table": self.table,
            "studies": [to_plain(told) for told in self.studies],
            "evaluation": self.evaluation.to_dict() if self.evaluation is not None else None,
            "attempts": [attempt.to_dict() for attempt in self.attempts],
            "training": self.training,
            "config": self.config,
            "versions": self.versions,
            "seconds": self.seconds,
        }
        return {key: finite(value) for key, value in record.items()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], ledger: Ledger, evaluation: Evaluation | None) -> RunReport:
        """Build the report of a run from the record of :meth:`to_dict`, its ledger and its evaluation.

        Raises KeyError, TypeError or ValueError if something is missing or is something else.
        """
        return cls(
            ledger=ledger,
            delta=float(record["ledger"]["delta"]),
            table=dict(record["table"]),
            config=dict(record["config"]),
            evaluation=evaluation,
            versions=dict(record["versions"]),
            seconds=dict(record["seconds"]),
            created=record["created"],
            studies=tuple(_study(told) for told in record["studies"]),
            attempts=tuple(Attempt.from_dict(told) for told in record["attempts"]),
            training=dict(record.get("training", {})),
        )


def _study(record: Mapping[str, Any]) -> Estimates:
    """Read the estimates of one study. A file that somebody changed must not be drawn."""
    told = from_plain(Estimates, record)
    if told.kind not in MEASURES:
        raise ValueError(f"the study {told.study!r} is of the unknown kind {told.kind!r}")
    terms = len(told.terms)
    shapes = told.coefficients.shape == (terms,) and told.covariance.shape == (terms, terms)
    if not (shapes and np.isfinite(told.coefficients).all() and (np.diag(told.covariance) > 0).all()):
        raise ValueError(f"the study {told.study!r} lacks an estimate or a variance of one of its terms")
    return told


def _kept(record: object, names: tuple[str, ...]) -> dict[str, object]:
    """The entries of these names whose values are plain text, numbers, truth values or None."""
    if not isinstance(record, Mapping):
        return {}
    plain = str | int | float | bool | None
    return {name: record[name] for name in names if name in record and isinstance(record[name], plain)}


def _is_plain(dataset: object) -> bool:
    """Whether this is the name of a registered data set, not the path of a card."""
    return isinstance(dataset, str) and re.fullmatch(r"[\w-]+", dataset) is not None
