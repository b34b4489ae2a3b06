"""Faults put into the commands: kills, a full disk, a folder that becomes read-only, and damaged bytes.

    python benchmarks/faults.py [--times 30] [--bytes 100] [--commands run fit sample evaluate] [--seed 0]
                                [--campaigns kill interrupt full readonly cap copy bytes]

kill, interrupt   a command gets SIGKILL or SIGINT at a moment uniform over the time it takes
full              the command writes to a file system of memory that is full after a random number of bytes
readonly          all folders become read-only at a random moment (the command runs as another user)
cap               twenty fits post in one ledger at once, whose cap allows three. A third of them get SIGKILL
copy              a run is interrupted, and both its checkpoint and a copy go on, under a cap for one run
bytes             each file of a model, run, checkpoint, ledger and estimates is cut, or has one bit changed

All modules are imported before the command starts, which is a fork of this process. A second command then
finishes the work (`--resume` where a checkpoint is, else a new one). Each time these hold, or the line says
what did not:

- The command ends with 0, 1, 2 or 130, and one sentence, without a traceback.
- Every file under its final name is complete.
- The final ledger has all statistics whose reading began, and at most one more: posted, not yet read. The
  readings are counted by a witness outside the package.
- The ledger's file counts the whole cost of every run that began to read, and that of a resumed run once.
- No cap is passed.

full and readonly need root. Prints one line for each campaign and command, and writes trials as JSON lines
to --out.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import json
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pandas as pd

from dpsynth.cli import main as command_line
from dpsynth.errors import DpsynthError
from dpsynth.files.codec import apart
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.ledger_file import LedgerFile
from dpsynth.privacy.records import Records
from dpsynth.runs.config import RunConfig
from dpsynth.runs.folder import RunFolder
from dpsynth.runs.pipeline import _check_checkpoint
from dpsynth.runs.spending import checkpoint_ledger, ledger_beside
from dpsynth.synthesis.generators import load
from dpsynth.synthesis.saved_fit import SavedFit
from dpsynth.table.schema import Schema

ROWS, DRAWN = 300, 20_000
#: of each run and fit
EPSILON, DELTA = 3.0, 1e-5
SCHEMA = {
    "name": "ward",
    "n_public": ROWS,
    "outcome": "died",
    "columns": [
        {"name": "age", "kind": "integer", "lower": 18, "upper": 90},
        {"name": "crea", "kind": "continuous", "lower": 0.1, "upper": 10, "decimals": 1, "missing": True},
        {"name": "sex", "kind": "binary", "categories": ["F", "M"]},
        {"name": "died", "kind": "binary", "categories": ["no", "yes"]},
    ],
}
RUN = {
    "data": {"path": "ward.csv", "schema": "ward.yaml"},
    "model": {
        "epsilon": EPSILON,
        "delta": DELTA,
        "generator": "wgan-gp",
        "steps": 60,
        "training": {"critic_hidden": [8, 8], "generator_hidden": [8], "latent": 2},
    },
    "evaluate": {"seed": 0, "reference": False},
    "attack": {"enabled": False},
}
TABLE = ["--data", "ward.csv", "--schema", "ward.yaml", "--epsilon", "3", "--delta", "1e-5"]
COMMANDS = {
    "run": ["run", "run.yaml", "--out", "out"],
    "fit": ["fit", *TABLE, "--out", "out"],
    "sample": ["sample", "made/model", "-n", str(DRAWN), "--out", "out.csv"],
    "evaluate": ["evaluate", "made"],
}
# in place of a new run, which would train for many seconds
QUICK = ["run", "quick.yaml", "--out", "out", "--no-evaluate"]
INPUTS = {"ward.csv", "ward.yaml", "run.yaml", "quick.yaml"}
CAMPAIGNS = ("kill", "interrupt", "full", "readonly", "cap", "copy", "bytes")
#: campaigns that have commands of their own
SHARED = ("cap", "copy")
#: fits at once, and those that the cap allows
FITS, ALLOWED = 20, 3
STATUSES = (0, 1, 2, 130)


# --- commands as forks -------------------------------------------------------------------------------


def start(arguments: list[str], folder: Path, log: Path, user: int | None = None) -> int:
    """Start a command in a folder, as a fork. ``log`` gets what it says, and a line for each reading."""
    process = os.fork()
    if process:
        return process
    status = 99
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{log}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        read = os.open(f"{log}.read", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        opened = Records.opened

        def witnessed(records: Records) -> Any:
            os.write(read, b"read\n")
            return opened(records)

        Records.opened = witnessed  # type: ignore[method-assign]
        os.chdir(folder)
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        status = command_line(arguments)
    except KeyboardInterrupt:
        status = 98  # before or after the command
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stdout.flush()
        sys.stderr.flush()
        if "modules" in os.environ.get("FAULTS", ""):
            Path(f"{log}.modules").write_text("\n".join(sys.modules))
        os._exit(status)


def end(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def prepare(folder: Path, command: str, made: Path | None) -> None:
    """Write what a command reads."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 91, ROWS)
    crea = np.where(rng.random(ROWS) < 0.1, np.nan, np.round(rng.gamma(2, 0.6, ROWS) + 0.1, 1))
    died = np.where(rng.random(ROWS) < age / 150, "yes", "no")
    frame = pd.DataFrame({"age": age, "crea": crea, "sex": rng.choice(["F", "M"], ROWS), "died": died})
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / "ward.csv", index=False)
    Schema.from_dict(SCHEMA).to_yaml(folder / "ward.yaml")
    RunConfig.from_dict(RUN).to_yaml(folder / "run.yaml")
    quick = {**RUN, "model": {"epsilon": EPSILON, "delta": DELTA}}
    RunConfig.from_dict(quick).to_yaml(folder / "quick.yaml")
    if command in ("sample", "evaluate") and made is not None:
        shutil.copytree(made, folder / "made")


# --- what must hold ----------------------------------------------------------------------------------


def flaws(folder: Path, command: str) -> list[str]:
    """Files under final names that are not complete, and names that are neither final nor temporary."""
    found = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_dir() or parts[0] in INPUTS or any(_is_temporary(part) for part in parts):
            continue
        if path.name.endswith((".ledger-wal", ".ledger-shm")):  # read with their ledger
            continue
        try:
            _read(path)
        except Exception as problem:
            found.append(f"{'/'.join(parts)}: {type(problem).__name__}: {problem}")
    return found


def _is_temporary(name: str) -> bool:
    name = name.removesuffix("-wal").removesuffix("-shm")  # SQLite's, of a process that was killed
    return name.startswith(".") and (name.endswith((".lock", ".tmp", ".old")) or ".tmp." in name)


def _read(path: Path) -> None:
    """Read a file as the package would."""
    if path.name == "model.json":
        load(path.parent)
    elif path.name == "ledger.json":
        Ledger.load(path)
    elif path.suffix == ".ledger":
        Ledger.open(path)
    elif path.name.startswith("checkpoint."):
        checkpoint_ledger(path.parent)
    elif path.name in ("report.json", "evaluation.json"):
        RunFolder(path.parent).read_report()
    elif path.suffix == ".json":
        json.loads(path.read_text(encoding="utf-8"))
    elif path.suffix == ".csv":
        assert len(pd.read_csv(path)) in (ROWS, DRAWN, ROWS // 2), "rows are missing"
    elif path.suffix == ".html":
        assert path.read_text(encoding="utf-8").rstrip().endswith("</html>"), "cut"
    elif path.suffix != ".npz":
        assert path.stat().st_size > 0, "empty"


def entries(ledger: Ledger) -> list[tuple[str, str]]:
    return [(entry.name, str(entry.event)) for entry in ledger.entries]


def final_ledger(folder: Path) -> Ledger:
    out = folder / "out"
    return Ledger.load(out / "ledger.json") if (out / "ledger.json").exists() else load(out).ledger_


def said(log: Path) -> str:
    path = Path(f"{log}.err")  # a command that was killed at once has none
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def readings(log: Path) -> int:
    path = Path(f"{log}.read")
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def wrong_end(status: int, log: Path, killed: bool) -> list[str]:
    text = said(log)
    found = []
    if status not in STATUSES and not (killed and status == -signal.SIGKILL) and status != 98:
        found.append(f"status {status}")
    if "Traceback" in text and status != 98:
        found.append(f"traceback: {text[text.index('Traceback') - 200 :]}")
    if status in (1, 2, 130) and not text.strip().splitlines()[-1:][0].startswith("dpsynth: "):
        found.append(f"no last sentence: {text.strip().splitlines()[-1]}")
    return found


class Bench:
    """Folders of the trials, and what the commands do undisturbed."""

    def __init__(self, base: Path, rng: random.Random) -> None:
        self.base, self.rng = base, rng
        self.made: Path | None = None
        self.seconds: dict[str, float] = {}
        self.whole: dict[str, list[tuple[str, str]]] = {}
        self.bytes: dict[str, int] = {}
        self.n = 0

    def new(self, command: str) -> tuple[Path, Path]:
        self.n += 1
        folder = self.base / f"t{self.n}"
        folder.mkdir()
        (self.base / "logs").mkdir(exist_ok=True)
        return folder, self.base / "logs" / f"t{self.n}"

    def undisturbed(self, command: str) -> None:
        """Time a command, twice: the first says which modules it imports."""
        for turn in range(2):
            folder, log = self.new(command)
            prepare(folder, command, self.made)
            before = _size(folder)
            os.environ["FAULTS"] = "modules" if turn == 0 else ""
            begun = time.perf_counter()
            status = end(start(COMMANDS[command], folder, log))
            self.seconds[command] = time.perf_counter() - begun
            assert status == 0, said(log)
            assert not flaws(folder, command), flaws(folder, command)
            if turn == 0:
                for name in Path(f"{log}.modules").read_text().splitlines():
                    if not name.startswith("__"):
                        with contextlib.suppress(Exception):
                            importlib.import_module(name)
        self.bytes[command] = _size(folder) - before
        if command in ("run", "fit"):
            self.whole[command] = entries(final_ledger(folder))
            assert readings(log) == len(self.whole[command]), "the witness counts other readings"

    def finish(
        self, folder: Path, command: str, log: Path, again: Path, user: int | None
    ) -> tuple[str, list[str]]:
        """Let a second command finish the work. Return what it did, and what is wrong."""
        out, way = folder / "out", "again"
        arguments = list(COMMANDS[command])
        if command == "run":
            arguments = list(QUICK)
            if RunFolder(out).interrupted:
                arguments, way = [*COMMANDS["run"], "--no-evaluate", "--resume"], "resumed"
        if command == "evaluate" or (way == "again" and (out.exists() or (folder / "out.csv").exists())):
            arguments.append("--force")
        status = end(start(arguments, folder, again, user))
        if status == 2 and "was killed while it wrote" in said(again):
            way = "results of the killed one named, then --force"
            status = end(start([*arguments, "--force"], folder, again, user))
        found = [f"second command: {problem}" for problem in wrong_end(status, again, False)]
        if status != 0:
            return way, [*found, f"second command: status {status}: {said(again).strip()}"]
        if command in self.whole:
            found += self.miscounted(folder, command, way, readings(log))
        return way, found + [f"second command: {problem}" for problem in flaws(folder, command)]

    def miscounted(self, folder: Path, command: str, way: str, read: int) -> list[str]:
        whole, final = self.whole[command], entries(final_ledger(folder))
        second = self.whole["quick"] if command == "run" and way != "resumed" else whole
        first = [] if way == "resumed" else final[: len(final) - len(second)]
        if final[len(first) :] != second or first != whole[: len(first)]:
            return [f"ledger holds {[name for name, _ in final]}"]
        if way != "resumed" and not read <= len(first) <= read + 1:
            return [f"{read} readings began, but the ledger has {len(first)}"]
        used = LedgerFile(ledger_beside(folder / "out")).history().used
        # a run that was killed before it read anything may count
        runs = {1} if way == "resumed" else {2} if read else {1, 2}
        if used not in [(EPSILON * many, DELTA * many) for many in runs]:
            return [f"the file counts epsilon {used[0]:g} and delta {used[1]:g} after {read} readings"]
        return []

    def shared(self, campaign: str) -> dict[str, Any]:
        """A trial with a ledger that has a cap."""
        folder, log = self.new(campaign)
        prepare(folder, "run", None)
        ledger = LedgerFile(folder / "ward.ledger")
        os.environ["DPSYNTH_LEDGER"] = "ward.ledger"  # of the folder in which a command works
        try:
            ways = self._fits_at_once if campaign == "cap" else self._copies
            way, problems = ways(folder, log, ledger)
        finally:
            del os.environ["DPSYNTH_LEDGER"]
            shutil.rmtree(folder)
        return {"campaign": campaign, "command": "run", "status": 0, "way": way, "problems": problems}

    def _fits_at_once(self, folder: Path, log: Path, ledger: LedgerFile) -> tuple[str, list[str]]:
        ledger.set_cap(EPSILON * ALLOWED, DELTA * ALLOWED)
        logs = [Path(f"{log}-{number}") for number in range(FITS)]
        begun = {
            start([*COMMANDS["fit"][:-1], f"out{number}"], folder, logs[number]): number
            for number in range(FITS)
        }
        for process in self.rng.sample(sorted(begun), FITS // 3):
            time.sleep(self.rng.uniform(0, 2 * self.seconds["fit"] / FITS))
            os.kill(process, signal.SIGKILL)
        status = {number: end(process) for process, number in begun.items()}
        problems = [
            problem for number in range(FITS) for problem in wrong_end(status[number], logs[number], True)
        ]
        readers = sum(readings(each) > 0 for each in logs)
        whole = sum((folder / f"out{number}/model.json").exists() for number in range(FITS))
        refused = sum("the cap of the ledger" in said(each) for each in logs)
        history = ledger.history()
        if history.used[0] > EPSILON * ALLOWED or readers > ALLOWED or whole > readers:
            problems.append(f"{readers} fits read records, and the file counts epsilon {history.used[0]:g}")
        if readers > sum(bool(run.entries.entries) for run in history.counted):
            problems.append("the file lacks a fit that read records")
        return f"{readers} read, {whole} whole, {refused} refused", problems + flaws(folder, "fit")

    def _copies(self, folder: Path, log: Path, ledger: LedgerFile) -> tuple[str, list[str]]:
        ledger.set_cap(EPSILON, DELTA)
        command = [*COMMANDS["run"], "--no-evaluate"]
        process = start(command, folder, log)
        while not _posted(ledger.path, "WGAN critic steps"):
            time.sleep(0.01)
        time.sleep(self.rng.uniform(0, self.seconds["run"] / 4))
        os.kill(process, signal.SIGINT)
        if end(process) == 0 or not RunFolder(folder / "out").interrupted:
            return "complete before the interrupt", []
        shutil.copytree(folder / "out.checkpoint", folder / "copy.checkpoint")
        resumed = [[*command[:-2], name, "--no-evaluate", "--resume"] for name in ("out", "copy")]
        at_once = self.rng.random() < 0.5
        if self.rng.random() < 0.5:
            resumed.reverse()
        logs = [Path(f"{log}-{number}") for number in range(2)]
        begun, status = [], []
        for arguments, each in zip(resumed, logs, strict=True):
            begun.append(start(arguments, folder, each))
            if not at_once:
                status.append(end(begun[-1]))
        status = status or [end(process) for process in begun]
        problems = [
            problem for got, each in zip(status, logs, strict=True) for problem in wrong_end(got, each, False)
        ]
        if sorted(status) != [0, 2] or sum("the cap of the ledger" in said(each) for each in logs) != 1:
            problems.append(f"status {status}: {[said(each)[-300:] for each in logs]}")
        if ledger.history().used != (EPSILON, DELTA):
            problems.append(f"the file counts {ledger.history().used}")
        return f"one of two went on, {'at once' if at_once else 'one after the other'}", problems

    def trial(self, campaign: str, command: str) -> dict[str, Any]:
        folder, log = self.new(command)
        again = Path(f"{log}b")
        user, mounted, moment = None, False, self.rng.uniform(0, self.seconds[command])
        detail: dict[str, Any] = {"moment": round(moment, 3)}
        if campaign == "full":
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], check=True)
            mounted = True
        prepare(folder, command, self.made)
        try:
            if campaign == "full":
                room = self.rng.randrange(0, int(self.bytes[command] * 1.1) // 4096 + 1) * 4096
                detail = {"bytes": room}
                used = _used(folder)
                _resize(folder, used + max(room, 4096))
                status = end(start(COMMANDS[command], folder, log))
                detail["filled"] = "No space left" in said(log)
                _resize(folder, 64 << 20)  # SQLite reads no ledger where it has no room
                problems = wrong_end(status, log, False) + flaws(folder, command)
            else:
                if campaign == "readonly":
                    user = pwd.getpwnam("nobody").pw_uid
                    subprocess.run(["chown", "-R", str(user), folder], check=True)
                process = start(COMMANDS[command], folder, log, user)
                time.sleep(moment)
                if campaign == "readonly":
                    _chmod(folder, 0o555)
                else:
                    os.kill(process, signal.SIGKILL if campaign == "kill" else signal.SIGINT)
                status = end(process)
                problems = wrong_end(status, log, campaign == "kill") + flaws(folder, command)
                if campaign == "readonly":
                    _chmod(folder, 0o755)
            hidden = sorted(p.name for p in folder.rglob(".*"))
            way, found = self.finish(folder, command, log, again, user)
            left = sorted(p.name for p in folder.rglob(".*") if not p.name.endswith(".lock"))
            return {
                "campaign": campaign,
                "command": command,
                **detail,
                "status": status,
                "said": " / ".join(said(log).strip().splitlines()[-1:])[:300],
                "readings": readings(log),
                "hidden": hidden,
                "way": way,
                "left": left,
                "problems": problems + found,
            }
        finally:
            if mounted:
                subprocess.run(["umount", "-l", folder], check=True)
            shutil.rmtree(folder)


def _size(folder: Path) -> int:
    return sum(-(-path.stat().st_size // 4096) * 4096 + 4096 for path in folder.rglob("*"))


def _used(folder: Path) -> int:
    state = os.statvfs(folder)
    return (state.f_blocks - state.f_bfree) * state.f_frsize


def _resize(folder: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True)


def _chmod(folder: Path, mode: int) -> None:
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            with contextlib.suppress(FileNotFoundError):
                path.chmod(mode)


# --- damaged bytes -----------------------------------------------------------------------------------


def damaged(bench: Bench, times: int) -> Iterator[dict[str, Any]]:
    """Damage every file, one at a time, and read it as the package does."""
    for name, paths, read in _readers(bench):
        right = read()
        for path in paths:
            whole = path.read_bytes()
            for kind in ("cut", "flipped"):
                for _ in range(times):
                    place = bench.rng.randrange(len(whole))
                    if kind == "cut":
                        path.write_bytes(whole[:place])
                    else:
                        bit = 1 << bench.rng.randrange(8)
                        path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
                    try:
                        same = read() == right
                        outcome, text = ("same content" if same else "OTHER CONTENT"), ""
                    except DpsynthError as problem:
                        text = str(problem)
                        outcome = "refused" if path.name in text or path.parent.name in text else "NOT NAMED"
                    except Exception as problem:
                        outcome, text = "OTHER ERROR", f"{type(problem).__name__}: {problem}"
                    record = {"command": name, "file": path.name, "kind": kind, "place": place}
                    problems = [f"{outcome}: {text}"] if outcome.isupper() else []
                    yield {
                        "campaign": "bytes",
                        **record,
                        "outcome": outcome,
                        "said": text,
                        "problems": problems,
                    }
            path.write_bytes(whole)


def _posted(ledger: Path, name: str) -> bool:
    """Whether a statistic stands in a ledger's file, which is there as soon as a run begins."""
    try:
        return name in [entry.name for entry in Ledger.open(ledger).entries]
    except DpsynthError:
        return False


Reader = tuple[str, list[Path], Callable[[], object]]


def _readers(bench: Bench) -> Iterator[Reader]:
    """What is damaged, and how it is read."""
    folder, log = bench.new("run")
    prepare(folder, "run", None)
    assert bench.made is not None
    shutil.copytree(bench.made, folder / "made")
    run = RunFolder(folder / "made")

    def model() -> object:
        found = load(run.model)
        record, arrays = apart(found._saved(found._parts, found.model_, found._history))
        return json.dumps(record), {key: value.tobytes() for key, value in arrays.items()}

    yield "model", [run.model / "model.json", run.model / "model.npz"], model
    yield "ledger", [run.ledger], lambda: Ledger.load(run.ledger).to_dict()
    yield "report", [run.report_json], lambda: run.read_report().to_dict()

    for _ in range(50):  # until an interrupt meets the training
        process = start(COMMANDS["run"], folder, log)
        ledger = ledger_beside(folder / "out")
        while not _posted(ledger, "WGAN critic steps"):
            time.sleep(0.01)
        time.sleep(bench.rng.uniform(0, bench.seconds["run"] / 4))
        os.kill(process, signal.SIGINT)
        end(process)
        if RunFolder(folder / "out").interrupted:
            break
        shutil.rmtree(folder / "out", ignore_errors=True)
        ledger.unlink(missing_ok=True)
    left = RunFolder(folder / "out")
    yield "ledger's file", [ledger], lambda: Ledger.open(ledger).to_dict()

    def checkpoint() -> object:
        from dpsynth.wgan.checkpoint import take_checkpoint

        class Read(Exception):
            pass

        ledger = checkpoint_ledger(left.checkpoint).to_dict()
        seen: list[object] = []

        def conform(saved: SavedFit) -> Records:
            record, arrays = apart(saved)
            seen.append((json.dumps(record), {key: value.tobytes() for key, value in arrays.items()}))
            raise Read

        with contextlib.suppress(Read):
            take_checkpoint(left.checkpoint, SavedFit, conform)
        return ledger, seen

    yield "checkpoint", [left.checkpoint / "checkpoint.json", left.checkpoint / "checkpoint.npz"], checkpoint
    config = RunConfig.from_yaml(folder / "run.yaml")
    yield (
        "checkpoint",
        [left.checkpoint_config],
        lambda: _check_checkpoint(left, config, resume=True, force=False),
    )


# --- all of it ---------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--bytes", type=int, default=100)
    parser.add_argument("--campaigns", nargs="+", default=CAMPAIGNS, choices=CAMPAIGNS)
    parser.add_argument("--commands", nargs="+", default=list(COMMANDS), choices=list(COMMANDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("faults.jsonl"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        Path(base).chmod(0o755)
        bench = Bench(Path(base), random.Random(given.seed))
        folder, log = bench.new("run")
        prepare(folder, "run", None)
        assert end(start([*COMMANDS["run"], "--no-evaluate"], folder, log)) == 0, said(log)
        bench.made = folder / "out"
        folder, log = bench.new("run")
        prepare(folder, "run", None)
        assert end(start(QUICK, folder, log)) == 0, said(log)
        bench.whole["quick"] = entries(final_ledger(folder))
        needed = set(given.commands)
        needed |= {"run"} if {"bytes", "copy"} & set(given.campaigns) else set()
        needed |= {"fit"} if "cap" in given.campaigns else set()
        for command in [name for name in COMMANDS if name in needed]:
            bench.undisturbed(command)
            print(f"{command}: {bench.seconds[command]:.2f} s, {bench.bytes[command]:,} bytes", flush=True)
        with given.out.open("a", encoding="utf-8") as file:
            for campaign in given.campaigns:
                if campaign == "bytes":
                    _tell(damaged(bench, given.bytes), file)
                    continue
                if campaign in SHARED:
                    _tell((bench.shared(campaign) for _ in range(given.times)), file)
                    continue
                for command in given.commands:
                    _tell((bench.trial(campaign, command) for _ in range(given.times)), file)


def _tell(trials: Iterator[dict[str, Any]], file: Any) -> None:
    """Write trials, and print how often each outcome came."""
    counts: collections.Counter[tuple[str, ...]] = collections.Counter()
    for trial in trials:
        file.write(json.dumps(trial) + "\n")
        file.flush()
        if trial["campaign"] == "bytes":
            key = (trial["campaign"], trial["command"], trial["file"], trial["kind"], trial["outcome"])
        else:
            key = (trial["campaign"], trial["command"], f"status {trial['status']}", trial["way"])
        counts[key] += 1
        for problem in trial["problems"]:
            print("  PROBLEM", trial["campaign"], trial["command"], problem[:400], flush=True)
    for key, count in sorted(counts.items()):
        print(f"| {' | '.join(key)} | {count} |", flush=True)


if __name__ == "__main__":
    main()
