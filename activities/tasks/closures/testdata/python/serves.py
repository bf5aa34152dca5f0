@clusterrun.function
def add(a, b=1, *more, **named):
    return [a + b, list(more), named]
@clusterrun.function(name="fail.now")
def fail():
    def inner():
        raise KeyError("no")
    inner()
@clusterrun.function
def nothing():
    pass
@clusterrun.function
def ps():
    raise clusterrun.UnavailableError("no answer", task="ps-0")
@clusterrun.function
def connection():
    raise ConnectionError("guess")
@clusterrun.function
def bad(kind):
    if kind == "large":
        return "x" * ((256 << 10) - 1)
    if kind == "largest":
        return "ü" * ((128 << 10) - 1)
    if kind == "surrogate":
        return "\udc80"
    if kind == "loop":
        x = []
        x.append(x)
        return x
    return {"object": object(), "nan": float("nan")}[kind]
@clusterrun.function
def lengthy(what):
    class Unwritable(Exception):
        def __str__(self): raise SystemExit(1)
    long = "x" * (5 << 20)
    raise {
        "kind": lambda: type(long, (Exception,), {})("no"), "message": lambda: ValueError(long),
        "task": lambda: clusterrun.UnavailableError("no", long), "str": Unwritable,
    }[what]()
clusterrun.serve()
