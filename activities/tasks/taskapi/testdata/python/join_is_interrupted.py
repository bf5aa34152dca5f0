c.schedule("fails", ("ValueError", "no"))
try:
    c.join()
except KeyboardInterrupt:
    print("interrupted", flush=True)
sys.stdin.readline()
print(raised(c.join, ValueError))
c.join()
