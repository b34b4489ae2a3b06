"""Events: frozen descriptions of what read private records.

An event is one of dp_accounting's ``DpEvent`` classes or of :mod:`dpsynth.privacy.epsilon_delta`. The
table ``_FIELDS`` lists all events that this package accounts for. Any other is refused by name, never
guessed. Noise multipliers, epsilons and deltas of an event are always those **under add/remove one record**.
Epsilons are finite, noise multipliers greater than 0 and possibly infinite, counts at least 1. Arguments out
of range or NaN raise InputError by name.

dp_accounting is imported inside the functions, because it takes most of a second to load.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpsynth.checks import in_range, positive, whole
from dpsynth.errors import DataError, InputError, PrivacyError

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

_FIELDS: dict[str, tuple[str, ...]] = {
    "NoOpDpEvent": (),
    "NonPrivateDpEvent": (),
    "GaussianDpEvent": ("noise_multiplier",),
    "LaplaceDpEvent": ("noise_multiplier",),
    "EpsilonDeltaDpEvent": ("epsilon", "delta"),
    "ApproxTvDpEvent": ("epsilon", "delta", "tv"),
    "BoundedRangeDpEvent": ("epsilon",),
    "PoissonSampledDpEvent": ("sampling_probability", "event"),
    "SelfComposedDpEvent": ("event", "count"),
    "ComposedDpEvent": ("events",),
}
_WORDS = {
    "NoOpDpEvent": "no cost",
    "NonPrivateDpEvent": "not private",
    "GaussianDpEvent": "Gaussian noise, multiplier {e.noise_multiplier:.6g}",
    "LaplaceDpEvent": "Laplace noise, multiplier {e.noise_multiplier:.6g}",
    "EpsilonDeltaDpEvent": "({e.epsilon:.6g}, {e.delta:.6g})-DP mechanism",
    "ApproxTvDpEvent": "({e.epsilon:.6g}, {e.delta:.6g})-DP mechanism of total variation {e.tv:.6g}",
    "BoundedRangeDpEvent": "exponential mechanism, epsilon {e.epsilon:.6g}",
    "PoissonSampledDpEvent": "{inner}, on Poisson batches with probability {e.sampling_probability:.6g}",
    "SelfComposedDpEvent": "{e.count} x [{inner}]",
}


def event_class(name: str) -> type[DpEvent]:
    """Return the event class called ``name``, or raise PrivacyError if it cannot be accounted for."""
    if name not in _FIELDS:
        raise PrivacyError(f"cannot account for {name}: this package knows {', '.join(_FIELDS)}")
    if name in ("EpsilonDeltaDpEvent", "ApproxTvDpEvent", "BoundedRangeDpEvent"):
        from dpsynth.privacy import epsilon_delta

        return getattr(epsilon_delta, name)
    from dp_accounting import dp_event

    return getattr(dp_event, name)


def kind_of(event: DpEvent) -> str:
    """Return the class name of an event that can be accounted for. A subclass of a known one cannot."""
    name = type(event).__name__
    if type(event) is not event_class(name):
        raise PrivacyError(f"cannot account for {type(event).__module__}.{name}: only its namesake is known")
    return name


def gaussian_event(noise_multiplier: float, count: int = 1) -> DpEvent:
    """Event of ``count`` Gaussian mechanisms whose noise std is ``noise_multiplier`` times the L2
    sensitivity."""
    event = event_class("GaussianDpEvent")(positive("noise_multiplier", noise_multiplier))
    return _repeated(event, whole("count", count))


def epsilon_delta_event(epsilon: float, delta: float = 0.0, count: int = 1) -> DpEvent:
    """Event of ``count`` mechanisms, each ``(epsilon, delta)``-DP under add/remove one record.

    An exponential mechanism is one with ``delta=0``, but costs less: see :func:`exponential_mechanism_event`.

    Examples
    --------
    >>> epsilon_delta_event(0.25, count=3)
    SelfComposedDpEvent(event=EpsilonDeltaDpEvent(epsilon=0.25, delta=0.0), count=3)
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    delta = in_range("delta", delta, 0.0, 1.0)
    return _repeated(event_class("EpsilonDeltaDpEvent")(epsilon, delta), whole("count", count))


def approx_tv_event(epsilon: float, tv: float, delta: float = 0.0, count: int = 1) -> DpEvent:
    """Event of ``count`` mechanisms, each ``(epsilon, delta)``-DP with total variation at most ``tv``.

    It describes the staircase mechanism exactly (Ghazi and Issa 2024, appendix K-2).
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    delta = in_range("delta", delta, 0.0, 1.0)
    tv = in_range("tv", tv, 0.0, 1.0)
    return _repeated(event_class("ApproxTvDpEvent")(epsilon, delta, tv), whole("count", count))


def exponential_mechanism_event(epsilon: float, count: int = 1) -> DpEvent:
    """Event of ``count`` exponential mechanisms, each choosing by weights ``exp(epsilon score / 2)``.

    The scores have sensitivity 1 under add/remove one record. Each mechanism is (epsilon, 0)-DP. Its losses
    lie within some interval of length epsilon (Durfee and Rogers 2019). So many of them cost, in squares,
    about a third of the worst (epsilon, 0)-DP mechanisms.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    return _repeated(event_class("BoundedRangeDpEvent")(epsilon), whole("count", count))


def laplace_event(noise_multiplier: float, count: int = 1) -> DpEvent:
    """Event of ``count`` Laplace mechanisms whose scale is ``noise_multiplier`` times the L1 sensitivity."""
    event = event_class("LaplaceDpEvent")(positive("noise_multiplier", noise_multiplier))
    return _repeated(event, whole("count", count))


def training_event(noise_multiplier: float, sampling_prob: float, steps: int) -> DpEvent:
    """Event of a training run: ``steps`` noisy sums over Poisson batches.

    Each record joins a batch with probability ``sampling_prob``, in (0, 1]. The noise std of every step is
    ``noise_multiplier`` times that step's add/remove sensitivity, so the multiplier is constant and
    sensitivities may depend on earlier outputs.
    """
    sampling_prob = in_range("sampling_prob", sampling_prob, 0.0, 1.0, low_open=True)
    step = gaussian_event(noise_multiplier)
    if sampling_prob < 1.0:
        step = event_class("PoissonSampledDpEvent")(sampling_prob, step)
    return _repeated(step, whole("steps", steps))


def non_private_event() -> DpEvent:
    """Event of a statistic without any guarantee, which makes every epsilon infinite."""
    return event_class("NonPrivateDpEvent")()


def _repeated(event: DpEvent, count: int) -> DpEvent:
    return event if count == 1 else event_class("SelfComposedDpEvent")(event, count)


def check_event(event: DpEvent) -> None:
    """Refuse an event that is unknown (PrivacyError) or has a number out of range or NaN (InputError).

    Noise multipliers may be 0 (no privacy) or infinite (no cost).
    """
    name = kind_of(event)
    for field in _FIELDS[name]:
        value, label = getattr(event, field), f"{field} of {name}"
        if field in ("event", "events"):
            for inner in value if field == "events" else [value]:
                check_event(inner)
        elif field == "count":
            whole(label, value)
        elif field in ("noise_multiplier", "epsilon"):
            in_range(label, value, 0.0, math.inf, high_open=field == "epsilon")
        else:
            in_range(label, value, 0.0, 1.0)


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """Return an event as a dictionary that JSON can hold, or raise InputError for infinite noise."""
    check_event(event)
    name = kind_of(event)
    record: dict[str, Any] = {"type": name}
    for field in _FIELDS[name]:
        value = getattr(event, field)
        if field == "event":
            record[field] = event_to_dict(value)
        elif field == "events":
            record[field] = [event_to_dict(inner) for inner in value]
        elif field == "count":
            record[field] = int(value)
        elif math.isfinite(value):
            record[field] = float(value)
        else:
            raise InputError(f"{field} of {name} must be finite to be recorded, not {value}")
    return record


def event_from_dict(record: Mapping[str, Any]) -> DpEvent:
    """Inverse of :func:`event_to_dict`, raising DataError for a record that is no event."""
    if not isinstance(record, Mapping) or not isinstance(record.get("type"), str):
        raise DataError(f"an event must be a mapping with a text 'type', not {record!r}")
    name = record["type"]
    cls = event_class(name)
    if set(record) != {"type", *_FIELDS[name]}:
        raise DataError(
            f"{name} must have the fields {['type', *_FIELDS[name]]}, not {sorted(map(str, record))}"
        )
    values = dict(record)
    del values["type"]
    if "event" in values:
        values["event"] = event_from_dict(values["event"])
    if "events" in values:
        if not isinstance(values["events"], list):
            raise DataError(f"events of {name} must be a list, not {values['events']!r}")
        values["events"] = [event_from_dict(inner) for inner in values["events"]]
    event = cls(**values)
    try:
        check_event(event)
    except InputError as error:
        raise DataError(f"cannot read an event: {error}") from None
    return event


def describe_event(event: DpEvent) -> str:
    """Describe an event in one short line.

    Examples
    --------
    >>> describe_event(training_event(1.1, 0.01, 1000))
    '1000 x [Gaussian noise, multiplier 1.1, on Poisson batches with probability 0.01]'
    """
    name = kind_of(event)
    if name == "ComposedDpEvent":
        return " + ".join(describe_event(inner) for inner in event.events) or "nothing"
    inner = describe_event(event.event) if "event" in _FIELDS[name] else ""
    return _WORDS[name].format(e=event, inner=inner)
