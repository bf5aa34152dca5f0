import itertools, linecache
def raises_at(left):
    def trace(frame, event, arg):
        name = frame.f_code.co_filename
        if not name.endswith(("/clusterrun/_session.py", "/threading.py")):
            return None
        before, line = (linecache.getline(name, frame.f_lineno + i).strip() for i in (-1, 0))
        # No signal is handled just before these, or between a block and its finally or the
        # release of its lock.
        if event == "line" and not line.startswith("with ") and line not in ("try:", "return") and before != "finally:":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return trace
    return trace
def goes_on(call):
    """Call it with an exception at each of its lines; once it has not come up, it has ended."""
    for n in itertools.count(1):
        left = [n]
        sys.settrace(raises_at(left))
        try:
            call()
            assert left[0] > 0, "the exception was lost"
            return
        except KeyboardInterrupt:
            yield n
        finally:
            sys.settrace(None)
