"""Move time forward: a fluid of bytes, in steps, with requests at their exact instants.

In a step the rates of all lanes are constant but for what each lane does itself: it moves on at
its own pace, from one request to the next, until the step's end. What is shared is settled for
each step: the store's ceiling, the requests that it admits, the network of each function.
"""

from typing import Final

import numpy as np

from serverless_bench.errors import UsageError
from serverless_bench.job.operations import OperationKind
from serverless_bench.lab.simulation.demand import Demand
from serverless_bench.lab.simulation.launch import SimulatedLauncher
from serverless_bench.lab.simulation.limits import FunctionLimits
from serverless_bench.lab.simulation.model import Model
from serverless_bench.lab.simulation.state import (
    BODY,
    COMPLETE,
    CREATE,
    Done,
    Lanes,
    Log,
    SimulationState,
    groups_of,
)
from serverless_bench.lab.simulation.store import (
    MOST_S,
    Retries,
    SharedStore,
    short_step_s,
    usual_step_s,
)
from serverless_bench.rundir.tables import Floats, Ints

_PIECES: Final = 16
"""Stretches of a request's curve, at most; as many points show a bucket."""
_LEAST_PIECES: Final = 4
"""The same where others of its operation are beside it, which have theirs."""
_PIECE_S: Final = 0.2
"""Shorter ones are not noted: so it is in a worker."""
_LONGEST_S: Final = 86_400.0
"""Of a run; instants have to fit into 64 bits, too."""
_REST: Final = 0.5
"""Bytes below which nothing is left: instants are rounded."""


class Engine:
    """One simulation.

    Parameters
    ----------
    demand, model, limits, launcher
        What is to be moved, under which conditions.
    retries
        Until when a refused request is tried again, and after which waits.
    deadline_s
        After this long a function begins nothing more.
    rng
        Source of latencies.
    """

    def __init__(
        self,
        demand: Demand,
        model: Model,
        limits: FunctionLimits,
        launcher: SimulatedLauncher,
        *,
        retries: Retries,
        deadline_s: float,
        rng: np.random.Generator,
    ) -> None:
        self._demand, self._model, self._limits = demand, model, limits
        self._launcher, self._retries, self._rng = launcher, retries, rng
        self._deadline_s = deadline_s
        self._width = demand.threads * demand.lanes
        self._store = SharedStore(model.store, demand.kind)
        self._is_put = demand.kind is OperationKind.PUT
        self._lanes = Lanes.of(demand.functions * demand.threads * demand.lanes)
        self._groups = groups_of(demand)
        self._in_parts = demand.in_parts
        count, functions = len(demand.size), demand.functions
        self._done = Done(
            start_s=np.full(count, np.nan),
            end_s=np.full(count, np.nan),
            failed=np.zeros(count, dtype=np.bool_),
        )
        self._open_groups = np.full(functions, demand.threads)
        self._end_s = np.zeros(functions)
        self._stopped = np.zeros(functions, dtype=np.bool_)
        self._tokens = np.full(functions, limits.burst_bytes)
        self._attempts, self._pieces = Log(11), Log(5)
        self._active = np.zeros(0, dtype=np.int64)
        self._share = np.inf
        self._cuts = max(_LEAST_PIECES, _PIECES // demand.lanes)
        self._to_s = 0.0

    def run(self) -> SimulationState:
        """Return what happens until the last function has ended."""
        store = self._model.store
        usual_s = usual_step_s(self._limits.function_s)
        short_s = short_step_s(store.put_s if self._is_put else store.get_s, usual_s)
        at_s = 0.0
        while True:
            first = float(self._lanes.now_s[self._active].min(initial=np.inf))
            at_s = max(at_s, min(first, self._launcher.earliest_s()))
            if not np.isfinite(at_s):
                break
            if at_s > _LONGEST_S:
                raise UsageError(
                    "the simulated run takes more than a day",
                    hint="fewer functions or objects, or a model with higher rates",
                )
            step_s = short_s if self._store.is_refusing else usual_s
            passed_s = at_s + step_s - self._to_s
            self._to_s = at_s + step_s
            self._store.begin_step(passed_s)
            self._refill(passed_s, step_s)
            self._start_functions(self._launcher.launch(at_s, self._to_s))
            self._rounds(step_s)
            at_s = self._to_s
        return SimulationState(
            launcher=self._launcher,
            done=self._done,
            end_s=self._end_s,
            stopped=self._stopped,
            attempts=self._attempts.table(),
            pieces=self._pieces.table(),
        )

    def _refill(self, passed_s: float, step_s: float) -> None:
        """Give running functions the network of the step, too: it may be used in it."""
        limits = self._limits
        if not np.isfinite(limits.bytes_per_s):
            return
        running = self._function(self._active)
        if self._width > 1:
            running = np.unique(running)
        tokens, came = self._tokens[running], limits.bytes_per_s * passed_s
        # Half of the burst comes back, and what a step brings always does.
        room = max(limits.burst_bytes / 2, limits.bytes_per_s * max(MOST_S, step_s))
        self._tokens[running] = np.maximum(tokens, np.minimum(tokens + came, room))

    def _start_functions(self, found: Ints) -> None:
        if not len(found):
            return
        demand = self._demand
        groups = (found[:, None] * demand.threads + np.arange(demand.threads)).ravel()
        lanes = (groups[:, None] * demand.lanes + np.arange(demand.lanes)).ravel()
        self._active = np.concatenate((self._active, lanes))
        begin = self._launcher.start_s[found] + self._model.launch.setup_s
        self._begin_operations(groups, np.repeat(begin, demand.threads))

    def _rounds(self, step_s: float) -> None:
        """Let every lane come to the end of the step."""
        lanes, first = self._lanes, True
        while True:
            active = self._active[lanes.now_s[self._active] < self._to_s]
            if not len(active):
                break
            moving = lanes.moving[active]
            self._request(active[~moving])
            active = active[lanes.moving[active] & (lanes.now_s[active] < self._to_s)]
            if len(active):
                most = self._most(active)
                claim = self._limits.claim[self._function(active)]
                if first:
                    there = (self._to_s - lanes.now_s[active]) / step_s
                    self._share, first = self._store.share(most, claim, there), False
                self._move(active, np.minimum(most, self._share * claim))
        ended = self._open_groups[self._function(self._active)] == 0
        if ended.any():
            self._active = self._active[~ended]

    def _most(self, lanes: Ints) -> Floats:
        """Return what moving lanes could move by themselves, in bytes per second."""
        function, limits = self._function(lanes), self._limits
        sharing: Ints | int = 1
        if self._width > 1:
            sharing = np.bincount(function, minlength=self._demand.functions)[function]
        most = np.minimum(limits.connection[function], limits.line / sharing)
        if np.isfinite(limits.bytes_per_s):
            left_s = self._to_s - self._lanes.now_s[lanes]
            most = np.minimum(most, np.maximum(self._tokens[function], 0) / left_s / sharing)
        return np.asarray(most)

    def _request(self, found: Ints) -> None:
        """Send the requests that are due, in the order of their instants."""
        if not len(found):
            return
        lanes = self._lanes
        found = found[np.argsort(lanes.now_s[found], kind="stable")]
        admitted = self._store.admit(len(found))
        self._refuse(found[admitted:])
        found = found[:admitted]
        group = found // self._demand.lanes
        is_body = self._groups.doing[group] == BODY
        latency = self._latency(len(found))
        now = lanes.now_s[found]
        lanes.began_s[found] = now
        # A put is answered after its body, everything else before.
        late = is_body & self._is_put
        after = np.where(late, now, now + latency)
        lanes.answered_s[found] = np.where(late, np.nan, after)
        lanes.post_s[found] = np.where(late, latency, 0)
        operation = self._groups.operation[group]
        begin = lanes.part[found] * self._demand.part_bytes[operation]
        size = np.minimum(self._demand.part_bytes[operation], self._demand.size[operation] - begin)
        size = np.where(is_body, np.maximum(size, 0), 0).astype(np.float64)
        for name, values in (("now_s", after), ("piece_s", after), ("size", size), ("left", size)):
            getattr(lanes, name)[found] = values
        lanes.piece[found] = 0
        lanes.moving[found] = True
        self._finish(found[size == 0])

    def _latency(self, count: int) -> Floats:
        store = self._model.store
        median, sigma = (
            (store.put_s, store.put_sigma) if self._is_put else (store.get_s, store.get_sigma)
        )
        return np.asarray(median * np.exp(sigma * self._rng.standard_normal(count)))

    def _refuse(self, found: Ints) -> None:
        """Answer 503; the client waits as its law says, and gives up when its time is over."""
        if not len(found):
            return
        lanes = self._lanes
        now = lanes.now_s[found]
        end = now + self._latency(len(found))
        lanes.began_s[found] = now
        lanes.answered_s[found] = end
        lanes.post_s[found] = 0
        self._note(found, end, np.zeros(len(found)), refused=True)
        fresh = np.isinf(lanes.until_s[found])
        until = np.where(fresh, end + self._retries.budget_s, lanes.until_s[found])
        lanes.until_s[found] = until
        lanes.number[found] += 1
        lanes.now_s[found] = end
        over, group = end >= until, found // self._demand.lanes
        self._groups.failed[group[over]] = True
        again = found[~over]
        lanes.wait_s[again] = wait = self._retries.waits_s(group[~over], lanes.number[again])
        lanes.now_s[again] += wait
        self._through(found[over])

    def _move(self, found: Ints, rate: Floats) -> None:
        """Move bytes until the request is through, or the step."""
        lanes = self._lanes
        now, left = lanes.now_s[found], lanes.left[found]
        possible = rate * (self._to_s - now)
        through = left - possible <= _REST
        moved = np.where(through, left, possible)
        took = np.where(through, left / np.maximum(rate, 1e-9), self._to_s - now)
        at = np.where(through, np.minimum(now + took, self._to_s), self._to_s)
        lanes.now_s[found] = at
        lanes.left[found] = left - moved
        lanes.piece[found] += moved
        np.subtract.at(self._tokens, self._function(found), moved)
        share = lanes.piece[found] >= lanes.size[found] / self._cuts
        ready = through | (share & (at - lanes.piece_s[found] >= _PIECE_S))
        noted = found[ready]
        operation = self._groups.operation[noted // self._demand.lanes]
        self._pieces.add(noted, operation, lanes.piece_s[noted], at[ready], lanes.piece[noted])
        lanes.piece_s[noted], lanes.piece[noted] = at[ready], 0
        self._finish(found[through])

    def _finish(self, found: Ints) -> None:
        """End requests that have moved all their bytes."""
        if not len(found):
            return
        lanes = self._lanes
        end = lanes.now_s[found] + lanes.post_s[found]
        late = np.isnan(lanes.answered_s[found])
        lanes.answered_s[found[late]] = end[late]
        self._note(found, end, lanes.size[found], refused=False)
        lanes.now_s[found] = end
        self._through(found)

    def _note(self, found: Ints, end: Floats, moved: Floats, *, refused: bool) -> None:
        lanes, group = self._lanes, found // self._demand.lanes
        self._attempts.add(
            found,
            self._groups.operation[group],
            self._groups.doing[group],
            lanes.part[found],
            lanes.number[found],
            lanes.began_s[found],
            end,
            lanes.wait_s[found],
            lanes.answered_s[found],
            moved,
            np.full(len(found), float(refused)),
        )

    def _through(self, found: Ints) -> None:
        """Give lanes whose request is over the next one, or let their group go on."""
        if not len(found):
            return
        lanes, groups, width = self._lanes, self._groups, self._demand.lanes
        group = found // width
        lanes.moving[found] = False
        lanes.number[found], lanes.wait_s[found], lanes.until_s[found] = 0, 0, np.inf
        following = lanes.part[found] + width
        parts = self._demand.parts[groups.operation[group]]
        more = (groups.doing[group] == BODY) & ~groups.failed[group] & (following < parts)
        lanes.part[found[more]] = following[more]
        resting, its = found[~more], group[~more]
        np.maximum.at(groups.end_s, its, lanes.now_s[resting])
        np.subtract.at(groups.pending, its, 1)
        lanes.now_s[resting] = np.inf
        waiting = np.unique(its)
        self._go_on(waiting[groups.pending[waiting] == 0])

    def _go_on(self, found: Ints) -> None:
        """Let groups go on whose lanes are all through."""
        if not len(found):
            return
        groups = self._groups
        doing, failed = groups.doing[found], groups.failed[found]
        upload = self._in_parts[groups.operation[found]]
        self._begin_parts(found[(doing == CREATE) & ~failed])
        closing = found[(doing == BODY) & upload & ~failed]
        groups.doing[closing] = COMPLETE
        self._use_one(closing)
        self._end_operations(found[failed | (doing == COMPLETE) | ((doing == BODY) & ~upload)])

    def _begin_operations(self, found: Ints, at: Floats) -> None:
        """Begin the next operation of groups, or end them."""
        demand, groups = self._demand, self._groups
        groups.end_s[found] = at
        function = found // demand.threads
        more = groups.operation[found] < demand.first[found + 1]
        late = at - self._launcher.start_s[function] > self._deadline_s
        self._stopped[function[more & late]] = True
        self._end_groups(found[~more | late])
        found, at = found[more & ~late], at[more & ~late]
        operation = groups.operation[found]
        self._done.start_s[operation] = at
        groups.failed[found] = False
        upload = self._in_parts[operation]
        groups.doing[found] = np.where(upload, CREATE, BODY)
        self._use_one(found[upload])
        self._begin_parts(found[~upload])

    def _use_one(self, found: Ints) -> None:
        """Have the first lane of groups make a request without a body."""
        lane = found * self._demand.lanes
        self._groups.pending[found] = 1
        self._lanes.part[lane] = 0
        self._lanes.now_s[lane] = self._groups.end_s[found]

    def _begin_parts(self, found: Ints) -> None:
        demand, groups, lanes = self._demand, self._groups, self._lanes
        groups.doing[found] = BODY
        used = np.minimum(demand.lanes, demand.parts[groups.operation[found]])
        groups.pending[found] = used
        for number in range(int(used.max(initial=0))):
            some = found[used > number]
            lane = some * demand.lanes + number
            lanes.part[lane] = number
            lanes.now_s[lane] = groups.end_s[some]

    def _end_operations(self, found: Ints) -> None:
        if not len(found):
            return
        groups = self._groups
        operation = groups.operation[found]
        self._done.end_s[operation] = groups.end_s[found]
        self._done.failed[operation] = groups.failed[found]
        groups.operation[found] += 1
        self._begin_operations(found, groups.end_s[found].copy())

    def _end_groups(self, found: Ints) -> None:
        function = found // self._demand.threads
        np.maximum.at(self._end_s, function, self._groups.end_s[found])
        np.subtract.at(self._open_groups, function, 1)
        for one in np.unique(function[self._open_groups[function] == 0]).tolist():
            self._end_s[one] += self._model.launch.finish_s
            self._launcher.ended(one, float(self._end_s[one]))

    def _function(self, lanes: Ints) -> Ints:
        return np.asarray(lanes // self._width)
