"""What Pedersen (2022) prints in tables 3.1 to 3.4, for each of the thesis's three cohorts.

Rates are shares here and percentages in the thesis. Its table 3.1 calls N the number of points in the
training set, and its table 3.2 gives the same numbers as data points.
"""

from __future__ import annotations

from dataclasses import dataclass

#: widths of every critic's layers, after the dimension of the data (section 3.3)
CRITIC = (64, 128, 256, 1)
#: rows of table 3.3 after HealthGAN: standard deviations of the noise as the thesis writes them
NOISE_LEVELS = ("1e-7", "1e-6", "1e-5", "1e-4")


@dataclass(frozen=True)
class Compared:
    """A column of table 3.4."""

    auc: float
    positive_rate: float
    train_resemblance: float
    test_resemblance: float
    privacy_loss: float


@dataclass(frozen=True)
class ThesisDataset:
    """What the thesis says of one of its data sets.

    Attributes
    ----------
    number : int
        In its tables.
    n, batch, dimension : int
    generator : tuple of int
        Nodes of each layer (table 3.1).
    features, label : str
    positive_rate : float
        Of the training part (table 3.2).
    train_rate, test_rate, healthgan_rate : float
        Table 3.3.
    private_rates : tuple of float
        Table 3.3, in the order of :data:`NOISE_LEVELS`.
    healthgan, private : Compared
        Table 3.4.
    """

    number: int
    n: int
    batch: int
    dimension: int
    generator: tuple[int, ...]
    features: str
    label: str
    positive_rate: float
    train_rate: float
    test_rate: float
    healthgan_rate: float
    private_rates: tuple[float, ...]
    healthgan: Compared
    private: Compared


#: by the name of the cohort
THESIS: dict[str, ThesisDataset] = {
    "diabetes-mortality": ThesisDataset(
        number=1,
        n=2085,
        batch=208,
        dimension=12,
        generator=(100, 24, 18, 12),
        features="6 diagnostic scores/values, 5 demographic categorical variables",
        label="Mortality",
        positive_rate=0.063,
        train_rate=0.0628,
        test_rate=0.0604,
        healthgan_rate=0.0446,
        private_rates=(0.0537, 0.0523, 0.0422, 0.0489),
        healthgan=Compared(0.723, 0.045, 0.545, 0.534, -0.011),
        private=Compared(0.724, 0.054, 0.539, 0.550, 0.012),
    ),
    "aki-mortality": ThesisDataset(
        number=2,
        n=2119,
        batch=211,
        dimension=34,
        generator=(100, 68, 51, 34),
        features="31 diagnostic scores, 2 categorical variables",
        label="Mortality",
        positive_rate=0.234,
        train_rate=0.234,
        test_rate=0.259,
        healthgan_rate=0.178,
        private_rates=(0.191, 0.201, 0.196, 0.189),
        healthgan=Compared(0.614, 0.178, 0.856, 0.868, 0.012),
        private=Compared(0.657, 0.202, 0.860, 0.872, 0.012),
    ),
    "icu-readmission": ThesisDataset(
        number=3,
        n=1719,
        batch=171,
        dimension=7,
        generator=(100, 14, 10, 7),
        features="6 diagnostic values",
        label="Readmission",
        positive_rate=0.0303,
        train_rate=0.0303,
        test_rate=0.0297,
        healthgan_rate=0.0260,
        private_rates=(0.0239, 0.0268, 0.0320, 0.0297),
        healthgan=Compared(0.713, 0.026, 0.628, 0.648, 0.022),
        private=Compared(0.720, 0.032, 0.627, 0.649, 0.020),
    ),
}
