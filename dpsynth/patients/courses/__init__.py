"""Courses of columns over a patient's rows, each kind in a file of its own and listed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsynth.patients.courses.categories import CategoryCourse
from dpsynth.patients.courses.chronic import ChronicCourse
from dpsynth.patients.courses.course import ColumnCourse, RowCourse, RowTable
from dpsynth.patients.courses.increasing import IncreasingCourse
from dpsynth.patients.courses.once import OnceCourse
from dpsynth.patients.courses.terminal import TerminalCourse
from dpsynth.table.column import Column

#: Courses that a schema declares, by the word that stands behind ``over_time``.
OVER_TIME: dict[str, type[ColumnCourse]] = {
    "chronic": ChronicCourse,
    "increasing": IncreasingCourse,
    "once": OnceCourse,
    "terminal": TerminalCourse,
}


def small_categories(courses: Sequence[RowCourse]) -> list[Column]:
    """The categories of so few values that tables of two of them have enough counts."""
    return [course.column for course in courses if isinstance(course, CategoryCourse) and course.few]


def row_tables(courses: Sequence[RowCourse], parents: Mapping[str, str] | None = None) -> list[RowTable]:
    """The tables of all courses, in their order.

    ``parents``: for each of `small_categories`, an earlier one, by default the one before it. The number of
    tables does not depend on them.
    """
    few = {column.name: column for column in small_categories(courses)}
    names = [*few]
    parents = dict(zip(names[1:], names, strict=False)) if parents is None else parents
    given = {name: few[parent] for name, parent in parents.items()}
    return [table for course in by_turn(courses) for table in course.tables(given)]


def by_turn(courses: Sequence[RowCourse]) -> list[RowCourse]:
    """Courses as they are drawn."""
    return sorted(courses, key=lambda course: course.turn)
