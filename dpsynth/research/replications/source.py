"""Where a study's records are: a data set with a card, or a cohort of MIMIC-III."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dpsynth import datasets
from dpsynth.datasets.cohorts.extraction import extract
from dpsynth.datasets.cohorts.studies import find_study
from dpsynth.datasets.table import Table
from dpsynth.errors import InputError
from dpsynth.research.replications.protocol import Protocol
from dpsynth.table.csv_format import CsvFormat
from dpsynth.table.schema import Schema


def schema_of(protocol: Protocol) -> Schema:
    """Return the schema of a protocol's table, without a look at its records.

    Raises
    ------
    InputError, DataError
        If there is no such cohort or data set.
    """
    if protocol.dataset is not None:
        return datasets.card(protocol.dataset).table
    return find_study(str(protocol.cohort)).schema


@dataclass(frozen=True)
class Source:
    """Where the records of a study on MIMIC-III are; nothing for a data set with a card.

    Attributes
    ----------
    tables : Path, optional
        The folder of MIMIC-III's files.
    data : Path, optional
        A cohort that was made of them before.
    csv_format : CsvFormat, optional
        How ``data`` is written, if it is a CSV file; what it leaves open is guessed.
    """

    tables: Path | None = None
    data: Path | None = None
    csv_format: CsvFormat | None = None

    def check(self, protocol: Protocol) -> None:
        """Refuse what a protocol has no use for, or lacks.

        Raises
        ------
        InputError
        """
        if self.data is None and self.csv_format not in (None, CsvFormat()):
            raise InputError("--sep, --decimal and --encoding say how --data is written; give --data too")
        if protocol.dataset is not None:
            given = "--tables" if self.tables is not None else "--data" if self.data is not None else None
            if given:
                raise InputError(
                    f"{given} is for studies on MIMIC-III; {protocol.name} is on {protocol.dataset}"
                )
            return
        if self.tables is not None and self.data is not None:
            raise InputError("give --tables or --data, not both: the second is what was made of the first")
        if self.tables is None and self.data is None:
            raise InputError(
                f"{protocol.name} needs records of MIMIC-III: give --tables, the folder of its files, or "
                f"--data, the table that `dpsynth cohort mimic3 --study {protocol.cohort}` made"
            )

    def load(self, protocol: Protocol) -> Table:
        """Return the table with a public number of records: studies print theirs.

        Raises
        ------
        InputError, DataError
            If the table cannot be had.
        """
        table = self._load(protocol)
        if table.schema.n_public is not None:
            return table
        return replace(table, schema=table.schema.with_n_public(len(table.frame)))

    def _load(self, protocol: Protocol) -> Table:
        if protocol.dataset is not None:
            return datasets.load(protocol.dataset)
        if self.data is not None:
            return datasets.open_table(
                self.data, schema_of(protocol), protocol.cohort, csv_format=self.csv_format
            )
        assert self.tables is not None
        cohort = extract(find_study(str(protocol.cohort)), self.tables)
        return Table(cohort.frame.reset_index(drop=True), cohort.study.schema, cohort.study.name)

    def told(self, protocol: Protocol, table: Table) -> str:
        """Return in words where the records are from."""
        where = self.tables or self.data
        return f"{protocol.records}: {table.card.title if table.card else where}"


#: of a data set with a card
ON_A_CARD = Source()
