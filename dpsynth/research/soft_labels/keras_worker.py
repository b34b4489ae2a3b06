"""The process that trains DP-SGD networks with TensorFlow Privacy's Keras model; see ``dp_sgd``.

Reads requests (settings, initial weights, features, targets, batches of record numbers) as pickles from its
standard input, and writes the trained weights, or a sentence, to its standard output, until the input ends.
The graph of a network is built once for each shape.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpsynth.checks import tf_privacy_module

if TYPE_CHECKING:
    from dpsynth.research.soft_labels.dp_sgd import DPSGDNetwork


def trainer(settings: DPSGDNetwork, columns: int, classes: int) -> Callable[..., tuple[Any, ...]]:
    """Build the network's graph, and return what trains it from initial weights.

    TensorFlow Privacy's ``DPSequential`` finds the norms of per-record gradients without forming these: the
    same clipped sums as its Keras optimizer's, in a quarter of the time.
    """
    import tensorflow as tf

    registry = tf_privacy_module("fast_gradient_clipping.layer_registry")
    models = tf_privacy_module("keras_models.dp_keras_model")
    keras = tf.keras
    layers = [keras.layers.InputLayer((columns,))]
    for number, width in enumerate(settings.hidden, start=1):
        layers.append(_dense(keras, width, "relu", settings))
        if number == 2 and settings.dropout:
            layers.append(keras.layers.Dropout(settings.dropout))
    layers.append(_dense(keras, classes, None, settings))
    model = models.DPSequential(
        l2_norm_clip=settings.clip,
        noise_multiplier=settings.noise_multiplier,
        use_xla=False,
        layer_registry=registry.make_default_layer_registry(),
        layers=layers,
    )
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(settings.learning_rate), loss)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, columns]),
            tf.TensorSpec([None, classes]),
            tf.TensorSpec([None, settings.batch_size], tf.int64),
        ]
    )
    def run(X: Any, targets: Any, order: Any) -> None:
        for step in tf.range(tf.shape(order)[0]):
            model.train_step((tf.gather(X, order[step]), tf.gather(targets, order[step])))

    def train(initial: Any, X: Any, targets: Any, order: Any) -> tuple[Any, ...]:
        model.set_weights(initial)
        run(X, targets, order)
        return tuple(model.get_weights())

    return train


def _dense(keras: Any, width: int, activation: str | None, settings: DPSGDNetwork) -> Any:
    penalty = keras.regularizers.L2(settings.l2) if settings.l2 else None
    return keras.layers.Dense(width, activation, kernel_regularizer=penalty)


def serve() -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not come between the answers
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    trainers: dict[Any, Callable[..., Any]] = {}
    while True:
        try:
            settings, initial, X, targets, order = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            key = (settings, X.shape[1], targets.shape[1])
            if key not in trainers:
                trainers[key] = trainer(*key)
            answer: Any = trainers[key](initial, X, targets, order)
        except Exception as problem:
            answer = f"{type(problem).__name__}: {problem}"
        pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()


if __name__ == "__main__":
    serve()
