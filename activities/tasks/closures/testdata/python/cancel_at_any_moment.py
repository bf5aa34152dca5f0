@clusterrun.function
def f(n):
    x = 0
    for i in range(n % 7 * 4000):
        x += i
    return n
clusterrun.serve()
