"""What of an evaluation may be released."""

from __future__ import annotations

from dpsynth.evaluation.results import Detail, Evaluation, Measure


def test_released_is_what_is_not_internal():
    """Catches a number or a curve of real records among those for release, or a released one lost."""
    kept = Measure("Coverage", "categories_synthetic", 3, False)
    drawn = Detail("drawing", "marginal[age].synthetic", False, {"share": [1.0]})
    evaluation = Evaluation(
        (Measure("Utility", "auc_mean", 0.81, True), kept),
        {"level": 0.95},
        (Detail("drawing", "marginal[age].train", True, {"share": [1.0]}), drawn),
    )
    released = evaluation.released()
    assert released.measures == (kept,) and released.details == (drawn,)
    assert released.released() == released and Evaluation.from_dict(released.to_dict()) == released


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
