"""Run the Bayes attack on soft labels: shadow models run the defender's whole procedure.

Each round splits the records at random in halves and runs the procedure on both. So every record is in one of
the two models of a round, and out of the other. Each model is attacked with the models of all *other* rounds
as its shadows. Results are confidential: they use real records without privacy budget.

References
----------
Pedersen (2022), thesis, sections 5.3 (5.13), 5.4 and 5.5. There one defender is attacked. Here each model is
the defender once, which uses all models twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.attempt import COIN, Attempt
from dpsynth.attacks.bayes import (
    Spread,
    fit_gaussians,
    label_logit,
    lowest_fpr,
    membership_probability,
    tpr_at_fpr,
)
from dpsynth.checks import whole
from dpsynth.errors import of_records
from dpsynth.evaluation.estimates import Estimate, auc, quantile, share
from dpsynth.files.storage import OnRound, carry_out, print_nothing
from dpsynth.research.ltu.trainers import digest
from dpsynth.research.soft_labels.procedure import Procedure, derived, halves
from dpsynth.research.soft_labels.targets import Scheme
from dpsynth.research.writing import ResultsPage, Sheet, SheetGroup, share_with_interval

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class LabelledFeatures:
    """Features (n, d), labels (n,) as given, and the true ones if labels were exchanged on purpose."""

    X: Floats
    labels: Codes
    true_labels: Codes | None = None


@dataclass(frozen=True)
class Attacked:
    """Outputs of the models of all rounds, and the attack on them.

    Attributes
    ----------
    members : ndarray of bool, shape (models, n)
        Whether the record was in the model's training set.
    rounds : ndarray of int, shape (models,)
        The round that each model is of.
    logits : dict of str to ndarray of shape (models, n)
        By scheme: logit of each record's label.
    errors : dict of str to dict of str to ndarray of shape (models,)
        By scheme: ``test`` (the other half, labels as given), ``test true`` (its true labels), and
        ``validation`` and ``validation true`` if records for that were given. All in [0, 1].
    """

    members: Flags
    rounds: Codes
    logits: Mapping[str, Floats]
    errors: Mapping[str, Mapping[str, Floats]]

    def log_odds(self, scheme: str, spread: Spread = "record") -> Floats:
        """Log-odds of membership (models, n), each model attacked with the models of the other rounds."""
        gamma = np.empty(self.members.shape)
        for number in np.unique(self.rounds):
            mine, outputs = self.rounds == number, self.logits[scheme]
            fitted = fit_gaussians(outputs[~mine], self.members[~mine], spread)
            gamma[mine] = fitted.log_odds(outputs[mine])
        return gamma

    def aucs(self, scheme: str, spread: Spread = "record") -> Floats:
        """Area under the attack's ROC curve for each model: its accuracy on pairs of one in, one out."""
        pairs = zip(self.log_odds(scheme, spread), self.members, strict=True)
        return np.array([auc(gamma[ours], gamma[~ours]).value for gamma, ours in pairs])

    def membership(self, scheme: str, spread: Spread = "record") -> tuple[Floats, Floats]:
        """Median probability of membership P_IN of each record, over models with it and without it."""
        p = membership_probability(self.log_odds(scheme, spread))
        inside, outside = (
            np.nanmedian(np.where(chosen, p, np.nan), axis=0) for chosen in (self.members, ~self.members)
        )
        return inside, outside

    def error(self, scheme: str, of: str = "test") -> Estimate:
        """Median error over models, with the interval of order statistics."""
        return quantile(self.errors[scheme][of], 0.5)

    def attempts(self, spread: Spread = "record") -> tuple[Attempt, ...]:
        """The attack's results for each scheme: accuracy on pairs, and at a low false positive rate."""
        found = []
        models, n = self.members.shape
        about = f"{models} models of {n // 2} records each, the attacker's shadow models run the procedure"
        closer = "more shadow models, and more than one number of each model"
        for scheme in self.logits:
            gamma = self.log_odds(scheme, spread)
            name = f"Bayes attack on {scheme} labels"
            median = quantile(self.aucs(scheme, spread), 0.5)
            found.append(Attempt(name, "accuracy", median, None, COIN, f"pairs, median over {about}", closer))
            low = tpr_at_fpr(gamma[self.members], gamma[~self.members], max(0.01, lowest_fpr(n)))
            # guesses about one record hang together: the interval is of as many trials as there are records
            wider = share(round(low.tpr.value * n), n)
            chance = Estimate(low.fpr, low.fpr, low.fpr)
            at = f"at a false positive rate of {low.fpr:.3g}; {about}"
            found.append(Attempt(name, "tpr", wider, None, chance, at, closer))
        return tuple(found)

    def page(self, spread: Spread = "record") -> ResultsPage:
        """Return the attack on each scheme, and the errors of its models."""
        models, n = self.members.shape
        attempts = self.attempts(spread)
        kinds = list(next(iter(self.errors.values())))
        reached = Sheet.of(
            "attack",
            "Bayes attack on each kind of labels",
            ("attack", "measure", "reached", "by guessing"),
            [
                [
                    f"{a.attack}, {a.about}",
                    a.measure,
                    share_with_interval(a.found),
                    f"{100 * a.control.value:.1f} %",
                ]
                for a in attempts
                if a.control is not None
            ],
        )
        errors = Sheet.of(
            "errors",
            "Errors of the models, median over them with its interval",
            ("labels", *kinds),
            [
                [name, *(share_with_interval(self.error(name, kind)) for kind in kinds)]
                for name in self.errors
            ],
        )
        return ResultsPage(
            title="Optimally soft labels: the attack and the errors",
            said=("A defence without a formal guarantee: a better attack may find more.",),
            facts=(("Models", f"{models} of {n // 2} records each"),),
            groups=(SheetGroup("attack", "Attack and errors", (reached, errors)),),
            record={"attempts": [attempt.to_dict() for attempt in attempts]},
        )


def attack_procedure(
    procedure: Procedure,
    schemes: Sequence[Scheme],
    records: LabelledFeatures,
    *,
    classes: int,
    validation: LabelledFeatures | None = None,
    rounds: int = 25,
    seed: int = 0,
    folder: str | Path | None = None,
    jobs: int = 1,
    on_round: OnRound = print_nothing,
) -> Attacked:
    """Run the procedure on both halves of random splits, once for each round.

    Parameters
    ----------
    procedure : Procedure
        The defender's procedure.
    schemes : sequence of Scheme
        Compared on the same splits and the same models on halves.
    records : Records
        An even number n. Half of them train a model, the others test it.
    classes : int
        Number of classes.
    validation : Records, optional
        Records that no model is trained on.
    rounds : int
        At least 3, of two models each.
    seed : int
        Seed of the splits and the models.
    folder : path, optional
        Folder of the rounds. The same call goes on after an interruption, or with more rounds.
    jobs : int
        Rounds at a time, in processes of their own.
    on_round : callable, optional
        See :func:`dpsynth.files.storage.carry_out`.

    Raises
    ------
    InputError
        If there are fewer than three rounds, the number of records is odd, or the folder holds rounds of
        other records or settings.
    """
    whole("rounds", rounds, 3)
    if len(records.labels) % 2:
        raise of_records(
            f"records must be an even number, so that halves are equal, not {len(records.labels)}"
        )
    settings = {
        "classifier": repr(procedure.classifier),
        "label_classifier": repr(procedure.label_classifier),
        "splits": procedure.splits,
        "recursions": procedure.recursions,
        "schemes": [repr(scheme) for scheme in schemes],
        "seed": seed,
        "records": digest(
            *(part for table in (records, validation) if table for part in vars(table).values())
        ),
    }
    work = partial(_one_round, procedure, tuple(schemes), records, validation, classes)
    tasks = {f"{number:04d}": derived(seed, number) for number in range(rounds)}
    found = carry_out(work, tasks, folder=folder, settings=settings, jobs=jobs, on_round=on_round)
    return _collected([found[label]["models"] for label in tasks], len(records.labels))


def _one_round(
    procedure: Procedure,
    schemes: tuple[Scheme, ...],
    records: LabelledFeatures,
    validation: LabelledFeatures | None,
    classes: int,
    seed: int,
) -> Mapping[str, Any]:
    parts = halves(records.labels, np.random.default_rng(seed))
    models = []
    for number, (mine, others) in enumerate((parts, parts[::-1])):
        trained = procedure.train(
            records.X[mine], records.labels[mine], classes, schemes, derived(seed, number)
        )
        said = {}
        for name, model in trained.items():
            p = model.predict_proba(records.X)
            errors = _errors("test", p[others], _part(records, others))
            if validation is not None:
                errors |= _errors("validation", model.predict_proba(validation.X), validation)
            logit = np.round(label_logit(p, records.labels), 6)
            said[name] = {"logit": logit.tolist(), "errors": errors}
        models.append({"members": sorted(int(i) for i in mine), "said": said})
    return {"models": models}


def _collected(rounds: Sequence[Sequence[Mapping[str, Any]]], n: int) -> Attacked:
    models = [model for models in rounds for model in models]
    members = np.zeros((len(models), n), dtype=bool)
    for row, model in zip(members, models, strict=True):
        row[model["members"]] = True
    names = list(models[0]["said"])
    kinds = list(models[0]["said"][names[0]]["errors"])
    said = {name: [model["said"][name] for model in models] for name in names}
    logits = {name: np.array([one["logit"] for one in each]) for name, each in said.items()}
    errors = {
        name: {kind: np.array([one["errors"][kind] for one in each]) for kind in kinds}
        for name, each in said.items()
    }
    return Attacked(members, np.repeat(np.arange(len(rounds)), 2), logits, errors)


def _errors(kind: str, p: Floats, records: LabelledFeatures) -> dict[str, float]:
    guessed = p.argmax(axis=1)
    errors = {kind: float((guessed != records.labels).mean())}
    if records.true_labels is not None:
        errors[f"{kind} true"] = float((guessed != records.true_labels).mean())
    return errors


def _part(records: LabelledFeatures, rows: Codes) -> LabelledFeatures:
    true = None if records.true_labels is None else records.true_labels[rows]
    return LabelledFeatures(records.X[rows], records.labels[rows], true)
