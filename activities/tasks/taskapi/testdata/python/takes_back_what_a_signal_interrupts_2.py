values = []
for _ in goes_on(lambda: values.append(c.schedule("forever"))):
    c.join()
    assert not values
c.cancel(values)
value = c.schedule("same", (1,))
for _ in goes_on(c.join):
    assert c.schedule("same", (2,)).fetch() == 2
assert value.fetch() == 1
