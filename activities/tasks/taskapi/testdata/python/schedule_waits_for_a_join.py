held = c.schedule("wait", (1,))
joined, done = threading.Event(), []
def join():
    c.join()
    done.append("joined")
threads = [threading.Thread(target=join)]
threads[0].start()
while not c._session.joins: time.sleep(0.001)
def schedule():
    value = c.schedule("same", (2,))
    done.append("scheduled")
    assert value.fetch() == 2
threads.append(threading.Thread(target=schedule))
threads[1].start()
time.sleep(0.1)
assert done == [], done
print("waits", flush=True)
for t in threads: t.join()
print(done)
