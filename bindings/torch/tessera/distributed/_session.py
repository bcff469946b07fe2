# SPDX-License-Identifier: Apache-2.0
"""The ranks of a run: how they find each other, and who is missing when one does not answer."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

Result = TypeVar("Result")

_POLL = 0.05  # seconds between two looks at what other ranks say


class RankLost(RuntimeError):
    """A rank of a run does not answer. ``ranks`` says which do not, ``step`` where this one was."""

    def __init__(self, message: str, ranks: list[int], step: int) -> None:
        super().__init__(message)
        self.ranks, self.step = ranks, step


class Session:
    """What one rank knows of the run. Every rank writes to the store of the run a few times a second that it lives, so that
    others can tell a rank that is gone from one that is slow."""

    def __init__(self, rank: int, ranks: int, time_limit: float, device: torch.device, store: Any) -> None:
        self.rank, self.ranks, self.time_limit, self.device, self.store = rank, ranks, time_limit, device, store
        self.step = 0  #: calls of the model in training
        self.waits = 0  #: for others; the same on ranks that are equally far
        self.sent = self.received = 0  #: bytes of rows
        self.group: Any = None  #: of exchanges; gradients have the default one
        self._interval = min(0.5, time_limit / 20)
        self._ended = threading.Event()
        self._beating: threading.Thread | None = None
        self._last_heard = time.monotonic()

    # ---- signs of life ----

    def begin(self) -> None:
        """Waits for all ranks, and says which did not come."""
        if self.ranks == 1:
            return
        self._note("left", "")
        self._note("beat", "0 0 0")  # how many, the step, and waits begun
        deadline = time.monotonic() + self.time_limit
        missing = list(range(self.ranks))
        while missing := [rank for rank in missing if not self.store.check([f"beat/{rank}"])]:
            if time.monotonic() > deadline:
                raise RankLost(f"{_named(missing)} of {self.ranks} did not start within {self.time_limit:g} s: look at what "
                               "they print, and whether all machines name the same MASTER_ADDR and MASTER_PORT", missing, 0)
            time.sleep(_POLL)
        self._beating = threading.Thread(target=self._beat, name="tessera-ranks", daemon=True)
        self._beating.start()

    def end(self) -> None:
        self._ended.set()
        if self._beating is not None:
            self._beating.join()
        if dist.is_initialized():
            dist.destroy_process_group()

    def _note(self, what: str, text: str) -> None:
        self.store.set(f"{what}/{self.rank}", text)

    def _read(self, what: str, rank: int) -> str:
        return self.store.get(f"{what}/{rank}").decode()

    def _beat(self) -> None:
        count = 0
        try:
            while not self._ended.wait(self._interval):
                count += 1
                self._note("beat", f"{count} {self.step} {self.waits}")
        except RuntimeError:  # the store is gone; what waits for a rank says so
            return

    # ---- what waits for others ----

    def waiting(self, doing: str, wait: Callable[[], Result], hears: bool = True) -> Result:
        """Waits for other ranks; one that does not answer is an error that names it. ``hears``: what returns has come from
        others, and was not only sent off."""
        if self.ranks == 1:
            return wait()
        began = time.monotonic()
        self.waits += 1
        try:
            result = wait()
        except RuntimeError as error:
            raise self._lost(doing, began) from error
        if hears:
            self._last_heard = time.monotonic()
        return result

    def _lost(self, doing: str, began: float) -> RankLost:
        where = f"step {self.step}, {doing} on rank {self.rank}"
        limit = f"Give it less to do, or raise tessera.distributed.start(time_limit=...), {self.time_limit:g} s now"
        again = ("Start again from the last checkpoint; any number of ranks can go on from it, such as torchrun "
                 f"--nproc-per-node={max(1, self.ranks - 1)}")
        own = began - self._last_heard
        if own >= self.time_limit:
            return RankLost(f"{where}: the other ranks have left, since this rank was slow: it came {own:.3g} s after what it "
                            f"exchanged before. {limit}. {again}", [self.rank], self.step)
        waited = time.monotonic() - began
        try:
            self._note("left", "1")
            gone, slow = self._blame()
        except RuntimeError:  # the store went with the rank that has it
            gone, slow = [0], []
        if gone:
            return RankLost(f"{where}: {_named(gone)} of {self.ranks} {_is(gone)} gone: ended, killed or out of reach. What it "
                            f"printed last says why. {again}", gone, self.step)
        if slow:
            return RankLost(f"{where}: {_named(slow)} of {self.ranks} {_is(slow)} slow: alive, and not there after "
                            f"{waited:.3g} s. {limit}. {again}", slow, self.step)
        return RankLost(f"{where}: the connection broke, and all ranks are alive. Look at the network. {again}", [], self.step)

    def _blame(self) -> tuple[list[int], list[int]]:
        """Ranks that show no sign of life, and ranks that do and are behind; not those that have left, which waited, too."""
        others = [rank for rank in range(self.ranks) if rank != self.rank]
        first = {rank: self._read("beat", rank).split()[0] for rank in others}
        time.sleep(4 * self._interval)
        last = {rank: self._read("beat", rank).split() for rank in others if not self._read("left", rank)}
        silent = [rank for rank, (count, _, _) in last.items() if count == first[rank]]
        alive = [rank for rank in last if rank not in silent]
        behind = [rank for rank in alive if int(last[rank][2]) < self.waits]
        return silent, behind or alive


def _named(ranks: list[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def _is(ranks: list[int]) -> str:
    return "are" if len(ranks) > 1 else "is"


_session: Session | None = None


def session() -> Session:
    """Of this process."""
    if _session is None:
        raise RuntimeError("the ranks of this run do not know each other yet: call tessera.distributed.start() first")
    return _session


def is_started() -> bool:
    return _session is not None


def start(time_limit: float = 300.0) -> Session:
    """Joins the ranks that ``torchrun`` started, in place of ``torch.distributed.init_process_group``; without ``torchrun`` this
    process is the only rank.

    GPUs talk by NCCL where each rank has its own, and by gloo elsewhere. Waiting for another rank for longer than
    ``time_limit`` seconds, or for one that is gone, is a :class:`RankLost` that names it.

    Example:
        >>> import tessera
        >>> run = tessera.distributed.start()
        >>> run.rank, run.ranks
        (0, 1)
        >>> tessera.distributed.end()
    """
    global _session
    if _session is not None:
        return _session
    if dist.is_initialized():
        raise RuntimeError("torch.distributed runs already: call tessera.distributed.start() in place of init_process_group")
    if not time_limit > 0:
        raise ValueError(f"time_limit is {time_limit}: use seconds, more than 0")
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    local, beside = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    device = torch.device("cuda", local % gpus) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    limit = timedelta(seconds=time_limit)
    store = _store(rank, ranks, limit)
    found = Session(rank, ranks, time_limit, device, dist.PrefixStore("tessera", store))
    found.begin()
    backend = "cpu:gloo,cuda:nccl" if 0 < beside <= gpus else "gloo"
    dist.init_process_group(backend, store=dist.PrefixStore("torch", store), rank=rank, world_size=ranks, timeout=limit)
    # Of its own, so that rows and gradients need not come in the same order on all ranks.
    found.group = dist.new_group(timeout=limit)
    _session = found
    return found


@atexit.register
def end() -> None:
    """Leaves the run; at the end of a program it happens by itself."""
    global _session
    if _session is not None:
        _session.end()
        _session = None


def _store(rank: int, ranks: int, limit: timedelta) -> Any:
    if ranks == 1:
        return dist.HashStore()
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise RuntimeError(f"WORLD_SIZE is {ranks}, and {missing[0]} is not set: start ranks with torchrun")
    held = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # by torchrun itself
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=rank == 0 and not held,
                          timeout=limit, wait_for_workers=False)
    return dist.PrefixStore(f"attempt{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)
