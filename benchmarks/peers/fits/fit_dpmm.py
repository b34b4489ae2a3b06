"""dpmm's pipelines: its own priv-tree cells between the public bounds, for a tenth of epsilon."""

import harness
import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline

PIPELINES = {"mst": MSTPipeline, "aim": AIMPipeline}


def fit(train, task):
    frame, domain = pd.DataFrame(), {}
    for column in task["columns"]:
        name, values = column["name"], train[column["name"]]
        if column.get("size"):
            # missing is a category of its own, as in the public cells: its own way looks into the data unpaid
            codes = values.fillna(column["size"]).astype(int)
            frame[name] = codes.astype("category")
            domain[name] = {"categories": list(range(column["size"] + bool(column.get("missing"))))}
        else:
            frame[name] = values.astype(float)
            domain[name] = {"lower": column["lower"], "upper": column["upper"]}
    share = task["epsilon"] / 10
    pipeline = PIPELINES[task["options"]["method"]](
        epsilon=task["epsilon"] - share, delta=task["delta"], proc_epsilon=share, n_jobs=1
    )
    pipeline.fit(frame, domain, random_state=task["seed"])
    made = pipeline.generate(n_records=task["rows"], random_state=task["seed"])
    for column in task["columns"]:
        made[column["name"]] = made[column["name"]].astype(float)
        if column.get("size") and column.get("missing"):
            made[column["name"]] = made[column["name"]].where(made[column["name"]] < column["size"])
    return made


if __name__ == "__main__":
    harness.carry_out(fit, ["dpmm"])
