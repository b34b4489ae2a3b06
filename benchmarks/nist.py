"""National2019 of NIST's Diverse Communities excerpts, judged by NIST's own program, SDNist.

    DPSYNTH_DATA_DIR=... python -m benchmarks.nist --epsilon 1 10 --seeds 3

27,253 people in 20 areas, 24 columns. All of them train, as in the entries that NIST has published. Bounds,
categories and rules come from NIST's dictionary. The folder ``nist`` of the data folder holds
``national2019.csv``, ``national2019.json`` and ``data_dictionary.json`` of NIST's repository. SDNist is
installed into an environment of its own, with pinned versions. A real table of as many rows drawn with
replacement is judged beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.peers.environments import Environments
from benchmarks.peers.processes import run
from dpsynth import DPMarginals, Schema

#: what is possible, from NIST's dictionary
NUMBERS: dict[str, dict[str, Any]] = {
    "AGEP": {"lower": 0, "upper": 99},
    "PINCP": {"lower": -9_000, "upper": 1_341_000, "step": 10, "missing": True},
    "POVPIP": {"lower": 0, "upper": 501, "missing": True},
    "PWGTP": {"lower": 1, "upper": 9_999},
    "WGTP": {"lower": 0, "upper": 9_999},
    "NOC": {"lower": 0, "upper": 19, "missing": True},
    "NPF": {"lower": 2, "upper": 20, "missing": True},
}
#: who is asked what: children have no income, institutions no household
RULES = (
    *(
        f"AGEP {sign} {age} implies {name} is {there}missing"
        for age, names in ((15, ("MSP", "PINCP")), (3, ("EDU",)), (5, ("DREM", "DPHY")))
        for name in names
        for sign, there in (("<", ""), (">=", "not "))
    ),
    "PINCP is missing implies PINCP_DECILE is missing",
    "PINCP is not missing implies PINCP_DECILE is not missing",
    "AGEP < 17 implies DVET is missing",
    "AGEP < 16 implies INDP_CAT is missing",
    "INDP_CAT is missing implies INDP is missing",
    "INDP_CAT is not missing implies INDP is not missing",
    "HOUSING_TYPE = 1 implies OWN_RENT != 0",
    "HOUSING_TYPE != 1 implies OWN_RENT = 0",
    "HOUSING_TYPE != 1 implies NOC is missing",
    "HOUSING_TYPE = 1 implies NOC is not missing",
    "HOUSING_TYPE != 1 implies NPF is missing",
    "HOUSING_TYPE != 1 implies WGTP = 0",
    "HOUSING_TYPE = 1 implies WGTP > 0",
)
#: K-marginal scores that NIST has published for national2019
PUBLISHED = {
    "AIM, ε = 1": 710,
    "Genetic SD, ε = 1 (21 columns)": 826,
    "MWEM+PGM, ε = 1": 847,
    "CTGAN, not private": 699,
    "synthpop, not private": 935,
}
#: seconds of processor time of the judge
LIMIT = 1_800.0


def column(name: str, field: dict[str, Any]) -> dict[str, Any]:
    """A column of the schema, from its entry in NIST's file."""
    if name in NUMBERS:
        return {"name": name, "kind": "integer", **NUMBERS[name]}
    if name == "DENSITY":  # one published value for each area
        return {
            "name": name,
            "kind": "continuous",
            "lower": 16.3,
            "upper": 52_864.7,
            "decimals": 1,
            "scale": "log",
        }
    codes = [int(v) if str(v).isdigit() else v for v in field["values"] if v != "N"]
    kind = "binary" if len(codes) == 2 else "categorical"
    return {"name": name, "kind": kind, "categories": codes, "missing": "N" in field["values"]}


def public_schema(folder: Path) -> Schema:
    """The schema, without a look at the records."""
    fields = json.loads((folder / "national2019.json").read_text())["schema"]
    columns = [column(name, field) for name, field in fields.items()]
    about = {"name": "national2019", "unit": "one person", "n_public": 27_253, "missing_words": ["N"]}
    return Schema.from_dict({**about, "columns": columns, "constraints": list(RULES)})


def written(frame: pd.DataFrame, path: Path) -> Path:
    """A table as NIST writes it, with N for what is not asked."""
    frame.astype(object).where(frame.notna(), "N").to_csv(path, index=False)
    return path


def for_judge(folder: Path, place: Path) -> Path:
    """NIST's files where its program looks for them."""
    (place / "national").mkdir(parents=True)
    for name in ("national2019.csv", "national2019.json"):
        shutil.copy(folder / name, place / "national" / name)
    shutil.copy(folder / "data_dictionary.json", place)
    names = json.loads((folder / "data_dictionary.json").read_text())["PUMA"]["values"]
    (place / "config.json").write_text("{}")  # the program has its own
    (place / "mappings.json").write_text(
        json.dumps({"PUMA": {code: {"name": name} for code, name in names.items()}})
    )
    return place


def main() -> None:
    """Fit, judge and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--environments", type=Path, default=Path("environments"))
    asked = parser.parse_args()
    folder = Path(os.environ.get("DPSYNTH_DATA_DIR", ".")) / "nist"
    judge = Environments(asked.environments.resolve(), {})["sdnist"]
    if judge.python is None:
        raise SystemExit(f"NIST's program is not there: {judge.failed}")
    schema = public_schema(folder)
    real = pd.read_csv(folder / "national2019.csv", dtype=object, keep_default_na=False).replace("N", None)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        tables: dict[str, list[Path]] = {}
        again = real.sample(len(real), replace=True, random_state=0)
        tables["real rows, drawn with replacement"] = [written(again, place / "real.csv")]
        for epsilon in asked.epsilon:
            made = tables[f"dpsynth, ε = {epsilon:g}"] = []
            for seed in range(asked.seeds):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = DPMarginals(epsilon, 1e-6, random_state=seed).fit(real, schema=schema)
                sample = model.sample(len(real), random_state=seed)
                made.append(written(sample, place / f"{epsilon:g}-{seed}.csv"))
                print(f"fitted at ε = {epsilon:g}, seed {seed}", flush=True)
        paths = [str(path) for made in tables.values() for path in made]
        command = [judge.python, str(Path(__file__).parent / "peers" / "fits" / "score_nist.py")]
        ended = run([*command, str(for_judge(folder, place / "nist")), *paths], folder=place, limit=LIMIT)
        if ended.failed:
            raise SystemExit(ended.failed)
        lines = [
            line.split()
            for line in (place / "stdout.txt").read_text().splitlines()
            if line.startswith("score ")
        ]
    scores = {Path(path).name: int(score) for _, score, path in lines}
    print("\n|Table|K-marginal|\n|-|-|")
    for name, made in tables.items():
        found = [scores[path.name] for path in made]
        several = f" ({min(found)} to {max(found)})" if len(found) > 1 else ""
        print(f"|{name}|{np.median(found):.0f}{several}|")
    for name, score in PUBLISHED.items():
        print(f"|{name} (published)|{score}|")


if __name__ == "__main__":
    main()
