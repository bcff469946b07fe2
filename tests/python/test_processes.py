# SPDX-License-Identifier: Apache-2.0
"""Forked workers of data loaders, several threads at once, limits of threads."""

import threading

import torch
from conftest import random_edges
from torch.utils.data import DataLoader, Dataset

import tessera


class Products(Dataset):
    def __init__(self):
        self.index, self.x = random_edges(300, 300, 5000), torch.randn(300, 32)

    def __len__(self):
        return 4

    def __getitem__(self, item):
        return tessera.spmm(self.index, self.x * item)


def test_forked_workers():
    data = Products()
    expected = [data[i] for i in range(4)]  # this process has used its threads before it forks
    loader = DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="fork",
                        timeout=60)
    for actual, wanted in zip(loader, expected):
        assert torch.equal(actual, wanted)


def test_two_threads_share_a_graph(device):
    index, x = random_edges(400, 400, 9000, device), torch.randn(400, 32, device=device)
    expected = tessera.spmm(index, x)
    scores = torch.randn(400, 2, device=device)
    attended = tessera.attention(index, scores, scores, x, heads=2)
    wrong = []

    def work():
        for _ in range(20):
            same = torch.equal(tessera.spmm(index, x), expected)
            same &= torch.equal(tessera.attention(index, scores, scores, x, heads=2), attended)
            if not same:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_same_bits_for_any_number_of_threads():
    index, x = random_edges(500, 500, 20000), torch.randn(500, 48)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(tessera.spmm(index, x))
        assert all(torch.equal(result, results[0]) for result in results)
    finally:
        torch.set_num_threads(before)
