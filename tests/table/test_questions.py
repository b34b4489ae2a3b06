"""Questions of a draft, and answers to them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import trap_columns
from trap_columns import Trapped

from dpsynth.cli import main
from dpsynth.errors import InputError, SchemaError
from dpsynth.patients import infer_patient_schema
from dpsynth.table import CsvFormat, Schema, infer_schema, read_table
from dpsynth.table.answers import Answers
from dpsynth.table.remarks import Remark

TABLES = {table.name: table for table in trap_columns.tables()}
#: asked of all columns that they are about, and never needless: privacy wants them
ALWAYS = {"public_list", "row", "n_public"}


def written(table: Trapped, folder: Path) -> pd.DataFrame:
    """The table as its file is read."""
    path = folder / "table.csv"
    form = CsvFormat(sep=";", decimal=",") if table.name == "dots" else CsvFormat()
    table.frame.to_csv(path, index=False, sep=form.sep or ",")
    return read_table(path, csv_format=form)


def likely(remarks: tuple[Remark, ...]) -> list[dict[str, str | None]]:
    """The likely answer to each question."""
    return [
        {"question": one.question, "column": one.column, "about": one.about, "answer": one.answers[0].word}
        for one in remarks
        if one.answers and one.question != "person"
    ]


def test_columns_as_hospitals_have_them_are_asked_about(tmp_path: Path) -> None:
    """A code drafted as a quantity, a placeholder as an age, a person as a row, without a word."""
    traps = right = plain = needless = 0
    silent: list[str] = []
    for table in TABLES.values():
        made = infer_schema(written(table, tmp_path))
        asked = {name: {one.question for one in made.questions if one.column == name} for name in table.frame}
        out = {one.column for one in made.remarks if one.kind == "left out"}
        for trap in table.traps:
            traps += 1
            found = bool(asked[trap.column] & {*trap.ask}) or (
                "identifying" in trap.ask and trap.column in out
            )
            right += found
            silent += [] if found else [f"{table.name}: {trap.column}"]
        rest = {*table.frame} - {trap.column for trap in table.traps}
        plain += len(rest)
        needless += sum(bool(asked[name] - ALWAYS) for name in rest)
    assert traps >= 55 and right >= 0.92 * traps, silent
    assert needless <= 0.1 * plain


@pytest.mark.parametrize("name", TABLES)
def test_a_table_fits_the_draft_of_its_likely_answers(name: str, tmp_path: Path) -> None:
    """An answer that gives a schema which the table's own cells break, or a question for ever."""
    frame = written(TABLES[name], tmp_path)
    answers: list[dict[str, str | None]] = []
    for _ in range(4):  # an answer may lead to another question: a kept column, say
        made = infer_schema(frame, answers=answers)
        assert Schema.from_yaml(made.to_yaml()) == made.schema
        more = [one for one in likely(made.questions) if one not in answers]
        if not more:
            break
        answers += more
    else:
        raise AssertionError(f"still asked: {more}")
    made.schema.conform(frame)


def test_answers_change_what_is_drafted(tmp_path: Path) -> None:
    """An answer that is taken and changes nothing."""
    frame = written(TABLES["placeholders"], tmp_path)
    before, asked = infer_schema(frame).schema, likely(infer_schema(frame).questions)
    after = infer_schema(frame, answers=asked).schema
    assert before["age"].special == (300.0,) and not before["age"].missing
    assert after["age"].missing_codes == (300.0,) and after["age"].missing and not after["age"].special
    died = after["died_on"]
    assert died.missing_codes == ("1900-01-01",) and died.shown(died.bounds[0]) > "2012"
    read = after.conform(frame).frame
    assert read["age"].isna().sum() == (frame["age"].astype(float) == 300).sum() > 0
    assert read["died_on"].isna().sum() == (frame["died_on"] == "1900-01-01").sum()
    codes = infer_schema(
        frame := written(TABLES["codes"], tmp_path),
        answers=[
            {"question": "code_numbers", "column": "icd9_code", "answer": "codes"},
            {"question": "code_numbers", "column": "snomed", "answer": "codes"},
        ],
    ).schema
    assert {"038.00", "250.90"} <= {*codes["icd9_code"].categories} and codes["snomed"].is_categorical
    assert "snomed" not in codes.ignored and {*codes.conform(frame).frame["snomed"]} == {
        *frame["snomed"].astype(str)
    }


def test_other_spellings_are_read_as_the_value(tmp_path: Path) -> None:
    """Two spellings that stay two categories, and a result below what can be measured that stops a fit."""
    frame = written(TABLES["spelling"], tmp_path)
    schema = infer_schema(frame, answers=likely(infer_schema(frame).questions)).schema
    read = schema.conform(frame).frame["gender"].astype(str)
    assert schema["gender"].categories == ("female", "male") and (read == frame["gender"].str.lower()).all()
    frame = written(TABLES["numbers"], tmp_path)
    schema = infer_schema(
        frame,
        answers=[{"question": "below_detection", "column": "troponin", "about": "<0.50", "answer": "limit"}],
    ).schema
    read = schema.conform(frame).frame["troponin"]
    assert schema["troponin"].lower == 0.5 and (read == 0.5).sum() >= (frame["troponin"] == "<0.50").sum() > 0


def test_an_answer_to_another_finding_does_not_count(tmp_path: Path) -> None:
    """A new placeholder taken as missing because another one was."""
    frame = written(TABLES["placeholders"], tmp_path)
    given = [{"question": "placeholder", "column": "age", "about": "999", "answer": "missing"}]
    assert infer_schema(frame, answers=given).schema["age"].special == (300.0,)


def test_wrong_answers_are_named() -> None:
    """A slip in an answers file that is passed over."""
    frame = pd.DataFrame({"age": [*range(20, 80)] * 5 + [300] * 12, "sex": ["F", "M"] * 156})
    with pytest.raises(
        InputError, match="'placeholder' of 'age' is answered by one of 'missing', 'code', 'value'"
    ):
        infer_schema(frame, answers=[{"question": "placeholder", "column": "age", "answer": "gone"}])
    with pytest.raises(InputError, match="unknown field 'anwser'"):
        infer_schema(frame, answers=[{"question": "placeholder", "anwser": "missing"}])
    given = Answers.of([{"question": "placeholder", "column": "agee", "answer": "missing"}])
    infer_schema(frame, answers=given)
    assert given.unused() == ["the answer 'missing' to placeholder of agee is not used: it is not asked here"]


def test_a_file_of_answers_is_made_filled_in_and_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of questions that the command cannot read back, or that loses an answer."""
    table, answers = tmp_path / "table.csv", tmp_path / "answers.yaml"
    TABLES["placeholders"].frame.to_csv(table, index=False)
    command = [
        "schema",
        "infer",
        str(table),
        "--answers",
        str(answers),
        "--out",
        str(tmp_path / "schema.yaml"),
        "--force",
    ]
    assert main(command) == 0
    assert answers.stat().st_mode & 0o077 == 0
    asked = Answers.read(answers).given
    assert {"question": "placeholder", "column": "age"}.items() <= next(
        o for o in asked if o.get("column") == "age"
    ).items()
    text = answers.read_text(encoding="utf-8")
    at = text.index("column: age")
    place = text.index("answer: null", at)
    answers.write_text(
        text[:place] + "answer: missing" + text[place + len("answer: null") :], encoding="utf-8"
    )
    assert main(command) == 0
    assert Schema.from_yaml(tmp_path / "schema.yaml")["age"].missing_codes == (300.0,)
    assert main(command) == 0
    assert (
        next(one for one in Answers.read(answers).given if one.get("column") == "age")["answer"] == "missing"
    )


def test_an_answer_drafts_persons(tmp_path: Path) -> None:
    """Persons whose column has a name of its own, drafted as rows although the owner said otherwise."""
    table, answers = tmp_path / "panel.csv", tmp_path / "answers.yaml"
    TABLES["persons by lopnr"].frame.to_csv(table, index=False)
    answers.write_text("- {question: person, column: lopnr, answer: persons}\n", encoding="utf-8")
    out = tmp_path / "schema.yaml"
    assert (
        main(["schema", "infer", str(table), "--answers", str(answers), "--order", "year", "--out", str(out)])
        == 0
    )
    assert "lopnr" in out.read_text(encoding="utf-8") and "rows:" in out.read_text(encoding="utf-8")
    assert infer_patient_schema(read_table(table), unit="lopnr", order="year").schema.unit == "lopnr"


@pytest.mark.parametrize("name", TABLES)
def test_answers_leave_every_field_unreviewed(name: str, tmp_path: Path) -> None:
    """A limit or a list that came from records with an answer, and that a fit then takes for public."""
    frame = written(TABLES[name], tmp_path)
    made = infer_schema(frame, answers=likely(infer_schema(frame).questions)).schema
    for column in made.columns:
        assert {*column.unreviewed} >= column.model_fields_set - {"name", "unreviewed"}, column


def test_own_words_are_written_into_the_schema() -> None:
    """A meaning of a row that an owner gives and nobody keeps, or a number that ends in a traceback."""
    frame = pd.DataFrame({"age": [*range(20, 80)] * 5, "sex": ["F", "M"] * 150})
    given = [{"question": "row", "answer": "one patient"}, {"question": "n_public", "answer": 300}]
    schema = infer_schema(frame, answers=given).schema
    assert (schema.unit, schema.n_public) == ("one patient", 300)
    with pytest.raises(SchemaError, match="n_public"):
        infer_schema(frame, answers=[{"question": "n_public", "answer": "many"}])


def test_rules_of_answers_and_marked_ones_are_of_one_list() -> None:
    """A second key of constraints, by which a rule that is taken loses those of the answers."""
    rows = {"sbp": [*range(110, 160)] * 4, "dbp": [*range(60, 110)] * 4, "hr_min": 50, "hr_max": 90}
    frame = pd.DataFrame(rows).assign(hr_min=[*range(50, 70)] * 10, hr_max=[*range(70, 90)] * 10)
    given = [{"question": "rule", "about": "dbp <= sbp", "answer": "holds"}]
    made = infer_schema(frame, answers=given)
    assert made.schema.constraints == ("dbp <= sbp",)
    text = made.to_yaml()
    assert Schema.from_yaml(text) == made.schema
    taken = Schema.from_yaml(text.replace("#- hr_min <= hr_max", "- hr_min <= hr_max"))
    assert {*taken.constraints} == {"dbp <= sbp", "hr_min <= hr_max"}
