"""What a table is: schema, private marginals and prior, encoder, files.

The names below are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsynth.releases.marginals import Marginals, release_marginals
    from dpsynth.releases.prior import Prior, fit_prior
    from dpsynth.table.column import Column
    from dpsynth.table.conform import Conformed
    from dpsynth.table.encoder import Encoder
    from dpsynth.table.grid import Grid
    from dpsynth.table.infer import infer
    from dpsynth.table.io import read_table, write_table
    from dpsynth.table.layout import Layout
    from dpsynth.table.schema import Schema, require_reviewed

_HOMES = {
    "Column": "column",
    "Conformed": "conform",
    "Encoder": "encoder",
    "Grid": "grid",
    "Layout": "layout",
    "Marginals": "marginals",
    "Prior": "prior",
    "Schema": "schema",
    "fit_prior": "prior",
    "infer": "infer",
    "read_table": "io",
    "release_marginals": "marginals",
    "require_reviewed": "schema",
    "write_table": "io",
}

__all__ = [
    "Column",
    "Conformed",
    "Encoder",
    "Grid",
    "Layout",
    "Marginals",
    "Prior",
    "Schema",
    "fit_prior",
    "infer",
    "read_table",
    "release_marginals",
    "require_reviewed",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value  # once imported, `infer` must stay the function, not become the module
    return value
