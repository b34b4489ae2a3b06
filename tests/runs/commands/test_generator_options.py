"""Options of a generator on the command line, which its class alone lists."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from dpsynth.errors import InputError
from dpsynth.runs.commands.own_options import GeneratorCommand, generator_options, option_names
from dpsynth.synthesis.generators import GENERATORS


def given(*words):
    """The generator's options and what is left for the command, from the words of a command line."""
    app, seen = typer.Typer(), {}

    @app.command(cls=GeneratorCommand)
    def command(context: typer.Context, file: str = typer.Argument(None), out: str = "") -> None:
        seen.update(options=generator_options(context), file=file, out=out)

    result = CliRunner().invoke(app, list(words))
    if isinstance(result.exception, InputError):
        raise result.exception
    seen["code"] = result.exit_code
    return seen


def test_options_of_any_generator_are_taken_with_their_values():
    """Catches a value read as a file, a lost type, and a part of an option that replaces the whole."""
    seen = given("--steps", "1000", "my.yaml", "--batch-size=50", "--out", "x", "--noise-shape", "layerwise",
                 "--training.penalty", "data", "--training.critic-hidden", "[8, 8]",
                 "--training.critic-learning-rate", "1e-3")  # fmt: skip
    training = {"penalty": "data", "critic_hidden": [8, 8], "critic_learning_rate": 1e-3}
    assert seen["options"] == {
        "steps": 1000,
        "batch_size": 50,
        "noise_shape": "layerwise",
        "training": training,
    }
    assert (seen["file"], seen["out"]) == ("my.yaml", "x")


def test_every_option_of_a_generator_has_a_name():
    """Catches an option that a class has and no command can ask for."""
    apart = {"epsilon", "delta", "studies", "statistics", "accept_unreviewed"}
    for each in GENERATORS.values():
        assert set(each._get_param_names()) - apart <= set(option_names().values())


def test_what_is_wrong_is_said():
    """Catches a misspelt option that is swallowed, one without a value, and one given twice in two ways."""
    assert given("--stepss", "3")["code"] == 2
    with pytest.raises(InputError, match="--steps needs a value"):
        given("--steps")
    with pytest.raises(InputError, match=r"--training\.penalty is a part of --training"):
        given("--training", "x", "--training.penalty", "data")
