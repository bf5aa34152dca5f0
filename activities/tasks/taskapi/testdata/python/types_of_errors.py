import builtins
kinds = sorted(n for n in dir(builtins) if isinstance(getattr(builtins, n), type) and issubclass(getattr(builtins, n), Exception))
def error(kind):
    """The value of a function that has failed, after its error was raised."""
    value = c.schedule("fails", (kind, "text"))
    try:
        c.join()
    except clusterrun.ClosureError:
        return value
values = [error(kind) for kind in kinds]
odd = []
for kind, value in zip(kinds, values):
    try:
        value.fetch()
    except clusterrun.ClosureError as e:
        if not isinstance(e, getattr(builtins, kind)) or str(e) != "text":
            odd.append((kind, str(e)))
print([kind for kind, text in odd if kind not in ("BaseExceptionGroup", "ExceptionGroup")])
for kind in ("KeyboardInterrupt", "print", "MyError", "", "UnavailableError"):
    try:
        error(kind).fetch()
    except Exception as e:
        print(type(e).__name__, [b.__name__ for b in type(e).__bases__], e)
