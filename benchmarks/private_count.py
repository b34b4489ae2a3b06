"""What it gives to choose statistics by the noisy count, where the number of records is private.

    python benchmarks/private_count.py --out DIR [--table support2 flchain] [--sizes 1000 3000] [--seeds 3]

Cuts of tables are those of `benchmarks/parts.py`, without a public number of records. One fit releases all
statistics. Samples are drawn from it, and from its base model alone: these differ by no noise. Another fit
chooses its statistics by its noisy count. Both fits have one seed, and so the same count. Their noise differs
in scale alone until their models differ. DIR/private_count.md has all rounds in DIR.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks import parts
from benchmarks.parts import ALONE, BOTH, DRAWN, Round, cut, figures
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.synthesis.fit import plan_fit, read_parts
from dpsynth.synthesis.marginals import MarginalsOptions
from dpsynth.synthesis.parts.part import Reading

#: of a fit that releases all, of its base model alone, and of a fit that chooses
ALL, UNUSED, CHOSEN = "all", "unused", "chosen"
#: what is compared with all
CHANGES = {UNUSED: "base model of the same fit", CHOSEN: "chosen, another fit"}
FIGURES = ("AUC", "correlation error", "discriminator")


def carried_out(task: Round) -> dict[str, Any]:
    """Figures of both fits, the noisy count and which statistics it chose."""
    train, test, schema = cut(task)
    found = parts.carried_out(task, public=False)["parts"]
    rng, records, ledger = np.random.default_rng(task.seed), FrameRecords(train), Ledger()
    plan = plan_fit(
        records, schema.with_n_public(None), MarginalsOptions.of(epsilon=task.epsilon), rng, ledger
    )
    made = read_parts(plan, Reading(ledger, records, rng, plan.n)).sample(DRAWN, rng)
    return {
        **vars(task),
        ALL: found[BOTH],
        UNUSED: found[ALONE],
        CHOSEN: figures(made, test, schema, task.seed, rng),
        "count": plan.n,
        "pairs": plan.releases.pairwise_statistics is not None,
        "histogram": plan.releases.neighbour_histogram is not None,
    }


def markdown(records: list[dict[str, Any]]) -> str:
    """Mean differences from the fit that releases all, by cut and by n, with standard errors over fits."""
    rows = ["| table | n | ε | fits | noisy count | fits with pairs, histogram | AUC: all |"]
    rows[0] += "".join(f" {name}: {figure} |" for name in CHANGES.values() for figure in FIGURES)
    rows += ["|---|" + "---:|" * (6 + len(CHANGES) * len(FIGURES))]
    seeds = pd.json_normalize(records)
    every = seeds.assign(table="all of them")
    for cuts in (seeds, every):
        for (table, n, epsilon), each in cuts.groupby(["table", "n", "epsilon"], sort=False):
            count = f"{each['count'].min():,.0f} to {each['count'].max():,.0f}"
            used, level = f"{each['pairs'].sum()}, {each['histogram'].sum()}", each[f"{ALL}.AUC"].mean()
            told = f"{table} | {n:,} | {epsilon:g} | {len(each)} | {count} | {used} | {level:.3f}"
            for name in CHANGES:
                for figure in FIGURES:
                    change = each[f"{name}.{figure}"] - each[f"{ALL}.{figure}"]
                    told += f" | {change.mean():+.3f} ± {change.std() / np.sqrt(len(each)):.3f}"
            rows.append(f"| {told} |")
    return "\n".join(rows)


def main() -> None:
    parts.carry_through(
        __doc__,
        carried_out,
        "private_count.md",
        markdown,
        version=1,
        sizes=(1000, 3000),
        epsilons=(1.0,),
    )


if __name__ == "__main__":
    main()
