"""Results of an evaluation: measures, and tidy frames behind them, to JSON and Markdown.

Every number says whether it is confidential (``internal``): computed from real records without noise, and
so outside the privacy guarantee of the synthetic table. Confidential numbers are for the owner of the real
records. Sharing one needs a decision of its own.

An evaluator appends rows to :class:`Findings`: measures, and rows of named frames, one frame a question, such
as ``"marginal"`` with one row a bin of a column of a table. A report reads them by ``groupby``.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from types import SimpleNamespace
from typing import Any, Literal

import pandas as pd

from dpsynth.checks import Counted, few
from dpsynth.errors import CONFIDENTIAL, InputError
from dpsynth.evaluation.estimates import Estimate
from dpsynth.files.text import html_folded, html_lines, html_table, inert, text_table

Table = Literal["synthetic", "train", "test"]
#: what a model learned from
TrainedOn = Literal["synthetic", "train"]
#: cells of a row of a frame by column: text, numbers, truth values, or None
Row = Mapping[str, Any]

#: of a saved evaluation; a file of another format is refused
_FORMAT = 2


@dataclass(frozen=True)
class Measure:
    """One number of an evaluation.

    Parameters
    ----------
    group : str
        The question it belongs to, for instance ``"Utility"``.
    name : str
        Unique within an evaluation, for instance ``"auc_mean"``.
    value : float, int or None
        None if the number is not defined. ``detail`` then says why.
    internal : bool
        Whether it was computed from real records without noise.
    detail : str
        Its meaning, in a few words.
    lower, upper : float, optional
        Both ends of its confidence interval, at the ``level`` of the evaluation's settings. ``detail`` says
        which variation the interval covers.
    n : int, optional
        The number of records that it rests on, of the table that has the fewest.
    """

    group: str
    name: str
    value: float | int | None
    internal: bool
    detail: str = ""
    lower: float | None = None
    upper: float | None = None
    n: int | None = None

    @classmethod
    def estimated(cls, group: str, name: str, estimate: Estimate, detail: str) -> Measure:
        """Return a confidential measure with its interval."""
        return cls(group, name, estimate.value, True, detail, estimate.lower, estimate.upper)

    def __post_init__(self) -> None:
        # JSON has no NaN; an undefined number is None everywhere.
        for name in ("value", "lower", "upper"):
            number = getattr(self, name)
            if isinstance(number, float) and not math.isfinite(number):
                object.__setattr__(self, name, None)
        if self.lower is None or self.upper is None:
            object.__setattr__(self, "lower", None)
            object.__setattr__(self, "upper", None)


@dataclass
class Findings:
    """What one evaluator found, to which it appends: measures, and rows of frames by the frame's name.

    Examples
    --------
    >>> found = Findings()
    >>> found.measures += [Measure("Coins", "heads", 0.5, True)]
    >>> found.frame("tosses", [{"side": "heads", "count": 5}], confidential=True)
    >>> found.details
    {'tosses': [{'side': 'heads', 'count': 5, 'confidential': True}]}
    """

    measures: list[Measure] = field(default_factory=list)
    details: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def frame(self, name: str, rows: Iterable[Row], *, confidential: bool) -> None:
        """Append rows to a frame. ``confidential`` says whether real records determine them."""
        marked = [{**row, CONFIDENTIAL: confidential} for row in rows]
        if marked:
            self.details.setdefault(name, []).extend(marked)

    def join(self, *others: Findings) -> Findings:
        """Append what others found, and return this."""
        for other in others:
            self.measures += other.measures
            for name, rows in other.details.items():
                self.details.setdefault(name, []).extend(rows)
        return self


def tidy(name: str, rows: pd.DataFrame | Iterable[Row]) -> pd.DataFrame:
    """Return a frame of a detail in the form that a saved one has again: numbers, text, None or NaN.

    A frame without marks is confidential.

    Raises
    ------
    InputError
        If a mark is not True or False: whatever is not clearly released is not.

    Examples
    --------
    >>> tidy("tosses", [{"side": "heads", "count": 5}])
        side  count  confidential
    0  heads      5          True
    """
    frame = pd.DataFrame(rows if isinstance(rows, pd.DataFrame) else [*rows])
    cells = {str(column): plain_cells(frame[column]) for column in frame.columns}
    marks = cells.setdefault(CONFIDENTIAL, [True] * len(frame))
    if not all(isinstance(mark, bool) for mark in marks):
        raise InputError(f"`{CONFIDENTIAL}` of {name!r} must be true or false in every row")
    return pd.DataFrame(cells)


def plain_cells(cells: pd.Series) -> list[Any]:
    """The cells of a column as Python values, with None for a missing one."""
    return [None if _is_missing(cell) else cell for cell in cells.tolist()]


def _is_missing(cell: object) -> bool:
    return cell is None or cell is pd.NA or (isinstance(cell, float) and math.isnan(cell))


def frame_rows(frame: pd.DataFrame) -> list[Any]:
    """The rows of a frame, with a cell as an attribute by column, and None for a missing one.

    Examples
    --------
    >>> [row.count for row in frame_rows(pd.DataFrame({"side": ["heads", "tails"], "count": [5, None]}))]
    [5.0, None]
    """
    columns = {str(name): plain_cells(frame[name]) for name in frame.columns}
    return [
        SimpleNamespace(**dict(zip(columns, cells, strict=True)))
        for cells in zip(*columns.values(), strict=True)
    ]


def any_confidential(*frames: pd.DataFrame) -> bool:
    """Whether a row of one of them was computed from real records without noise."""
    return any(bool(frame[CONFIDENTIAL].any()) for frame in frames)


#: columns of the frame of measures that hold numbers
_NUMBERS = ("value", "lower", "upper", "n")
_HEADER = ("measure", "value", "interval", "status", "what it is")


def _row(measure: Measure, shared: str = "") -> tuple[str, ...]:
    """Cells of a measure for people, the last with its meaning. ``shared`` is the status of the others."""
    status = "confidential" if measure.internal else shared
    return measure.name, shown(measure.value), shown_interval(measure), status, measure.detail


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation:
    """Measures of a synthetic table, printed as a table.

    Parameters
    ----------
    measures : tuple of Measure
        With unique names.
    settings : dict
        How it was measured: outcome, seed, limits, ``level`` of the intervals. Public.
    details : mapping of str to pandas.DataFrame
        Tidy frames by name, such as ``"marginal"`` or ``"roc"``, each with a column ``confidential``. Rows
        that an evaluator appended to :class:`Findings` are taken too. The report draws those it knows, and
        shows any other as a table.

    Examples
    --------
    >>> result = Evaluation((Measure("Utility", "auc_mean", 0.81, True, "three classifiers"),))
    >>> result["auc_mean"].value
    0.81
    >>> print(result.to_markdown())
    ### Utility
    <BLANKLINE>
    | measure | value | interval | status | what it is |
    |---|---:|---|---|---|
    | auc_mean | 0.8100 |  | confidential | three classifiers |
    <BLANKLINE>
    """

    measures: Sequence[Measure]
    settings: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "measures", tuple(self.measures))
        frames = {name: tidy(name, rows) for name, rows in self.details.items()}
        object.__setattr__(self, "details", {name: frame for name, frame in frames.items() if len(frame)})
        twice = [name for name, times in Counter(m.name for m in self.measures).items() if times > 1]
        if twice:
            raise InputError(f"the measure {min(twice)!r} is given twice")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Evaluation) and self.to_dict() == other.to_dict()

    def __getitem__(self, name: str) -> Measure:
        """Return the measure of that name. Raise KeyError naming some that are there, alike ones first."""
        for measure in self.measures:
            if measure.name == name:
                return measure
        names = [measure.name for measure in self.measures]
        alike = get_close_matches(str(name), names, n=3, cutoff=0.5)
        raise KeyError(f"no measure {name!r}. There are: {few(dict.fromkeys([*alike, *names]))}")

    @property
    def counted(self) -> Counted:
        """What the records of its tables are called."""
        return Counted(self.settings.get("counted", Counted.RECORDS))

    def __repr__(self) -> str:
        """The measures of the whole table. :meth:`to_markdown` has those of each column as well."""
        whole = [measure for measure in self.measures if not measure.name.endswith("]")]
        rows = [(measure.group, *_row(measure)[:-1]) for measure in whole]
        left = len(self.measures) - len(whole)
        more = f"\nand {left:,} measures of single columns, which to_markdown() has" if left else ""
        return text_table(("question", *_HEADER[:-1]), rows) + more

    def _repr_html_(self) -> str:
        """The measures for a notebook, each question unfolded on demand, and how to get a report."""
        groups: dict[str, list[tuple[str, ...]]] = {}
        for measure in self.measures:
            groups.setdefault(measure.group, []).append(_row(measure))
        folded = (
            html_folded(f"{group} ({len(rows):,} measures)", html_table(_HEADER, rows))
            for group, rows in groups.items()
        )
        said = [
            f"Evaluation of {len(self.measures):,} measures. dpsynth.report.RunReport.of_evaluation says "
            "what they mean, and draws them."
        ]
        if any(measure.internal for measure in self.measures):
            said.append(
                f"Confidential (internal) numbers were computed from real {self.counted} without noise."
            )
        return html_lines(said) + "".join(folded)

    def __contains__(self, name: object) -> bool:
        return any(measure.name == name for measure in self.measures)

    def released(self) -> Evaluation:
        """Return only what was computed without real records: the rows whose mark is False."""
        return Evaluation(
            tuple(measure for measure in self.measures if not measure.internal),
            self.settings,
            {name: frame[~frame[CONFIDENTIAL]] for name, frame in self.details.items()},
        )

    def groups(self, name: str, *columns: str) -> list[pd.DataFrame]:
        """Return the parts of a frame with equal cells in some columns, in order. None if there is no frame.

        Without ``columns`` there is one part, the whole frame.
        """
        frame = self.details.get(name)
        if frame is None:
            return []
        if not columns:
            return [frame]
        return [part for _, part in frame.groupby([*columns], sort=False, dropna=False)]

    def to_dataframe(self) -> pd.DataFrame:
        """Return the measures as one tidy frame, a row each, those of subgroups last.

        ``measure`` is the name before a bracket, and ``column`` what stands in it: a column, a pair of
        columns, a category or a rule. ``n`` is the number of records, where it is known. Numbers that are not
        defined are NaN.

        Examples
        --------
        >>> result = Evaluation((Measure("Similarity", "tvd[age]", 0.25, True, "distance"),))
        >>> frame = result.to_dataframe()
        >>> frame["measure"].tolist(), frame["column"].tolist(), frame["value"].tolist()
        (['tvd'], ['age'], [0.25])
        """
        rows: list[tuple[object, ...]] = []
        for measure in self.measures:
            name, bracket, rest = measure.name.partition("[")
            numbers = (measure.value, measure.lower, measure.upper, measure.n)
            column = rest[:-1] if bracket else None
            rows.append((measure.group, name, column, None, *numbers, measure.internal, measure.detail))
        rows += _of_subgroups(self)
        columns = ["group", "measure", "column", "subgroup", *_NUMBERS, CONFIDENTIAL, "meaning"]
        return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(_NUMBERS, float))

    def to_dict(self) -> dict[str, Any]:
        """Return lists, mappings, text and numbers, ready for JSON."""
        return {
            "format": _FORMAT,
            "settings": dict(self.settings),
            "measures": [asdict(measure) for measure in self.measures],
            "details": {
                name: {str(column): plain_cells(frame[column]) for column in frame.columns}
                for name, frame in self.details.items()
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """Build an evaluation from :meth:`to_dict`. Raise InputError otherwise."""
        try:
            if data.get("format", 1) != _FORMAT:
                raise TypeError("an earlier or later version of dpsynth wrote it. Evaluate the table again")
            measures = tuple(Measure(**entry) for entry in data["measures"])
            for measure in measures:
                if not isinstance(measure.internal, bool):  # whatever is not clearly released is not
                    raise TypeError(f"`internal` of {measure.name!r} must be true or false")
            return cls(
                measures,
                dict(data["settings"]),
                {name: pd.DataFrame(dict(cells)) for name, cells in data["details"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise InputError(f"this is not a saved evaluation: {problem}") from None

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_markdown(self, *, level: int = 3) -> str:
        """Return one table a group, each under a heading of ``level``."""
        lines: list[str] = []
        for group in dict.fromkeys(measure.group for measure in self.measures):
            rows = [_row(measure, "may be shared") for measure in self.measures if measure.group == group]
            lines += [f"{'#' * level} {inert(group)}", "", f"| {' | '.join(_HEADER)} |"]
            lines += ["|---|---:|---|---|---|", *(f"| {' | '.join(map(inert, row))} |" for row in rows), ""]
        return "\n".join(lines)


def _of_subgroups(evaluation: Evaluation) -> Iterator[tuple[object, ...]]:
    """Rows of the frame of measures from the frames ``"subgroups"`` and ``"subgroup_scores"``."""
    sizes: dict[tuple[str, str], int | None] = {}
    counted = evaluation.counted
    for row in (row for frame in evaluation.groups("subgroups") for row in frame_rows(frame)):
        sizes[row.column, row.subgroup] = row.records
        for part in ("synthetic", "real", "difference"):
            ends = (getattr(row, f"{part}{end}") for end in ("", "_lower", "_upper"))
            what = "synthetic minus real share" if part == "difference" else f"share of {part} {counted}"
            start = ("Subgroups", f"share_{part}", row.column, row.subgroup)
            yield (*start, *ends, None, row.confidential, what)
    for row in (row for frame in evaluation.groups("subgroup_scores") for row in frame_rows(frame)):
        what = f"{row.score} among held-out {counted}, by a model trained on the {row.trained_on} table"
        start = ("Subgroups", f"{row.score}_{row.trained_on}", row.column, row.subgroup)
        n = sizes.get((row.column, row.subgroup))
        yield (*start, row.value, row.lower, row.upper, n, row.confidential, f"{what}. {row.why}".strip(". "))


def shown(value: float | int | None) -> str:
    """Return a number as people read it: four significant digits, whole numbers with commas, n/a for None.

    Examples
    --------
    >>> shown(0.81234), shown(0.000123456), shown(12345), shown(None)
    ('0.8123', '0.0001235', '12,345', 'n/a')
    """
    if value is None:
        return "n/a"
    if isinstance(value, int):
        return f"{value:,}"
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.4g}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:,.2f}"


def shown_interval(measure: Measure) -> str:
    """Return the interval of a measure as people read it, empty if it has none."""
    if measure.lower is None or measure.upper is None:
        return ""
    return f"{shown(measure.lower)} to {shown(measure.upper)}"


def shown_with_interval(measure: Measure) -> str:
    """Return the value of a measure with its interval, if it has one, as people read it.

    Examples
    --------
    >>> shown_with_interval(Measure("Utility", "auc", 0.8, True, lower=0.75, upper=0.85))
    '0.8000 (0.7500 to 0.8500)'
    """
    interval = shown_interval(measure)
    return shown(measure.value) + (f" ({interval})" if interval else "")
