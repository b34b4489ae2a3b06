"""Schemas, tables and options at random: no fit may fail on them, and every model can be sampled."""

import pytest
import whole_way
from hypothesis import HealthCheck, Phase, given, settings
from table_strategies import cases

SMALL = {"most_rows": 60, "max_columns": 3, "most_categories": 40, "most_steps": 0}


def quick(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to make a failure small takes minutes
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.slow
@quick(8)
@given(case=cases(**SMALL))
def test_every_table_is_fitted_saved_and_sampled(case):
    """Catches a fit that dies with its budget spent, NaN in a model, and records that the schema refuses."""
    whole_way.go(case, evaluated=False)


@pytest.mark.slow
@quick(3)
@given(case=cases(**SMALL))
def test_every_table_is_evaluated_and_reported(case):
    """Catches a measure or a figure that fails on a constant column, one category, or two records."""
    whole_way.go(case)
