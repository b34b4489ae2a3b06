"""Opacus: one DP-SGD step of a critic on records alone, by hooks, by ghost clipping, without privacy.

    python step_opacus.py BATCH WIDTHS REPEATS STEPS

Prints milliseconds a step, one number a repeat, by kind. The records' part alone: no generated batch, no
generator, which a critic step of ours includes.
"""

import itertools
import json
import sys
import time
import warnings

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset


class Mean(torch.nn.Module):
    """The critic's mean output, as a criterion with the attribute that Opacus reads."""

    def __init__(self):
        super().__init__()
        self.reduction = "mean"

    def forward(self, outputs, _targets):
        each = outputs.squeeze(-1)
        return each if self.reduction == "none" else each.mean()


def network(widths):
    layers = []
    for before, after in itertools.pairwise(widths):
        layers += [torch.nn.Linear(before, after), torch.nn.LeakyReLU(0.2)]
    return torch.nn.Sequential(*layers[:-1])


def stepper(kind, widths, batch):
    model = network(widths)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    criterion = Mean()
    points, targets = torch.rand(10 * batch, widths[0]), torch.zeros(10 * batch)
    if kind != "without privacy":
        loader = DataLoader(TensorDataset(points, targets), batch_size=batch)
        options = {"noise_multiplier": 1.0, "max_grad_norm": 1.0}
        if kind == "ghost clipping":
            options |= {"grad_sample_mode": "ghost", "criterion": criterion}
        made = PrivacyEngine().make_private(module=model, optimizer=optimizer, data_loader=loader, **options)
        model, optimizer = made[0], made[1]
        criterion = made[2] if kind == "ghost clipping" else criterion

    def step(number):
        start = (number % 10) * batch
        optimizer.zero_grad()
        criterion(model(points[start : start + batch]), targets[start : start + batch]).backward()
        optimizer.step()

    return step


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    batch, widths, repeats, steps = sys.argv[1:]
    sizes = [int(width) for width in widths.split(",")]
    kinds = ("without privacy", "hooks", "ghost clipping")
    steppers = {kind: stepper(kind, sizes, int(batch)) for kind in kinds}
    times = {kind: [] for kind in kinds}
    for repeat in range(int(repeats) + 1):
        for kind, step in steppers.items():
            begun = time.perf_counter()
            for number in range(int(steps)):
                step(number)
            if repeat:  # the first warms up
                times[kind].append((time.perf_counter() - begun) / int(steps) * 1e3)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
