"""The engine, which advances time: bytes flow like a fluid in steps, requests have exact instants.

Within a step all rates are constant, and each lane advances from request to request at a separate
pace until the end of the step. Shared resources are settled once per step: the store's ceiling,
the requests that it admits, the network of each function.
"""

from typing import Final

import numpy as np

from serverless_bench.base.errors import UsageError
from serverless_bench.features.cost.limits import FunctionLauncher, FunctionLimits
from serverless_bench.features.cost.model import Model
from serverless_bench.features.simulation.demand import Demand
from serverless_bench.features.simulation.state import (
    BODY,
    COMPLETE,
    CREATE,
    Done,
    Lanes,
    Log,
    SimulationState,
    groups_of,
)
from serverless_bench.features.simulation.store import (
    MOST_S,
    Retries,
    SharedStore,
    short_step_s,
    usual_step_s,
)
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.tables import Floats, Ints

_PIECES: Final = 16
"""Maximum number of pieces of a request's curve: enough to show a token bucket."""
_LEAST_PIECES: Final = 4
"""The same if other requests of the operation run in parallel."""
_PIECE_S: Final = 0.2
"""Minimum length of a recorded piece, as in a worker."""
_LONGEST_S: Final = 86_400.0
"""Maximum length of a run; instants have to fit into 64 bits, too."""
_REST: Final = 0.5
"""Bytes below which a request is complete: instants are rounded."""


class Engine:
    """One simulation.

    Parameters
    ----------
    demand, model, limits, launcher
        Bytes to transfer, and the conditions of the transfer; the model has the store of the
        bucket's class.
    retries
        Waits and time limit of the retries of rejected requests.
    deadline_s
        Time after which a function starts no more operations.
    rng
        Source of latencies.
    """

    def __init__(
        self,
        demand: Demand,
        model: Model,
        limits: FunctionLimits,
        launcher: FunctionLauncher,
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
        self._lanes = Lanes.idle(demand.functions * demand.threads * demand.lanes)
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
        self._factor = model.store.factors(demand.kind, (1, functions), rng)[0]
        self._is_open = np.zeros(len(self._lanes.now_s), dtype=np.bool_)
        self._cuts = max(_LEAST_PIECES, _PIECES // demand.lanes)
        self._to_s = 0.0

    def run(self) -> SimulationState:
        """Simulate until the last function has ended, and return the result."""
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
                    hint="use fewer functions or objects, or a model with higher rates",
                )
            step_s = short_s if self._store.is_refusing else usual_s
            passed_s = at_s + step_s - self._to_s
            self._to_s = at_s + step_s
            self._store.begin_step(passed_s)
            self._refill(passed_s, step_s)
            self._start_functions(self._launched())
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
        """Refill the network of running functions, for the step ahead too, which may use it."""
        limits = self._limits
        if not np.isfinite(limits.bytes_per_s):
            return
        running = self._function(self._active)
        if self._width > 1:
            running = np.unique(running)
        tokens, earned = self._tokens[running], limits.bytes_per_s * passed_s
        # Half of the burst is restored, and the amount earned in a step always is.
        room = max(limits.burst_bytes / 2, limits.bytes_per_s * max(MOST_S, step_s))
        self._tokens[running] = np.maximum(tokens, np.minimum(tokens + earned, room))

    def _launched(self) -> Ints:
        started = []
        while self._launcher.earliest_s() < self._to_s:
            started.append(self._launcher.launch())
        return np.array(started, dtype=np.int64)

    def _start_functions(self, functions: Ints) -> None:
        if not len(functions):
            return
        demand = self._demand
        groups = (functions[:, None] * demand.threads + np.arange(demand.threads)).ravel()
        lanes = (groups[:, None] * demand.lanes + np.arange(demand.lanes)).ravel()
        self._active = np.concatenate((self._active, lanes))
        begin = self._launcher.start_s[functions] + self._model.launch.setup_s
        self._begin_operations(groups, np.repeat(begin, demand.threads))

    def _rounds(self, step_s: float) -> None:
        """Advance every lane to the end of the step."""
        lanes, first = self._lanes, True
        while True:
            active = self._active[lanes.now_s[self._active] < self._to_s]
            if not len(active):
                break
            self._request(active[~lanes.moving[active]])
            active = active[lanes.moving[active] & (lanes.now_s[active] < self._to_s)]
            if len(active):
                most = self._most(active)
                claim = self._limits.claim[self._function(active)]
                if first:
                    presence = (self._to_s - lanes.now_s[active]) / step_s
                    self._share, first = self._store.share(most, claim, presence), False
                self._move(active, np.minimum(most, self._share * claim))
        ended = self._open_groups[self._function(self._active)] == 0
        if ended.any():
            self._active = self._active[~ended]

    def _most(self, lanes: Ints) -> Floats:
        """Return the maximum rate of moving lanes by themselves, in bytes per second."""
        function, limits = self._function(lanes), self._limits
        sharing: Ints | int = 1
        if self._width > 1:
            sharing = np.bincount(function, minlength=self._demand.functions)[function]
        most = np.minimum(limits.connection[function], limits.line / sharing)
        if np.isfinite(limits.bytes_per_s):
            left_s = self._to_s - self._lanes.now_s[lanes]
            most = np.minimum(most, np.maximum(self._tokens[function], 0) / left_s / sharing)
        return np.asarray(most)

    def _request(self, due: Ints) -> None:
        """Send the requests that are due, in the order of the instants."""
        if not len(due):
            return
        lanes = self._lanes
        due = due[np.argsort(lanes.now_s[due], kind="stable")]
        admitted = self._store.admit(len(due))
        self._refuse(due[admitted:])
        due = due[:admitted]
        group = due // self._demand.lanes
        is_body = self._groups.doing[group] == BODY
        latency = self._latency(due)
        now = lanes.now_s[due]
        lanes.began_s[due] = now
        # The response to a put follows its body; all other responses precede it.
        late = is_body & self._is_put
        after = np.where(late, now, now + latency)
        lanes.answered_s[due] = np.where(late, np.nan, after)
        lanes.post_s[due] = np.where(late, latency, 0)
        operation = self._groups.operation[group]
        begin = lanes.part[due] * self._demand.part_bytes[operation]
        size = np.minimum(self._demand.part_bytes[operation], self._demand.size[operation] - begin)
        size = np.where(is_body, np.maximum(size, 0), 0).astype(np.float64)
        for name, values in (("now_s", after), ("piece_s", after), ("size", size), ("left", size)):
            getattr(lanes, name)[due] = values
        lanes.piece[due] = 0
        lanes.moving[due] = True
        self._finish(due[size == 0])

    def _latency(self, lanes: Ints) -> Floats:
        """Draw latencies; the first request of a lane opens its connection."""
        store, kind = self._model.store, self._demand.kind
        drawn = (
            store.latencies(kind, (len(lanes),), self._rng) * self._factor[self._function(lanes)]
        )
        drawn += store.connect_s * ~self._is_open[lanes]
        self._is_open[lanes] = True
        return np.asarray(drawn)

    def _refuse(self, refused: Ints) -> None:
        """Respond with 503; the client waits according to its policy, and gives up in the end."""
        if not len(refused):
            return
        lanes = self._lanes
        now = lanes.now_s[refused]
        end = now + self._latency(refused)
        lanes.began_s[refused] = now
        lanes.answered_s[refused] = end
        lanes.post_s[refused] = 0
        self._note(refused, end, np.zeros(len(refused)), refused=True)
        fresh = np.isinf(lanes.until_s[refused])
        until = np.where(fresh, end + self._retries.budget_s, lanes.until_s[refused])
        lanes.until_s[refused] = until
        lanes.number[refused] += 1
        lanes.now_s[refused] = end
        over, group = end >= until, refused // self._demand.lanes
        self._groups.failed[group[over]] = True
        retried = refused[~over]
        lanes.wait_s[retried] = wait = self._retries.waits_s(group[~over], lanes.number[retried])
        lanes.now_s[retried] += wait
        self._through(refused[over])

    def _move(self, moving: Ints, rate: Floats) -> None:
        """Transfer bytes until the end of the request or of the step."""
        lanes = self._lanes
        now, left = lanes.now_s[moving], lanes.left[moving]
        possible = rate * (self._to_s - now)
        is_complete = left - possible <= _REST
        moved = np.where(is_complete, left, possible)
        took = np.where(is_complete, left / np.maximum(rate, 1e-9), self._to_s - now)
        at = np.where(is_complete, np.minimum(now + took, self._to_s), self._to_s)
        lanes.now_s[moving] = at
        lanes.left[moving] = left - moved
        lanes.piece[moving] += moved
        np.subtract.at(self._tokens, self._function(moving), moved)
        share = lanes.piece[moving] >= lanes.size[moving] / self._cuts
        ready = is_complete | (share & (at - lanes.piece_s[moving] >= _PIECE_S))
        noted = moving[ready]
        operation = self._groups.operation[noted // self._demand.lanes]
        self._pieces.add(noted, operation, lanes.piece_s[noted], at[ready], lanes.piece[noted])
        lanes.piece_s[noted], lanes.piece[noted] = at[ready], 0
        self._finish(moving[is_complete])

    def _finish(self, completed: Ints) -> None:
        """End requests after the transfer of all bytes."""
        if not len(completed):
            return
        lanes = self._lanes
        end = lanes.now_s[completed] + lanes.post_s[completed]
        late = np.isnan(lanes.answered_s[completed])
        lanes.answered_s[completed[late]] = end[late]
        self._note(completed, end, lanes.size[completed], refused=False)
        lanes.now_s[completed] = end
        self._through(completed)

    def _note(self, noted: Ints, end: Floats, moved: Floats, *, refused: bool) -> None:
        lanes, group = self._lanes, noted // self._demand.lanes
        self._attempts.add(
            noted,
            self._groups.operation[group],
            self._groups.doing[group],
            lanes.part[noted],
            lanes.number[noted],
            lanes.began_s[noted],
            end,
            lanes.wait_s[noted],
            lanes.answered_s[noted],
            moved,
            np.full(len(noted), float(refused)),
        )

    def _through(self, released: Ints) -> None:
        """Give lanes that have ended a request the next part, or let their group continue."""
        if not len(released):
            return
        lanes, groups, width = self._lanes, self._groups, self._demand.lanes
        group = released // width
        lanes.moving[released] = False
        lanes.number[released], lanes.wait_s[released], lanes.until_s[released] = 0, 0, np.inf
        following = lanes.part[released] + width
        parts = self._demand.parts[groups.operation[group]]
        has_next = (groups.doing[group] == BODY) & ~groups.failed[group] & (following < parts)
        lanes.part[released[has_next]] = following[has_next]
        resting, resting_groups = released[~has_next], group[~has_next]
        np.maximum.at(groups.end_s, resting_groups, lanes.now_s[resting])
        np.subtract.at(groups.pending, resting_groups, 1)
        lanes.now_s[resting] = np.inf
        waiting = np.unique(resting_groups)
        self._go_on(waiting[groups.pending[waiting] == 0])

    def _go_on(self, idle: Ints) -> None:
        """Let groups continue after all lanes have ended."""
        if not len(idle):
            return
        groups = self._groups
        doing, failed = groups.doing[idle], groups.failed[idle]
        upload = self._in_parts[groups.operation[idle]]
        self._begin_parts(idle[(doing == CREATE) & ~failed])
        closing = idle[(doing == BODY) & upload & ~failed]
        groups.doing[closing] = COMPLETE
        self._use_one(closing)
        self._end_operations(idle[failed | (doing == COMPLETE) | ((doing == BODY) & ~upload)])

    def _begin_operations(self, ready: Ints, at: Floats) -> None:
        """Start the next operation of groups, or end the groups."""
        demand, groups = self._demand, self._groups
        groups.end_s[ready] = at
        function = ready // demand.threads
        has_next = groups.operation[ready] < demand.first[ready + 1]
        late = at - self._launcher.start_s[function] > self._deadline_s
        self._stopped[function[has_next & late]] = True
        self._end_groups(ready[~has_next | late])
        ready, at = ready[has_next & ~late], at[has_next & ~late]
        operation = groups.operation[ready]
        self._done.start_s[operation] = at
        groups.failed[ready] = False
        upload = self._in_parts[operation]
        groups.doing[ready] = np.where(upload, CREATE, BODY)
        self._use_one(ready[upload])
        self._begin_parts(ready[~upload])

    def _use_one(self, groups: Ints) -> None:
        """Have the first lane of groups send a request without a body."""
        lane = groups * self._demand.lanes
        self._groups.pending[groups] = 1
        self._lanes.part[lane] = 0
        self._lanes.now_s[lane] = self._groups.end_s[groups]

    def _begin_parts(self, starting: Ints) -> None:
        demand, groups, lanes = self._demand, self._groups, self._lanes
        groups.doing[starting] = BODY
        used = np.minimum(demand.lanes, demand.parts[groups.operation[starting]])
        groups.pending[starting] = used
        for number in range(int(used.max(initial=0))):
            some = starting[used > number]
            lane = some * demand.lanes + number
            lanes.part[lane] = number
            lanes.now_s[lane] = groups.end_s[some]

    def _end_operations(self, finished: Ints) -> None:
        if not len(finished):
            return
        groups = self._groups
        operation = groups.operation[finished]
        self._done.end_s[operation] = groups.end_s[finished]
        self._done.failed[operation] = groups.failed[finished]
        groups.operation[finished] += 1
        self._begin_operations(finished, groups.end_s[finished].copy())

    def _end_groups(self, finished: Ints) -> None:
        function = finished // self._demand.threads
        np.maximum.at(self._end_s, function, self._groups.end_s[finished])
        np.subtract.at(self._open_groups, function, 1)
        for ended in np.unique(function[self._open_groups[function] == 0]).tolist():
            self._end_s[ended] += self._model.launch.finish_s
            self._launcher.ended(ended, float(self._end_s[ended]))

    def _function(self, lanes: Ints) -> Ints:
        return np.asarray(lanes // self._width)
