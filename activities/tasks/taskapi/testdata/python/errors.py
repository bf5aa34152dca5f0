import clusterrun, sys
@clusterrun.record
def train(x):
    raise ValueError("x is %s, \udcff" % x)
try:
    train(3)
except ValueError:
    print("raised")
