"""What is secret is drawn with all its bits, each time anew."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from dpsynth.privacy import records as partitioned
from dpsynth.privacy.events import gaussian_event
from dpsynth.privacy.noise import secure_generator
from dpsynth.privacy.records import FrameRecords, PartitionedRecords
from dpsynth.privacy.stages import Entry, Stage
from dpsynth.table.schema import Column, Schema

ENTRY = Entry("count", gaussian_event(1.0), "1")
TABLE = SimpleNamespace(parts=[], rows=0, empty=lambda reader: pd.DataFrame())
SCHEMA = Schema(columns=(Column(name="a", kind="integer", lower=0, upper=9),))


def salt_of_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> str:
    from dpsynth.wgan.checkpoint import recognised

    records = FrameRecords(pd.DataFrame({"a": [1]}))
    with records.opened():
        return recognised(records)["salt"]


def key_of_hashed_identifiers(monkeypatch: pytest.MonkeyPatch) -> str:
    keys = []
    monkeypatch.setattr(
        partitioned, "each", lambda client, work, parts: keys.append(work.keywords["key"]) or []
    )
    PartitionedRecords(TABLE, SCHEMA, None).check()
    return keys[0]


def key_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> str:
    words = secure_generator().bit_generator.state["s"]["seed"][:2]
    return "".join(f"{int(word):016x}" for word in words)


SECRETS = {
    "noise": (32, key_of_the_noise),
    "salt of a checkpoint": (32, salt_of_a_checkpoint),
    "entry of a ledger": (16, lambda _: ENTRY.with_key().keys[-1]),
    "stage of a ledger": (16, lambda _: Stage.begin().key),
    "hashes of identifiers": (16, key_of_hashed_identifiers),
    "rows that are kept, and places in cells": (
        16,
        lambda _: f"{2 * PartitionedRecords(TABLE, SCHEMA, None)._reader.seed:016x}",
    ),
}


#: It waits for TensorFlow.
SLOW = ("salt of a checkpoint",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SECRETS]
)
def test_secrets_have_all_their_bits(name, monkeypatch):
    """Catches a salt of 4 bits, all of which an attacker can try, and a key that stays the same.

    Of 1,000 secrets of 16 bits, two would be equal in all but 5 of 10,000 runs. Each digit has each of its
    16 values, the last one of a seed of 63 bits the 8 even ones.
    """
    digits, draw = SECRETS[name]
    drawn = [draw(monkeypatch) for _ in range(1000)]
    assert {len(secret) for secret in drawn} == {digits}
    assert len(set(drawn)) == len(drawn)
    for place in range(digits):
        seen = {secret[place] for secret in drawn}
        assert len(seen) == (8 if name.startswith("rows") and place == digits - 1 else 16)
