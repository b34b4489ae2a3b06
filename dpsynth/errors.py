"""Exceptions of dpsynth, one class a kind of fault.

::

    DpsynthError
    ├── InputError (ValueError)
    │   ├── SchemaError
    │   ├── DataError
    │   └── ConfigError
    ├── PrivacyError
    ├── NotFittedError (ValueError, AttributeError)
    └── RunError
        └── RejectionError

The command line exits with 2 after an InputError or a PrivacyError, and with 1 after others.
"""

from __future__ import annotations

#: The mark of what was computed from private records without payment, in messages, tables and reports.
CONFIDENTIAL = "confidential"


#: characters of a message at most: what it quotes of a file may be a cell of any length
LONGEST = 4_000


class DpsynthError(Exception):
    """Base of all exceptions raised by dpsynth. Its message can be printed, and is not longer than `LONGEST`.

    Examples
    --------
    >>> len(str(DpsynthError("x" * 10**6)))
    4000
    """

    def __init__(self, message: object = "") -> None:
        text = str(message).encode(errors="backslashreplace").decode()
        half = LONGEST // 2
        super().__init__(text if len(text) <= LONGEST else f"{text[: half - 5]} ... {text[-half:]}")


class InputError(DpsynthError, ValueError):
    """An argument, a column or a row is wrong. The message names it and its value."""


class SchemaError(InputError):
    """A schema is wrong or incomplete."""


class DataError(InputError):
    """A table does not fit its schema, or a file cannot be read."""


class ConfigError(InputError):
    """A run configuration is wrong."""


class PrivacyError(DpsynthError):
    """The request would void the privacy guarantee or exceed its budget."""


class NotFittedError(DpsynthError, ValueError, AttributeError):
    """A method that needs a fitted model was called before ``fit``."""


class OwnerWarning(UserWarning):
    """Something about the private table that its owner should know, and nobody else."""


class RunError(DpsynthError):
    """A run failed although its input was right."""


class RejectionError(RunError):
    """A rule refuses nearly every record that the model generates. The message names it."""


def of_records(message: str) -> DataError:
    """Give the error of a message that quotes a value, a row or a number of private records, and mark it so.

    Examples
    --------
    >>> of_records("column 'age', row 3: 'x' is not a number")
    DataError("column 'age', row 3: 'x' is not a number (confidential)")
    """
    return DataError(f"{message} ({CONFIDENTIAL})")
