"""The section and the drawings of patients with several rows."""

from __future__ import annotations

import report_sources as sources

from dpsynth.evaluation.results import Evaluation, Findings, Measure
from dpsynth.report.plots import OVER_TIME, plots_of_frames
from dpsynth.report.quality import over_time_section
from dpsynth.report.run_report import RunReport

GROUP = "Patients over time"


def details(*names: str) -> Evaluation:
    found = Findings()
    sources.patient_details(found, names, sources.Numbers())
    return Evaluation((), {}, found.details)


def test_paths_of_both_tables_have_one_scale():
    """Catches panels with scales of their own, in which a narrow table looks as wide as the real one."""
    found = plots_of_frames(details("day", "hdl"), *OVER_TIME)
    assert set(found) == {
        "paths[day]",
        "paths[hdl]",
        "rows",
        "gaps",
        "lags[day]",
        "lags[hdl]",
        "events[day]",
        "events[hdl]",
    }
    plot = found["paths[hdl]"]
    real, synthetic = plot.figure().axes
    assert (real.get_title(), synthetic.get_title()) == ("3 real patients", "3 synthetic patients")
    assert (real.get_xlim(), real.get_ylim()) == (synthetic.get_xlim(), synthetic.get_ylim())
    assert plot.internal and "<i>mg</i>" in real.get_ylabel()


def test_what_is_shared_draws_synthetic_patients_alone():
    """Catches a real patient in a plot that is not marked, and a scale that real patients set."""
    evaluation = details(*sources.HOSTILE[:4])
    for plot in plots_of_frames(evaluation, *OVER_TIME).values():
        assert plot.internal and "real" in plot.alt
    for name, plot in plots_of_frames(evaluation.released(), *OVER_TIME).items():
        assert not plot.internal and "real" not in plot.alt
        (axis,) = plot.figure().axes
        assert axis.lines or axis.patches, name


def test_a_table_has_a_line_for_each_number():
    """Catches a difference beside the wrong number, and a number without its reason."""
    of = ((False, "synthetic"), (True, "train"), (True, "difference"))
    lag = [
        Measure(GROUP, f"lag1_{side}[a_train]", place + 0.5, internal, f"correlation, {side}")
        for place, (internal, side) in enumerate(of)
    ]
    why = "mean, train: not defined, as it does not vary"
    mean = [
        Measure(GROUP, "rows_mean_synthetic", 2.0, False, "mean, synthetic"),
        Measure(GROUP, "rows_mean_train", None, True, why),
    ]
    section = over_time_section(RunReport(evaluation=Evaluation((*lag, *mean))))
    (grid,) = (block for block in section.blocks if block.kind == "grid")
    assert grid.header == ("what it is", "real", "synthetic", "difference", "name")
    told = [[cell.text for cell in row] for row in grid.rows]
    assert told[0] == ["a_train: correlation", "1.5000", "0.5000", "2.5000", "lag1[a_train]"]
    assert told[1] == [why, "n/a", "2.0000", "", "rows_mean"]
    assert [cell.internal for cell in grid.rows[0]] == [False, True, False, True, False]
    assert grid.rows[1][0].internal
    released = over_time_section(RunReport(evaluation=Evaluation((*lag, *mean)).released()))
    (grid,) = (block for block in released.blocks if block.kind == "grid")
    assert grid.header == ("what it is", "synthetic", "name") and len(grid.rows) == 2


def test_one_row_a_patient_has_no_section():
    """Catches an empty section on every other page."""
    assert over_time_section(RunReport(evaluation=Evaluation(()))) is None
