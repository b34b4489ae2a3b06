"""A peer's script in a process of its own: a time limit that holds, and the last line of what went wrong."""

from __future__ import annotations

import math
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: how many times its processor time a process may take by the clock
PATIENCE = 4


@dataclass(frozen=True)
class Ended:
    """How a process ended: ``failed`` is None, or one line that says why."""

    seconds: float
    failed: str | None
    stdout: str = ""

    @property
    def timed_out(self) -> bool:
        return self.failed is not None and self.failed.startswith("stopped after")


def run(command: Sequence[str], *, folder: Path, limit: float, python_path: str | None = None) -> Ended:
    """Run a command in a folder, with a limit on its time, after which it and whatever it started are killed.

    The limit is one of processor time, since a shared machine's clock is nobody's fault; a process that waits
    is stopped after :data:`PATIENCE` times that by the clock. It sees neither the caller's PYTHONPATH nor its
    virtual environment, and one thread of BLAS.
    """
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment["PYTHONUNBUFFERED"] = "1"
    if python_path is not None:
        environment["PYTHONPATH"] = python_path
    begun = time.perf_counter()
    with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as err:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=err, start_new_session=True
        )
        try:
            with suppress(ProcessLookupError):  # it may have ended already
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 5))
            process.wait(timeout=PATIENCE * limit)
        except subprocess.TimeoutExpired:
            return Ended(time.perf_counter() - begun, f"stopped after {PATIENCE * limit:g} s by the clock")
        finally:  # also when the caller is interrupted: nothing of the group goes on alone
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    seconds = time.perf_counter() - begun
    stdout = (folder / "stdout.txt").read_text(errors="replace")
    if process.returncode == 0:
        return Ended(seconds, None, stdout)
    if process.returncode == -signal.SIGXCPU:
        return Ended(seconds, f"stopped after {limit:g} s of processor time")
    line = last_line((folder / "stderr.txt").read_text(errors="replace")) or last_line(stdout)
    if process.returncode < 0:
        line = f"killed by {signal.Signals(-process.returncode).name}" + (f": {line}" if line else "")
    return Ended(seconds, line or f"exit code {process.returncode}", stdout)


def last_line(text: str) -> str:
    """The last line that says anything, at most 200 characters, without addresses in memory or folders.

    Examples
    --------
    >>> last_line("Traceback\\nValueError: no such file /home/me/x.csv\\n\\n")
    'ValueError: no such file x.csv'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    plain = re.sub(r" at 0x[0-9a-f]+", "", lines[-1])
    return re.sub(r"(?<![\w:])/(?:[\w.+-]+/)+", "", plain)[:200]
