"""A pool of processes that all call a program's functions."""

import atexit
import contextlib
import json
import logging
import socket
import subprocess
import threading
import weakref
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from ._binary import find_binary
from ._http import COORDINATOR, head, parse, request
from ._json import loads
from ._poolprocess import GRACE, pool_function, refuse_while_importing, run_of
from ._pooltasks import closures_of, failure_of, is_lost, tasks_of
from ._transport import in_forked_children
from .remote import closure_error

_JOIN = 60.0  # seconds for all processes to exit
_UNEXPECTED_EOF = "Unexpected EOF. Worker process may have died"


class Pool:
    """A cluster's processes on this machine that stay for many calls, like TensorFlow's
    MultiProcessPoolRunner.

        @clusterrun.function
        def train(steps):
            ...
            return loss

        if __name__ == "__main__":
            with clusterrun.Pool({"chief": 1, "worker": 2}) as pool:
                losses = pool.run(train, args=(10,))

    cluster is a cluster spec such as {"worker": ["localhost:2222"]}, with a number allowed in
    place of the addresses, or the number of workers. The first run starts the processes, and
    later runs reuse them. They are tasks of a separate clusterrun run, with everything that
    such tasks have: TF_CONFIG, barriers, and so on.

    Functions must be registered with @clusterrun.function, in the main program or in a module,
    before the first run: the processes import both. As with multiprocessing, they import the
    main program under another name, so code for the main program only must be under if __name__
    == "__main__". A main program that is not a file, for example from stdin, from -c or in a
    notebook, cannot be imported; then only functions of modules can be called. Arguments and
    values are JSON values of up to 256 KiB each, and NaN, the infinities and bytes; other
    values are returned as text, with a warning in the process.

    initializer is a registered function without arguments; each process first calls it once.

    The pool stops at shutdown, when the program exits, however that happens, or as a context
    manager; the next run starts another pool. Only one thread at a time can use it.
    """

    __module__ = "clusterrun"

    def __init__(self, cluster: Union[int, Mapping[str, Union[int, Sequence[str]]]], initializer: Any = None) -> None:
        self._socket: Optional[socket.socket] = None
        self._tasks = tasks_of(cluster)
        self._initializer = None if initializer is None else pool_function(initializer)
        self._lock = threading.Lock()
        self._process: Any = None
        self._reset()
        _pools.add(self)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: Any) -> None:
        self.shutdown()

    def __del__(self) -> None:
        try:
            self.shutdown()
        except Exception:
            pass  # the interpreter is about to exit

    def run(
        self, fn: Any, args: Optional[Sequence[Any]] = None, kwargs: Optional[Mapping[str, Any]] = None
    ) -> List[Any]:
        """Call a function in all processes, and return the values in the cluster's order. Like
        in TensorFlow, None is omitted.

        It waits for all processes. If some fail, the first error in the cluster's order is
        raised, and the pool can still be used; ValueError means that the processes lack the
        function. If a process has died, RuntimeError is raised, and the pool is shut down; the
        next run starts new processes. The same happens if run is interrupted, for example by
        KeyboardInterrupt, which is then raised.
        """
        name = pool_function(fn)
        closures = closures_of(self._tasks, name, args, kwargs)
        with self._lock:
            if self._socket is None:
                self._start()
            outcomes = self._call(closures)
            if outcomes is None or any(is_lost(failure_of(o)) for o in outcomes):
                why = self._why(outcomes or ())
                process = self._let_go()
                self._shutdown(process, died=True)
                if not why and process.returncode:
                    why = "clusterrun exited with exit code %d; see stderr for the reason" % process.returncode
                if not why:
                    raise RuntimeError(_UNEXPECTED_EOF + ". Please report a bug")
                raise RuntimeError("%s: %s" % (_UNEXPECTED_EOF, why)) from RuntimeError(why)
        for outcome in outcomes:
            error = failure_of(outcome)
            if error is not None:
                raise closure_error(dict(error, kind="ValueError") if error.get("kind") == "UnknownFunctionError" else error)
        return [o["value"] for o in outcomes if o.get("value") is not None]

    def shutdown(self) -> None:
        """Stop the processes, if any, and wait until they have exited. Problems are only
        logged."""
        with self._lock:
            self._shutdown(self._let_go())

    # -- the processes' run

    def _start(self) -> None:
        refuse_while_importing()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                spec = json.dumps(run_of(self._tasks, self._initializer))
                command = [find_binary(), "run", "--coordinator-fd", str(theirs.fileno()), "-"]
                # A separate session: Ctrl-C is for the program, and stops the pool with it.
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, pass_fds=[theirs.fileno()], start_new_session=True
                )
                stdin = self._process.stdin
                assert stdin is not None
                with contextlib.suppress(BrokenPipeError):  # the run reports the reason
                    stdin.write(spec.encode())
                    stdin.close()
            except BaseException:
                ours.close()
                self._process = None
                raise
        self._socket = ours
        self._reset()

    def _reset(self) -> None:
        self._buffer = bytearray()
        self._scheduled = self._taken = 0  # number of closures, and of received outcomes
        self._over = ""  # why no more answers come

    def _call(self, closures: List[bytes]) -> Optional[List[Dict[str, Any]]]:
        """Return closures' outcomes, or None if some will be missing."""
        outcomes: Dict[int, Dict[str, Any]] = {}
        first, unsent = self._scheduled + 1, closures
        while len(outcomes) < len(closures):
            says = json.dumps({"client": "pool", "after": self._taken, "first": first, "wait": True})
            news = self._ask(b'%s,"closures":[%s]}' % (says[:-1].encode(), b",".join(unsent)))
            if news is None:
                return None
            self._scheduled = news["scheduled"]
            if self._scheduled >= first:
                unsent = []
            for outcome in news.get("outcomes") or ():
                self._taken += 1
                outcomes[outcome["id"]] = outcome
        return [outcomes[key] for key in sorted(outcomes)]

    def _ask(self, message: bytes) -> Optional[Dict[str, Any]]:
        """Return a request's answer, or None if none will come. Raise an exception if the queue
        refuses it."""
        assert self._socket is not None
        try:
            with contextlib.suppress(OSError):  # the run has ended, and its last answer is the reason
                self._socket.sendall(request(head("POST", COORDINATOR), message))
            said = self._answer()
        except BaseException:  # such as KeyboardInterrupt
            self._shutdown(self._let_go())
            raise
        if said is None:
            return None
        problem = said.get("error")
        if problem is None:
            return said
        refused = problem["code"] in ("invalid", "queue_refused")
        raise (ValueError if refused else RuntimeError)(problem["message"].replace("field %s: " % problem.get("field"), "", 1))

    def _answer(self) -> Optional[Dict[str, Any]]:
        """Return the next answer, or None if there are no more."""
        assert self._socket is not None
        while True:
            answer = parse(self._buffer)
            if answer is not None:
                break
            try:
                data = self._socket.recv(1 << 18)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self._buffer += data
        del self._buffer[:answer.size]
        said: Dict[str, Any] = loads(answer.body)
        problem = said.get("error", {})
        if problem.get("code") != "over":
            return said
        self._over = problem["message"]
        return None

    def _why(self, outcomes: Iterable[Dict[str, Any]]) -> str:
        """Return what is known about a process's death. The run may be about to report it."""
        assert self._socket is not None
        try:
            self._socket.settimeout(2 * GRACE)
            while not self._over and self._answer() is not None:
                pass
        except OSError:
            pass
        lost = [error.get("message", "") for error in map(failure_of, outcomes) if error is not None and is_lost(error)]
        return self._over or (lost[0] if lost else "")

    def _let_go(self) -> Any:
        """Send no more requests, which finishes the run in order. Return its process, which
        keeps the socket, because closing it completely would count as this program's death."""
        process, self._process = self._process, None
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            if process is not None:
                process.socket = self._socket
            self._socket = None
        return process

    @staticmethod
    def _shutdown(process: Any, died: bool = False) -> None:
        if process is None:
            return
        try:
            code = process.wait(_JOIN)
            if code != 0 and not died:
                raise RuntimeError("the pool's run ended with exit code %d" % code)
        except subprocess.TimeoutExpired as e:
            process.kill()  # the processes exit with the run
            process.wait()
            logging.getLogger("clusterrun").error("Ignoring exception when shutting down the pool: %s", e)
        except Exception as e:
            logging.getLogger("clusterrun").error("Ignoring exception when shutting down the pool: %s", e)

    def _forget(self) -> None:
        """Called in a forked child: the processes belong to its parent."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if self._socket is not None:
            self._socket.close()  # and nothing else: the connection belongs to the parent
            self._socket = None
        if process is not None:
            process.returncode = 0  # nothing to wait for


_pools: "weakref.WeakSet[Pool]" = weakref.WeakSet()


@atexit.register
def _shutdown_pools() -> None:
    pools = [(pool, pool._let_go()) for pool in list(_pools)]  # all exit at the same time
    for pool, process in pools:
        pool._shutdown(process)


@in_forked_children
def _forget_pools() -> None:
    for pool in list(_pools):
        pool._forget()
