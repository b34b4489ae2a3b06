"""What every fit script does around its own few lines: read the task, time it, write what came out.

    python fit_NAME.py FOLDER

FOLDER holds ``train.csv`` (categories as whole numbers from 0, missing values empty) and ``task.json``:
epsilon, delta, n (public), rows to draw, seed, options of the arm, the columns' public facts and the
outcome's name. The script leaves ``synthetic.csv`` of the same form and ``result.json``: seconds by the
clock and of the processor, the process's peak memory, versions.
"""

import json
import resource
import sys
import time
from importlib import metadata
from pathlib import Path

import pandas as pd


def carry_out(fit, packages):
    """Call ``fit(train, task)``, which returns the synthetic frame, and write frame and result."""
    folder = Path(sys.argv[1])
    task = json.loads((folder / "task.json").read_text())
    train = pd.read_csv(folder / "train.csv")
    begun, used = time.perf_counter(), time.process_time()
    synthetic = fit(train, task)
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - used
    names = [column["name"] for column in task["columns"]]
    synthetic[names].to_csv(folder / "synthetic.csv", index=False)
    result = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "versions": {name: _version(name) for name in packages},
    }
    (folder / "result.json").write_text(json.dumps(result))


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return getattr(sys.modules.get(name), "__version__", "unknown")
