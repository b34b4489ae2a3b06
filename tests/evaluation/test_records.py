"""What of an evaluation may be released."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from dpsynth.errors import InputError
from dpsynth.evaluation.results import Evaluation, Measure, frame_rows


def test_released_is_what_is_not_internal():
    """Catches a number or a curve of real records among those for release, or a released one lost."""
    kept = Measure("Coverage", "categories_synthetic", 3, False)
    drawn = {"table": "synthetic", "share": 1.0, "confidential": False}
    evaluation = Evaluation(
        (Measure("Utility", "auc_mean", 0.81, True), kept),
        {"level": 0.95},
        {
            "marginal": [drawn, {"table": "train", "share": 0.73, "confidential": True}],
            "roc": [{"fpr": 0.74, "confidential": True}],
            "unmarked": [{"share": 0.75}],
        },
    )
    released = evaluation.released()
    assert released.measures == (kept,) and [*released.details] == ["marginal"]
    assert released.details["marginal"].to_dict("records") == [drawn]
    assert released.released() == released and Evaluation.from_dict(released.to_dict()) == released
    assert released.to_dict() == {
        "format": 2,
        "settings": {"level": 0.95},
        "measures": [vars(kept)],
        "details": {"marginal": {"table": ["synthetic"], "share": [1.0], "confidential": [False]}},
    }


@pytest.mark.parametrize("mark", [None, "no", 0, 0.0, float("nan")])
def test_a_mark_that_is_no_truth_value_is_refused(mark: object):
    """Catches a row of unknown origin that is offered for release, in memory or from a file."""
    rows = [{"share": 1.0, "confidential": False}, {"share": 0.5, "confidential": mark}]
    with pytest.raises(InputError, match="`confidential` of 'marginal' must be true or false"):
        Evaluation((), {}, {"marginal": rows})
    saved = Evaluation((), {}, {"marginal": rows[:1]}).to_dict()
    saved["details"]["marginal"] = {"share": [1.0, 0.5], "confidential": [False, mark]}
    with pytest.raises(InputError, match="not a saved evaluation: `confidential` of 'marginal'"):
        Evaluation.from_dict(saved)


def test_frames_come_back_from_json():
    """Catches a whole number, a missing cell, a truth value or a text that a file changes."""
    rows = [
        {"n": 3, "share": 0.5, "holds": True, "maybe": None, "text": "a", "at": 0, "none": None},
        {"n": 4, "share": None, "holds": False, "maybe": True, "text": None, "at": "08:30", "none": None},
    ]
    evaluation = Evaluation((), {}, {"all": rows})
    again = Evaluation.from_dict(json.loads(evaluation.to_json()))
    assert again == evaluation
    pd.testing.assert_frame_equal(again.details["all"], evaluation.details["all"])
    told = [vars(row) for row in frame_rows(again.details["all"])]
    assert told == [row | {"confidential": True} for row in rows]


def test_a_file_of_another_format_is_refused():
    """Catches an evaluation of an earlier version that is read as an empty one."""
    for saved in ({}, {"format": 1}, {"format": 3}):
        with pytest.raises(InputError, match=r"not a saved evaluation: an earlier or later version .* again"):
            Evaluation.from_dict({"settings": {}, "measures": [], "details": {}, **saved})


def test_an_evaluation_in_a_notebook_is_escaped_and_marks_what_is_confidential() -> None:
    """Catches HTML of a column's name that runs, or an unpaid number without its mark."""
    found = Evaluation(
        (
            Measure("<b>Utility", "auc_mean", 0.81, True, "of <script>"),
            Measure("Similarity", "tvd[<i>age]", 0.25, True),
            Measure("Records", "synthetic_records", 9, False),
        )
    )
    page = found._repr_html_()
    assert page.count("confidential") == 2 and "tvd[&lt;i&gt;age]" in page and "0.8100" in page
    assert not any(tag in page for tag in ("<b>", "<script>", "<i>"))
    assert "1 measures of single columns" in repr(found) and repr(found).count("confidential") == 1
