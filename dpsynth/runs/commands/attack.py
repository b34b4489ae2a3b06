"""``dpsynth attack``: what attackers reach, beside what is proved; one module an attack."""

from __future__ import annotations

import typer

from dpsynth.runs.commands import attack_audit, attack_synthetic

app = typer.Typer(
    help="Attack a model, a training run or a synthetic table, beside what is proved.",
    rich_markup_mode=None,
    add_completion=False,
)


app.command("synthetic")(attack_synthetic.attack_table)
app.command("audit")(attack_audit.audit_releases)
