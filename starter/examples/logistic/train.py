#!/usr/bin/env python3
"""Logistic regression on a chief, workers and parameter servers.

Each process finds the others through TF_CONFIG, as programs for TensorFlow's
parameter server strategy do. It needs Python 3.8 and nothing else.

  ps      keeps a part of the parameters, and adds up gradients for it.
  worker  computes the gradient of its share of the training examples.
  chief   says which epoch is due, and evaluates the model in the end.

Any of them may be killed and started again while the training runs. A worker
just asks the chief what is due. A parameter server that has lost its part gets
it back from the chief, and the epoch is repeated. A chief continues with the
epoch that the parameter servers are at.
"""
import argparse
import csv
import json
import math
import os
import socket
import socketserver
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))


# --- the data -----------------------------------------------------------------

def load(path):
    """Returns training and test examples as (features, label) pairs."""
    with open(path, newline="") as f:
        rows = csv.reader(f)
        next(rows)  # the header holds counts and the names of the two classes
        examples = [([float(x) for x in row[:-1]], int(row[-1])) for row in rows]
    test = examples[::5]
    train = [e for i, e in enumerate(examples) if i % 5]
    # Scaled by the training examples only: the test must not leak into them.
    columns = list(zip(*(features for features, _ in train)))
    means = [sum(c) / len(c) for c in columns]
    scales = [math.sqrt(sum((x - m) ** 2 for x in c) / len(c)) or 1.0 for c, m in zip(columns, means)]

    def scaled(features):
        # The constant 1 makes the last parameter the bias.
        return [(x - m) / s for x, m, s in zip(features, means, scales)] + [1.0]

    return [(scaled(f), y) for f, y in train], [(scaled(f), y) for f, y in test]


# --- the model ----------------------------------------------------------------

def predict(weights, features):
    z = sum(w * x for w, x in zip(weights, features))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))


def gradient_of(weights, examples):
    """Returns the summed gradient and the summed loss."""
    gradient = [0.0] * len(weights)
    loss = 0.0
    for features, label in examples:
        p = predict(weights, features)
        loss -= math.log(p if label else 1 - p)
        error = p - label
        for i, x in enumerate(features):
            gradient[i] += error * x
    return gradient, loss


def accuracy(weights, examples):
    right = sum((predict(weights, features) >= 0.5) == bool(label) for features, label in examples)
    return right / len(examples)


def share(items, part, parts):
    """Returns the part-th of about equal parts of a list."""
    return items[len(items) * part // parts:len(items) * (part + 1) // parts]


# --- messages: a line of JSON there, a line of JSON back ------------------------

def split_address(address):
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def serve(address, handle):
    """Answers messages with handle(message), in one thread per connection."""

    class Handler(socketserver.StreamRequestHandler):
        disable_nagle_algorithm = True

        def handle(self):
            try:
                for line in self.rfile:
                    self.wfile.write(json.dumps(handle(json.loads(line))).encode() + b"\n")
            except ConnectionError:
                pass  # the peer was stopped, or started again

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True  # a process that was started again finds its port
        daemon_threads = True
        request_queue_size = 128
        address_family = socket.AF_INET6 if ":" in split_address(address)[0] else socket.AF_INET

    server = Server(split_address(address), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Peer:
    """Another process. It may not be there yet, or not at the moment."""

    def __init__(self, name, address, patience=60.0):
        self.name, self.address, self.patience = name, address, patience
        self.stream = None

    def call(self, **message):
        # Every message may be sent twice without harm, so one that got no answer
        # is sent again.
        give_up = time.monotonic() + self.patience
        while True:
            try:
                if self.stream is None:
                    s = socket.create_connection(split_address(self.address), timeout=self.patience)
                    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.stream = s.makefile("rwb")
                self.stream.write(json.dumps(message).encode() + b"\n")
                self.stream.flush()
                answer = self.stream.readline()
                if not answer.endswith(b"\n"):
                    raise ConnectionError("the connection was closed")
                return json.loads(answer)
            except OSError as e:
                self.stream = None
                if time.monotonic() > give_up:
                    raise SystemExit("%s at %s does not answer: %s" % (self.name, self.address, e))
                time.sleep(0.05)


# --- the tasks ------------------------------------------------------------------

class ParameterServer:
    """Keeps a part of the parameters: those before the epoch that it is at."""

    def __init__(self):
        self.lock = threading.Lock()
        self.epoch, self.values, self.gradients = -1, [], {}

    def handle(self, m):
        with self.lock:
            if m["op"] == "set":
                self.epoch, self.values, self.gradients = m["epoch"], m["values"], {}
            elif m["op"] == "push" and m["epoch"] == self.epoch:
                # By worker: the gradient of one that was started again counts once.
                self.gradients[m["worker"]] = m["gradient"]
            elif m["op"] == "apply" and m["epoch"] == self.epoch and len(self.gradients) == m["workers"]:
                # In a fixed order: sums of floats depend on it, and runs should not.
                for _, gradient in sorted(self.gradients.items()):
                    self.values = [v - m["rate"] * g for v, g in zip(self.values, gradient)]
                self.epoch, self.gradients = self.epoch + 1, {}
            return {"epoch": self.epoch, "values": self.values}


def run_ps(cluster, index, options):
    serve(cluster["ps"][index], ParameterServer().handle)
    print("serving at", cluster["ps"][index])
    threading.Event().wait()  # until it is stopped


def run_worker(cluster, index, options):
    train, _ = load(options.data)
    examples = share(train, index, len(cluster["worker"]))
    print("%d of %d training examples" % (len(examples), len(train)))
    chief = Peer("the chief", cluster["chief"][0])
    servers = [Peer("ps-%d" % i, a) for i, a in enumerate(cluster["ps"])]
    seen = None
    while True:
        work = chief.call(op="work", worker=index, seen=seen)
        if work.get("done"):
            break
        if work["round"] == seen:
            continue  # nothing new yet
        seen = work["round"]
        weights = [v for s in servers for v in s.call(op="pull")["values"]]
        loss = 0.0
        # A parameter server that was just started again has no values. Nothing is
        # pushed then; the chief finds that out, and repeats the epoch.
        if len(weights) == len(examples[0][0]):
            gradient, loss = gradient_of(weights, examples)
            for i, s in enumerate(servers):
                s.call(op="push", epoch=work["epoch"], worker=index, gradient=share(gradient, i, len(servers)))
        chief.call(op="done", worker=index, round=seen, loss=loss)
    print("done")


class Coordinator:
    """The chief's side of the conversation with the workers."""

    def __init__(self, workers):
        self.workers = workers
        self.changed = threading.Condition()
        # A round is an epoch, or one more try of it.
        self.round, self.epoch, self.losses = 0, None, {}
        self.over, self.told = False, set()

    def handle(self, m):
        with self.changed:
            if m["op"] == "done":
                if m["round"] == self.round:
                    self.losses[m["worker"]] = m["loss"]
                    self.changed.notify_all()
                return {}
            # Wait for something new, but not for ever: the worker may be gone.
            self.changed.wait_for(lambda: self.over or self.round and self.round != m["seen"], timeout=5)
            if self.over:
                self.told.add(m["worker"])
                self.changed.notify_all()
                return {"done": True}
            return {"round": self.round or m["seen"], "epoch": self.epoch}

    def run_round(self, epoch):
        """Has all workers push their gradients; returns the loss, or None if one did not."""
        with self.changed:
            self.round, self.epoch, self.losses = time.monotonic_ns(), epoch, {}
            self.changed.notify_all()
            if not self.changed.wait_for(lambda: len(self.losses) == self.workers, timeout=10):
                return None
            return sum(loss for _, loss in sorted(self.losses.items()))

    def finish(self):
        with self.changed:
            self.over = True
            self.changed.notify_all()
            self.changed.wait_for(lambda: len(self.told) == self.workers, timeout=1)


def run_chief(cluster, index, options):
    train, test = load(options.data)
    size, workers = len(test[0][0]), len(cluster["worker"])
    servers = [Peer("ps-%d" % i, a) for i, a in enumerate(cluster["ps"])]
    coordinator = Coordinator(workers)
    serve(cluster["chief"][index], coordinator.handle)

    # A chief that was started again continues where the parameter servers are.
    parts = [s.call(op="pull") for s in servers]
    epoch = max(0, min(p["epoch"] for p in parts))
    parts = [p["values"] or share([0.0] * size, i, len(servers)) for i, p in enumerate(parts)]
    if epoch:
        print("going on at epoch", epoch)
    loss = None
    while epoch < options.epochs:
        for s, values in zip(servers, parts):
            if s.call(op="pull")["epoch"] < epoch or epoch == 0:
                s.call(op="set", epoch=epoch, values=values)
        total = coordinator.run_round(epoch)
        answers = [s.call(op="apply", epoch=epoch, workers=workers, rate=options.rate / len(train)) for s in servers]
        if total is None or any(a["epoch"] <= epoch for a in answers):
            print("epoch %d has to be repeated" % epoch)
            continue
        parts = [a["values"] for a in answers]
        epoch, loss = epoch + 1, total / len(train)
        if epoch % 20 == 0:
            print("epoch %3d  loss %.4f" % (epoch, loss))
        time.sleep(options.pause)
    coordinator.finish()

    weights = [v for part in parts for v in part]
    result = {"accuracy": round(accuracy(weights, test), 4), "test_examples": len(test), "epochs": epoch, "loss": loss}
    print("accuracy %.4f on %d test examples" % (result["accuracy"], len(test)))
    # The content of this file at the end of the process is the task's return value.
    path = os.environ.get("CLUSTERRUN_RESULT_FILE")
    if path:
        with open(path, "w") as f:
            json.dump(result, f)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.path.join(HERE, "data", "breast_cancer.csv"))
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--rate", type=float, default=1.0, help="learning rate")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds after each epoch, to have time to kill something")
    options = parser.parse_args()
    if "TF_CONFIG" not in os.environ:
        sys.exit("TF_CONFIG is not set: start me with clusterrun, as README.md says")
    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    run = {"chief": run_chief, "worker": run_worker, "ps": run_ps}[task["type"]]
    run(config["cluster"], task["index"], options)


if __name__ == "__main__":
    main()
