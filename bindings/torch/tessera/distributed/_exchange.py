# SPDX-License-Identifier: Apache-2.0
"""Rows of features that other ranks need, and rows of theirs that come for them, with gradients on the way back."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..segments import gather
from ._session import Session


def swap(session: Session, rows: Tensor, to: list[int], come: list[int], doing: str = "exchanging rows") -> Tensor:
    """Sends so many rows to each rank, and waits for those that come."""
    return Flight(session, rows, to, come, doing).land()


class Flight:
    """Rows in flight."""

    def __init__(self, session: Session, rows: Tensor, to: list[int], come: list[int], doing: str) -> None:
        self._session, self._doing = session, doing
        if session.ranks == 1:  # what a rank sends to itself
            self.rows = rows.clone()
            return
        self.rows = rows.new_empty((sum(come), *rows.shape[1:]))
        # gloo moves what lies on the host.
        through_host = rows.is_cuda and dist.get_backend(session.group) == "gloo"
        self._out = rows.cpu() if through_host else rows.contiguous()
        self._in = self.rows.cpu() if through_host else self.rows
        size = rows.element_size() * rows[:1].numel() if rows.size(0) else 0
        wide = self.rows.element_size() * self.rows[:1].numel() if self.rows.size(0) else 0
        session.sent += size * (sum(to) - to[session.rank])
        session.received += wide * (sum(come) - come[session.rank])
        self._work = session.waiting(doing, lambda: dist.all_to_all_single(
            self._in, self._out, come, to, group=session.group, async_op=True), hears=False)

    def land(self) -> Tensor:
        if self._session.ranks > 1:
            self._session.waiting(self._doing, self._work.wait)
            if self._in is not self.rows:
                self.rows.copy_(self._in)
            self._out = self._in = None
        return self.rows


class _Trip:
    """Both ways of one exchange; the way back is known when the gradients have left."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.there: Flight | None = None
        self.back: Flight | None = None


class _Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, trip: _Trip) -> Tensor:
        ctx.trip = trip
        trip.there = trip.exchange.flight(rows)
        return trip.there.rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.trip.back.land(), None


class _Arrive(torch.autograd.Function):
    """Its backward pass sends gradients and does not wait, so that they travel while those of inner rows are computed: the
    engine takes what was called later first, and :class:`_Leave` was called before the inner rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, trip: _Trip) -> Tensor:
        ctx.trip = trip
        trip.there.land()
        ctx.mark_dirty(rows)
        return rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        ctx.trip.back = ctx.trip.exchange.flight(grad, back=True)
        return grad, None


class Exchange:
    """Which own rows go to which rank, and how many come from each; ``rows`` are in the order of the ranks."""

    def __init__(self, session: Session, rows: Tensor, to: list[int], come: list[int]) -> None:
        self.session, self.rows, self.to, self.come = session, rows, to, come

    def flight(self, rows: Tensor, back: bool = False) -> Flight:
        to, come = (self.come, self.to) if back else (self.to, self.come)
        return Flight(self.session, rows, to, come, "exchanging gradients of rows" if back else "exchanging rows")

    def leave(self, x: Tensor) -> tuple[Tensor, _Trip]:
        """Sends rows off. What it returns is not there yet: :meth:`arrive` waits for it."""
        trip = _Trip(self)
        return _Leave.apply(gather(x, self.rows), trip), trip

    @staticmethod
    def arrive(on_their_way: tuple[Tensor, _Trip]) -> Tensor:
        return _Arrive.apply(*on_their_way)

    def bytes_sent(self, width: int, size: int, backward: bool = True) -> int:
        """By this rank, of one exchange of rows of so many numbers of ``size`` bytes."""
        return (sum(self.to) + (sum(self.come) if backward else 0)) * width * size


def exchange_of(session: Session, wanted: Tensor, owners: Tensor, place: Tensor) -> Exchange:
    """For rows that this rank wants, sorted by the rank that has each. ``place`` says where a vertex of this rank stands."""
    come = torch.bincount(owners, minlength=session.ranks)
    ones = [1] * session.ranks
    to = swap(session, come.view(-1, 1), ones, ones).view(-1)
    asked = swap(session, wanted.view(-1, 1), come.tolist(), to.tolist()).view(-1)
    return Exchange(session, place[asked], to.tolist(), come.tolist())
