"""What of an evaluation may be released."""

from __future__ import annotations

from dpsynth.evaluation.records import Detail, Evaluation, Measure


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
