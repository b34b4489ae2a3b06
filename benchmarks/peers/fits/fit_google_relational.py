"""google/dpsynth's relational mode: patients are a parent table, and their rows a child table.

Rows of a patient are exchangeable to it, so the time is a column like any other. Its noisy counts reach the
first ``slots`` rows of a patient alone.
"""

import fit_google
import harness
import numpy as np
from dpsynth.relational import ForeignKeyRelation, MultiTableConfig


def fit(train, task):
    options = task["options"]
    columns = [column for column in task["columns"] if column["name"] != "unit"]
    frame, domains = fit_google.encoded(train, columns)
    frame["unit"] = train["unit"]
    own = [column["name"] for column in columns if column["per_patient"]]
    later = [column["name"] for column in columns if not column["per_patient"]]
    tables = {"patients": frame.drop_duplicates("unit")[["unit", *own]], "rows": frame[["unit", *later]]}
    config = MultiTableConfig(
        domains={
            "patients": {name: domains[name] for name in own},
            "rows": {name: domains[name] for name in later},
        },
        foreign_keys=[ForeignKeyRelation("patients", "unit", "rows", "unit", options["most"])],
        discrete_mechanism=fit_google.MECHANISMS["mst"](),
        num_permutation_slots=options["slots"],
        exploration_strategy="size_sliced",
    )
    mechanism = config.calibrate(epsilon=task["epsilon"], delta=task["delta"])
    made = mechanism(np.random.default_rng(task["seed"]), tables).synthetic_tables
    return fit_google.decoded(made["rows"].merge(made["patients"], on="unit"), columns)


if __name__ == "__main__":
    harness.carry_out(fit, ["dpsynth", "mbi", "jax", "dp-accounting"])
