"""Questions of a draft of patients with several rows: each can be named, and its answer counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from visits import diagnoses

from dpsynth.cli import main
from dpsynth.errors import InputError
from dpsynth.patients import infer_patient_schema
from dpsynth.patients.schema import read_schema
from dpsynth.table.remarks import Remark

N, ROWS = 300, 5


def visits() -> pd.DataFrame:
    """Visits of patients. A household repeats too, two columns order rows, and a death ends them."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(N), ROWS)
    place = np.tile(np.arange(ROWS), N)
    dies = rng.random(N) < 0.5
    sex = np.repeat(rng.choice(["F", "M"], N), ROWS).astype(object)
    sex[7] = "F" if sex[7] == "M" else "M"  # a slip
    return pd.DataFrame(
        {
            "patient_id": [f"p{i}" for i in patient],
            "person_id": [f"h{i}" for i in patient // 2],
            "visit": place + 1,
            "day": place * 30 + np.repeat(rng.integers(0, 9, N), ROWS),
            "sex": sex,
            "sodium": rng.normal(140, 4, N * ROWS).round(),
            "died": np.where((place == ROWS - 1) & dies[patient], "yes", "no"),
        }
    )


def asked(remarks: tuple[Remark, ...]) -> dict[str, Remark]:
    return {one.question: one for one in remarks if one.kind == "question"}


def test_every_question_has_an_identifier_and_most_an_answer() -> None:
    """A question that no file of answers can name."""
    made = infer_patient_schema(visits())
    assert [one.text for one in made.questions if not one.question] == []
    found = asked(made.questions)
    assert {"unit", "order", "terminal", "per_patient"} <= {*found}
    for name in ("unit", "order", "terminal", "per_patient"):
        assert len(found[name].answers) > 1


@pytest.mark.parametrize(
    ("question", "column", "answer", "held"),
    [
        ("unit", None, "person_id", lambda schema: schema.unit == "person_id"),
        ("order", None, "visit", lambda schema: schema.order == "visit"),
        ("order", None, "day", lambda schema: schema.order == "day"),
        ("terminal", "died", "terminal", lambda schema: schema.terminal == ("died",)),
        ("terminal", "died", "row", lambda schema: schema.terminal == ()),
        ("per_patient", "sex", "row", lambda schema: "sex" not in schema.per_patient),
        ("most", None, "8", lambda schema: schema.most == 8 and "most" not in schema.rows_unreviewed),
        ("n_public", None, "250", lambda schema: schema.n_public == 250),
        ("per_patient", "sex", "patient", lambda schema: "sex" in schema.per_patient),
    ],
)
def test_an_answer_changes_the_draft(question: str, column: str | None, answer: str, held: object) -> None:
    """An answer that is taken and changes nothing, or one that is asked again."""
    given = {"question": question, "column": column, "answer": answer}
    made = infer_patient_schema(visits(), answers=[given])
    assert callable(held) and held(made.schema)
    assert question not in asked(made.questions)
    if question != "unit":  # of two persons, a household has two rows at one time
        assert made.schema.table.conform(visits()) is not None


def test_items_may_be_two_columns_of_their_own() -> None:
    """A code and its value that become a hundred columns against the owner's word."""
    rng = np.random.default_rng(0)
    labs = pd.DataFrame(
        {
            "patient_id": np.repeat([f"p{i}" for i in range(N)], 4),
            "day": np.tile(np.arange(4), N),
            "item": rng.choice(["sodium", "potassium"], 4 * N),
            "value": rng.normal(100, 4, 4 * N).round(),
        }
    )
    files = {"labs.csv": labs}
    made = infer_patient_schema(files)
    assert {*made.schema.names} == {"day", "sodium", "potassium"}
    given = [{"question": "items", "about": "labs.csv", "answer": "columns"}]
    assert {*infer_patient_schema(files, answers=given).schema.names} == {"day", "item", "value"}


def test_diagnoses_that_come_once_are_asked_about() -> None:
    """A first diagnosis that is drafted as a state that comes and goes."""
    frame = diagnoses(200, seed=1).dropna(subset=["code"]).drop_duplicates(["id", "code"])
    made = infer_patient_schema(frame[["id", "day", "code", "age"]], unit="id", order="day")
    assert asked(made.questions)["once"].column == "code"
    given = [{"question": "once", "column": "code", "answer": "once"}]
    made = infer_patient_schema(frame[["id", "day", "code", "age"]], unit="id", order="day", answers=given)
    assert made.schema.once == ("code",) and "once" not in asked(made.questions)
    assert "once" not in asked(infer_patient_schema(visits()).questions)


def test_a_wrong_word_is_no_answer() -> None:
    """A typing error that counts as the likely answer."""
    with pytest.raises(InputError, match=r"the question 'unit' is answered by one of 'p.*_id', 'p.*_id'"):
        infer_patient_schema(visits(), answers=[{"question": "unit", "answer": "patient"}])


def test_answers_are_kept_in_the_file(tmp_path: Path) -> None:
    """A file of answers without the questions about patients."""
    visits().to_csv(tmp_path / "v.csv", index=False)
    command = ["schema", "infer", str(tmp_path / "v.csv"), "--out", str(tmp_path / "s.yaml")]
    command += ["--answers", str(tmp_path / "a.yaml")]
    assert main(command) == 0
    text = (tmp_path / "a.yaml").read_text()
    at = text.index("- question: terminal")
    (tmp_path / "a.yaml").write_text(text[:at] + text[at:].replace("answer: null", "answer: terminal", 1))
    assert main([*command, "--force"]) == 0
    assert getattr(read_schema(tmp_path / "s.yaml"), "terminal", None) == ("died",)
