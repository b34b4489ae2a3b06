"""Who is covered: which records trained, which were held out, and what follows for each of them.

Numbers of records are internal; the way of the split and its share are public, as the configuration is.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpsynth.report.formats import hundredths, shown
from dpsynth.report.page.blocks import Sentence
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts.verdict import get, number_of


def covered(report: RunReport) -> tuple[Sentence, ...]:
    """Return who is covered, in sentences; the first one is for the summary. Empty where nothing is known.

    Examples
    --------
    >>> config = {"split": {"method": "independent", "test_fraction": 0.5}}
    >>> print(covered(RunReport(config=config))[0].text)
    About 50 in 100 records of the real table trained the model; nothing was released of the others, which
    were held out.
    """
    trained, held_out = (get(report.measured, name) for name in ("train_records", "test_records"))
    split = report.config.get("split")
    split = split if isinstance(split, Mapping) else {}
    fraction = split.get("test_fraction")
    internal = any(measure is not None and measure.internal for measure in (trained, held_out))
    if trained is not None:
        of = "" if held_out is None else f" of {shown(int(number_of(trained) + number_of(held_out)))}"
        text = f"{shown(trained.value)}{of} real records trained the model"
        if held_out is not None and split:
            text += (
                f"; nothing was released of the other {shown(held_out.value)}, which were held out to test it"
            )
        elif held_out is not None:
            text += f", as far as is known, and the other {shown(held_out.value)} had no part in it"
        first = Sentence(f"{text}.", internal)
    elif isinstance(fraction, int | float):
        first = Sentence(
            f"About {hundredths(1 - fraction)} in 100 records of the real table trained the model; nothing "
            "was released of the others, which were held out."
        )
    else:
        return ()
    return (first, *_more(report, split, measured=internal))


def _more(report: RunReport, split: Mapping[str, object], *, measured: bool) -> list[Sentence]:
    sentences: list[str] = []
    if split.get("method") == "independent":
        sentences.append(
            "Each record was assigned by itself, by a hash of its values and, of equal records, of its "
            "number among them: one record more in the table is at most one more in training."
        )
    elif split.get("method") == "stratified":
        sentences.append(
            "The records were divided in exact numbers and in proportion to the outcome, so that one "
            "record more can move others from one part to the other: the guarantee is about the training "
            "part as it is."
        )
    if report.guarantee is not None and report.guarantee.private:
        sentences.append(
            "The guarantee is for each training record. It is for each person only if nobody has more "
            "than one: several records of one person are covered at a much weaker level."
        )
    if measured:
        sentences.append(
            "The numbers on this page that are marked internal were computed from the training records "
            "and from the held-out ones. No guarantee covers these numbers, for either."
        )
    return [Sentence(text) for text in sentences]
