"""What an accountant says of the same events: ``python account.py LIBRARY CASES.json``.

A case is a list of parts: ``["gaussian", noise, count]``, ``["laplace", scale, count]`` or ``["training",
noise, sampling_prob, steps]``, under add/remove of one record. Answers: epsilon at a delta, delta at epsilon
1, the largest advantage (total variation), a test's least rate of misses at 10 % false alarms, and the best
accuracy of an attack where three records in ten are members; what a library does not offer is left out.
"""

import json
import math
import sys
import time
import warnings
from pathlib import Path

DELTA, FPR, PRIOR = 1e-5, 0.1, 0.3


def ours(parts):
    from dpsynth import privacy

    made = {
        "gaussian": privacy.gaussian_event,
        "laplace": privacy.laplace_event,
        "training": privacy.training_event,
    }
    profile = privacy.Profile([made[kind](*numbers) for kind, *numbers in parts])
    return {
        "epsilon": profile.epsilon(DELTA),
        "delta": profile.delta(1.0),
        "advantage": profile.tv(),
        "misses": profile.fnr(FPR),
        "accuracy": profile.attack_accuracy(PRIOR),
    }


def dp_accounting(parts):
    pld = _pld(parts)
    larger = 1 - PRIOR
    return {
        "epsilon": pld.get_epsilon_for_delta(DELTA),
        "delta": pld.get_delta_for_epsilon(1.0),
        "advantage": pld.get_delta_for_epsilon(0.0),
        # larger + smaller * delta(log(larger / smaller)): its curve read at another point
        "accuracy": larger + PRIOR * pld.get_delta_for_epsilon(math.log(larger / PRIOR)),
    }


def riskcal(parts):
    from riskcal.analysis import get_advantage_from_pld, get_bayes_risk_from_pld, get_beta_from_pld

    pld = _pld(parts)
    return {
        "advantage": float(get_advantage_from_pld(pld)),
        "misses": float(get_beta_from_pld(pld, alpha=FPR)),
        # its Bayes risk is the error of the best attack, with the base model of the larger class
        "accuracy": 1 - float(get_bayes_risk_from_pld(pld, base_model=1 - PRIOR)),
    }


def autodp(parts):
    from autodp.mechanism_zoo import GaussianMechanism, LaplaceMechanism
    from autodp.transformer_zoo import AmplificationBySampling, Composition

    mechanisms, counts = [], []
    for kind, noise, *rest in parts:
        if kind == "training":
            amplified = AmplificationBySampling(PoissonSampling=True)
            base = GaussianMechanism(sigma=noise)
            base.neighboring = "add_remove"
            mechanisms.append(amplified(base, rest[0], improved_bound_flag=True))
        else:
            mechanisms.append(
                GaussianMechanism(sigma=noise) if kind == "gaussian" else LaplaceMechanism(b=noise)
            )
        counts.append(rest[-1])
    return {"epsilon": float(Composition()(mechanisms, counts).get_approxDP(DELTA))}


def _pld(parts):
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant

    accountant = pld_privacy_accountant.PLDAccountant()
    for kind, noise, *rest in parts:
        event = (dp_event.LaplaceDpEvent if kind == "laplace" else dp_event.GaussianDpEvent)(noise)
        if kind == "training":
            event = dp_event.PoissonSampledDpEvent(rest[0], event)
        accountant.compose(event, rest[-1])
    return accountant._pld


def main():
    warnings.simplefilter("ignore")
    library = {"ours": ours, "dp_accounting": dp_accounting, "riskcal": riskcal, "autodp": autodp}[
        sys.argv[1]
    ]
    found = {}
    library([["gaussian", 3.0, 1]])  # imports are nobody's seconds
    for name, parts in json.loads(Path(sys.argv[2]).read_text()).items():
        begun = time.perf_counter()
        try:
            found[name] = library(parts)
        except Exception as problem:
            found[name] = {"failed": f"{type(problem).__name__}: {problem}"}
        found[name]["seconds"] = time.perf_counter() - begun
    print(json.dumps(found))


if __name__ == "__main__":
    main()
