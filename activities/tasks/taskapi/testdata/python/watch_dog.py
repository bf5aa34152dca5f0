import io, tempfile
fired = threading.Event()
with tempfile.TemporaryFile("w+") as file:
    dog = clusterrun.WatchDog(0.05, file, fired.set)
    assert fired.wait(30)
    dog.report_closure_done()
    fired.clear()
    assert fired.wait(30)
    dog.stop()
    file.seek(0)
    text = file.read()
    assert "no function has ended for 0.05 seconds" in text and "most recent call first" in text, text
time.sleep(0.1)
assert not [t for t in threading.enumerate() if "watchdog" in t.name]
os.environ["TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT"] = "7"
assert clusterrun.WatchDog(3).timeout == 7
del os.environ["TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT"]
assert clusterrun.WatchDog().timeout == -1
sys.stderr = open(os.environ["HOME"] + "/watchdog", "w+")
assert clusterrun.ClusterCoordinator(watchdog=0.05) is c
time.sleep(0.2)
assert sys.stderr.tell() == 0, "nothing is waited for"
value = c.schedule("forever")
while sys.stderr.tell() == 0: time.sleep(0.01)
c.schedule("nobody")
raised(c.join, clusterrun.ClosureError)
print("ok")
