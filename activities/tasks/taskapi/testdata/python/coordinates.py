@clusterrun.function
def add(n): pass
@clusterrun.function(name="nested")
def other(): pass
assert clusterrun.ClusterCoordinator() is c and clusterrun.ClusterCoordinator(None) is c
c.join()
assert c.done() is True
values = [c.schedule(add, args=(2,)) for _ in range(5)]
c.join()
assert all(v.status is clusterrun.RemoteValueStatus.READY for v in values)
assert sorted(c.fetch(values)) == [2, 4, 6, 8, 10] == sorted(v.get() for v in values)
for _ in range(5):
    c.schedule("add", (2,))
c.join(); c.join(); c.join()
assert c.done() is True
value = c.schedule(other)
assert value.fetch() == (1, [2, ()], {"x": (3.5,)}) == c.fetch(value), value.fetch()
value = c.schedule("same", (1, [None]), kwargs={"ü": {"x": True}})
Point = __import__("collections").namedtuple("Point", "x y")
structure = {"a": (value, [value]), "b": Point(value, 7), "c": object, "d": "text"}
one = [[1, [None]], {"ü": {"x": True}}]
assert c.fetch(structure) == {"a": (one, [one]), "b": Point(one, 7), "c": object, "d": "text"}, c.fetch(structure)
assert isinstance(c.fetch(structure)["b"], Point)
assert c.fetch(7) == 7
assert c.schedule("same", args=["\udc80"]).fetch() == "\ufffd"
assert c.schedule("same", args=["\u2028<&>"]).fetch() == "\u2028<&>"
assert c.schedule("same", args=[[float("-inf"), {"raw": b"\0"}]]).fetch() == [float("-inf"), {"raw": b"\0"}]
for arguments in ((value,), ([{"x": value}],)):
    print(raised(lambda: c.schedule(add, args=arguments), ValueError))
print(raised(lambda: c.schedule("add", kwargs={"n": value}), ValueError))
print(raised(lambda: c.schedule(lambda: 1), TypeError).split(" <")[0])
print(raised(lambda: c.schedule(7), TypeError))
print(raised(lambda: c.schedule(add, args=7), TypeError))
print(raised(lambda: c.schedule(add, kwargs=[1]), TypeError))
print(raised(lambda: c.schedule(add, args=(object,)), TypeError))
print(raised(lambda: c.schedule(add, args=({1},)), TypeError))
print(raised(lambda: c.schedule(add, args=("x" * (256 << 10),)), ValueError))
print(sorted(c.metrics().items()))
assert repr(value) == "<RemoteValue of closure 12: READY>", repr(value)
