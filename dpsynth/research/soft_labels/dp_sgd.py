"""TensorFlow Privacy's network as a classifier: the baseline of Pedersen (2022), trained by DP-SGD.

Its Keras models need an older Keras, which is chosen before TensorFlow is imported. So all training happens
in a process of its own, one for each process that asks, which lives until its parent ends. The caller's
TensorFlow, if any, is left alone.

References
----------
Pedersen (2022), thesis, section 5.4. Abadi et al. (2016), "Deep learning with differential privacy".
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import in_range, positive, tf_privacy_module, whole
from dpsynth.errors import RunError, of_records
from dpsynth.privacy.events import training_event
from dpsynth.privacy.ledger import Ledger

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


Floats = NDArray[np.float64]
Weights = tuple[NDArray[np.float32], ...]

_ABSENT = (
    "the DP-SGD network needs tensorflow-privacy and tf-keras: pip install 'dpsynth-health[defenses]', "
    "Python 3.11; every other classifier works without them"
)


def available() -> bool:
    """Whether the packages that the network needs are installed."""
    return all(find_spec(name) is not None for name in ("tensorflow_privacy", "tf_keras"))


@dataclass(frozen=True)
class DPSGDNetwork:
    """A fully connected ReLU network trained with DP-SGD. The defaults are those of Pedersen (2022).

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    noise_multiplier : float
        Noise std of a batch's gradient sum in units of ``clip``, at least 0.
    clip : float
        L2 norm to which each record's gradient is clipped.
    learning_rate : float
        Above 0.
    batch_size : int
        Each record is a microbatch. A last batch that would be smaller is left out.
    l2 : float
        Times the sum of squared weights in the loss, outside of the clipping: it reads no record.
    dropout : float
        In [0, 1), after the second hidden layer.
    epochs : int
        At least 1.

    Notes
    -----
    A seed fixes initial weights and the order of records. Noise and dropout are TensorFlow's own random
    numbers and never repeat.
    """

    hidden: tuple[int, ...] = (512, 256, 128)
    noise_multiplier: float = 0.5
    clip: float = 3.0
    learning_rate: float = 0.05
    batch_size: int = 20
    l2: float = 0.01
    dropout: float = 0.2
    epochs: int = 6

    def __post_init__(self) -> None:
        for width in self.hidden:
            whole("hidden", width)
        in_range("noise_multiplier", self.noise_multiplier, 0.0, 1e6)
        positive("clip", self.clip)
        positive("learning_rate", self.learning_rate)
        in_range("l2", self.l2, 0.0, 1e6)
        in_range("dropout", self.dropout, 0.0, 1.0, high_open=True)
        whole("batch_size", self.batch_size)
        whole("epochs", self.epochs)

    def fit(self, X: Floats, targets: Floats, seed: int) -> FittedNetwork:
        """Train on features of shape (n, d) and target probabilities of shape (n, classes).

        Raises
        ------
        InputError
            If there are fewer records than a batch has.
        RunError
            If TensorFlow Privacy or tf-keras is not installed, or training fails.
        """
        if len(X) < self.batch_size:
            raise of_records(f"a batch has {self.batch_size} records, but there are {len(X)}")
        if not available():
            raise RunError(_ABSENT)
        rng = np.random.default_rng(seed)
        initial = self._initial(X.shape[1], targets.shape[1], rng)
        per_epoch = len(X) // self.batch_size
        order = np.concatenate(
            [rng.permutation(len(X))[: per_epoch * self.batch_size] for _ in range(self.epochs)]
        ).reshape(-1, self.batch_size)
        request = (self, initial, X.astype(np.float32), targets.astype(np.float32), order)
        return FittedNetwork(_trained(request))

    def steps(self, n: int) -> int:
        """Steps of a training run on n records."""
        return self.epochs * (n // self.batch_size)

    def event(self, n: int, count: int = 1) -> DpEvent:
        """Return the cost of ``count`` runs on n records, were each batch drawn anew (Poisson sampling).

        A reference: the batches of this network are shuffled, as in Pedersen (2022).
        """
        return training_event(self.noise_multiplier, min(1.0, self.batch_size / n), count * self.steps(n))

    def _initial(self, columns: int, classes: int, rng: np.random.Generator) -> Weights:
        """Glorot's uniform weights and zero biases."""
        widths = (columns, *self.hidden, classes)
        weights: list[NDArray[np.float32]] = []
        for before, after in pairwise(widths):
            limit = np.sqrt(6.0 / (before + after))
            weights.append(rng.uniform(-limit, limit, (before, after)).astype(np.float32))
            weights.append(np.zeros(after, dtype=np.float32))
        return tuple(weights)


@dataclass(frozen=True)
class FittedNetwork:
    """The weights of a trained network, layer by layer: kernel of shape (before, after), bias (after,)."""

    weights: Weights

    def predict_proba(self, X: Floats) -> Floats:
        """Probabilities of shape (n, classes)."""
        from scipy.special import softmax

        z = np.asarray(X, dtype=np.float64)
        for number in range(0, len(self.weights), 2):
            z = (np.maximum(z, 0.0) if number else z) @ self.weights[number] + self.weights[number + 1]
        return softmax(z, axis=1)


def reference_ledger(
    final: DPSGDNetwork, n: int, label_models: DPSGDNetwork | None = None, splits: int = 25
) -> Ledger:
    """Return the cost of the procedure's readings of n records, were batches drawn anew at each step.

    Each record is in one half of every split: the models on halves cost as many runs as there are splits.
    Nothing here is promised: see ``excluded``.

    Parameters
    ----------
    final : DPSGDNetwork
        The final model.
    n : int
        Number of records.
    label_models : DPSGDNetwork, optional
        None for training on hard labels, without models on halves.
    splits : int
        Number of random splits.
    """
    ledger = Ledger()
    if label_models is not None:
        ledger.post("models on halves", label_models.event(n // 2, splits), sensitivity="clip")
    ledger.post("final model", final.event(n), sensitivity="clip")
    ledger.exclude("batches and halves are shuffled in exact numbers, the figures are for Poisson sampling")
    return ledger


def _trained(request: tuple[Any, ...]) -> Weights:
    """Have the process of this one train a network."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        weights: Weights = _process(os.getpid()).submit(_train, *request).result()
    except BrokenProcessPool as problem:
        _process.cache_clear()
        raise RunError(f"the process that trains the network has ended: {problem}") from problem
    except Exception as problem:
        raise RunError(f"training the network failed: {type(problem).__name__}: {problem}") from problem
    return weights


@cache
def _process(asking: int) -> Any:
    """A process of its own for each one that asks: a fork must not speak to its parent's."""
    from joblib.externals.loky import ProcessPoolExecutor

    environment = {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return ProcessPoolExecutor(1, initializer=_begin, env=environment)


def _begin() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # whatever TensorFlow prints is no output of the caller's
        os.dup2(nowhere, stream)
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def _train(settings: DPSGDNetwork, initial: Weights, X: Any, targets: Any, order: Any) -> tuple[Any, ...]:
    """Train in the process of its own. The graph of a network is built once for each shape."""
    return trainer(settings, X.shape[1], targets.shape[1])(initial, X, targets, order)


@cache
def trainer(settings: DPSGDNetwork, columns: int, classes: int) -> Callable[..., tuple[Any, ...]]:
    """Build the network's graph, and return what trains it from initial weights.

    TensorFlow Privacy's ``DPSequential`` finds the norms of per-record gradients without forming these. Its
    clipped sums are those of the Keras optimizer, in a quarter of the time.
    """
    import tensorflow as tf

    registry = tf_privacy_module("fast_gradient_clipping.layer_registry")
    models = tf_privacy_module("keras_models.dp_keras_model")
    keras = tf.keras
    penalty = keras.regularizers.L2(settings.l2) if settings.l2 else None
    layers = [keras.layers.InputLayer((columns,))]
    for number, width in enumerate(settings.hidden, start=1):
        layers.append(keras.layers.Dense(width, "relu", kernel_regularizer=penalty))
        if number == 2 and settings.dropout:
            layers.append(keras.layers.Dropout(settings.dropout))
    layers.append(keras.layers.Dense(classes, None, kernel_regularizer=penalty))
    model = models.DPSequential(
        l2_norm_clip=settings.clip,
        noise_multiplier=settings.noise_multiplier,
        use_xla=False,
        layer_registry=registry.make_default_layer_registry(),
        layers=layers,
    )
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(settings.learning_rate), loss)

    shapes = [tf.TensorSpec([None, columns]), tf.TensorSpec([None, classes])]

    @tf.function(input_signature=[*shapes, tf.TensorSpec([None, settings.batch_size], tf.int64)])
    def run(X: Any, targets: Any, order: Any) -> None:
        for step in tf.range(tf.shape(order)[0]):
            model.train_step((tf.gather(X, order[step]), tf.gather(targets, order[step])))

    def train(initial: Any, X: Any, targets: Any, order: Any) -> tuple[Any, ...]:
        model.set_weights(initial)
        run(X, targets, order)
        return tuple(model.get_weights())

    return train
