# SPDX-License-Identifier: Apache-2.0
"""HyGNN's own model of which cores suit a window, beside the cost models, for tools/hygnn_report.py.

A logistic regression on the sparsity and the columns of windows says which of the two kinds of cores is faster. It is fitted to all cases of a
group but one and asked about that one, each in turn; the cost models had no part of the sweep in their fits.
"""
import math


def fitted(cases, steps=4000, rate=0.5, shrinkage=1e-3):
    """Weights of (1, *features) that say by their sign whether a case's label is true; features are scaled to the mean and spread of the cases."""
    width = len(cases[0][0])
    means = [sum(features[i] for features, _ in cases) / len(cases) for i in range(width)]
    spreads = [math.sqrt(sum((features[i] - means[i]) ** 2 for features, _ in cases) / len(cases)) or 1.0 for i in range(width)]
    scaled = [([1.0] + [(one - mean) / spread for one, mean, spread in zip(features, means, spreads)], label) for features, label in cases]
    weights = [0.0] * (width + 1)
    for _ in range(steps):
        gradient = [shrinkage * weight for weight in weights]
        for features, label in scaled:
            says = 1 / (1 + math.exp(-sum(weight * one for weight, one in zip(weights, features))))
            for i, one in enumerate(features):
                gradient[i] += (says - label) * one / len(scaled)
        weights = [weight - rate * slope for weight, slope in zip(weights, gradient)]
    return lambda features: weights[0] + sum(
        weight * (one - mean) / spread for weight, one, mean, spread in zip(weights[1:], features, means, spreads)) > 0


def regrets(cases):
    """What each way to choose loses, over (features, times of the two kinds, what the costs say of them)."""
    labels = [times[1] < times[0] for _, times, _ in cases]
    losses = {"logistic regression": [], "costs": [], "the more frequent kind": []}
    for i, (features, times, predicted) in enumerate(cases):
        others = [(one[0], label) for k, (one, label) in enumerate(zip(cases, labels)) if k != i]
        says = {"logistic regression": fitted(others)(features), "costs": predicted[1] < predicted[0],
                "the more frequent kind": 2 * sum(label for _, label in others) > len(others)}
        for way, takes_second in says.items():
            losses[way].append(times[takes_second] / min(times))
    return losses


def lines(groups):
    """The lines of the page, from cases by group and precision."""
    text = ["A logistic regression on sparsity and columns of windows of 64 rows, fitted to all other cases of the group, the cost models, and the kind "
            "that wins most of the others: what each loses when it chooses between the fastest kernel of either kind.", "",
            "| cases of | precision | cases | way to choose | mean loss | worst | right where they differ by over 10 % |", "|---|---|---:|---|---:|---:|---:|"]
    measured = [(group, precision, cases) for group, found in groups.items() for precision, cases in sorted(found.items()) if len(cases) >= 4]
    for group, precision, cases in measured:
        differ = [max(times) > 1.1 * min(times) for _, times, _ in cases]
        for way, losses in regrets(cases).items():
            right = [loss == 1 for loss, counts in zip(losses, differ) if counts]
            share = f"{sum(right)} of {len(right)}" if right else ""
            mean = math.exp(sum(map(math.log, losses)) / len(losses))
            text.append(f"| {group} | {precision} | {len(cases)} | {way} | {mean:.3f} | {max(losses):.2f} | {share} |")
    return text if measured else []
