"""What the words of a page mean, in one sentence each."""

from __future__ import annotations

from dpsynth.report.page.blocks import Facts, Section, Sentence, paragraph

# About the guarantee, and so on every page.
_OF_GUARANTEES = {
    "ε (epsilon) and δ (delta)": (
        "Any event is at most e^ε times as probable with a patient in the table as without (or with another "
        "in their place, if that is the adjacency), plus at most δ; "
        "smaller is safer."
    ),
    "total variation": (
        "The largest amount by which one patient's record can change the probability of any event; it is "
        "also the most that a membership test can gain."
    ),
    "membership inference": (
        "An attack that guesses whether a given patient's record was in the training table."
    ),
    "attack accuracy": (
        "How often such a guess is right when half of those tested were in the table; a coin is right 50 "
        "times in 100."
    ),
    "trade-off curve": (
        "The smallest share of members that a test can miss, for each share of non-members that it suspects "
        "wrongly."
    ),
    "ledger": (
        "The list of every reading of the private table, with its noise; anybody can recompute the guarantee "
        "from it."
    ),
}
# About effects of studies, whether released or measured.
_OF_EFFECTS = {
    "odds ratio, hazard ratio": (
        "How many times the odds, or the rate, of an outcome grow with one unit of a term; 1 is no effect."
    ),
    "interval": (
        "The range that a number could well have had with other records of the same kind; with 95 % "
        "confidence where nothing else is said."
    ),
}
# Where studies were declared.
_OF_STUDIES = {
    "declared study": (
        "A regression that was named before the fit: part of the budget bought its estimates, and their "
        "intervals hold both the sampling of the records and the noise for privacy."
    ),
    "naive": (
        "Said of a regression fitted to the synthetic table as if its records had been observed: its "
        "intervals are too short, and it is not valid as inference."
    ),
}
# About numbers that are measured on real records.
_OF_MEASURES = {
    "AUC": (
        "The probability that a classifier ranks a record with the outcome above one without; 0.5 is blind "
        "guessing, 1 is perfect."
    ),
    "calibration": (
        "Whether predicted risks are the observed ones: of the patients given a risk of 20 %, 20 in 100 "
        "should have the outcome."
    ),
    "total variation distance of a column (tvd)": (
        "The share of records that would have to change for two distributions to be the same."
    ),
    "percentile error, ratio of standard deviations": (
        "How far the value that one record in a hundred exceeds (or stays below) is from the real table's, "
        "in standard deviations of the real column; and how many times as widely values spread as there."
    ),
    "nearest-neighbour accuracy": (
        "How often a record is nearer to its own table than to the other: 0.5 when they mix, 0 for copies, 1 "
        "for strangers."
    ),
    "privacy loss": (
        "Nearest-neighbour accuracy against held-out minus against training records: above 0, synthetic "
        "records lie nearer to those they were made from."
    ),
    "overlap": (
        "How much of two intervals is shared, as a part of each, averaged: 1 for equal intervals, 0 or less "
        "for disjoint ones."
    ),
    "internal": (
        "Computed from real records without payment: not covered by the guarantee, and not for release."
    ),
}


def section(*, internal: bool, studies: bool) -> Section:
    """Return one sentence on each word; a page needs none about numbers that it does not show.

    ``studies`` says whether the page shows estimates of declared studies.
    """
    chosen = _OF_GUARANTEES | (_OF_STUDIES if studies else {})
    chosen |= (_OF_EFFECTS if internal or studies else {}) | (_OF_MEASURES if internal else {})
    words = tuple((word, Sentence(text)) for word, text in chosen.items())
    start = paragraph(
        "Read the summary first: its findings follow written rules. Bounds of the guarantee are rounded up; "
        "measured numbers depend on the records, and come with intervals where these are known."
    )
    return Section("glossary", "How to read this page", (start, Facts(words)))
