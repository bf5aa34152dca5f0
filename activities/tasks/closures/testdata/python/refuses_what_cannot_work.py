def wrong(call):
    try:
        call()
    except (ValueError, TypeError) as e:
        print(type(e).__name__, e)
async def later(): pass
def f(): pass
def g(): pass
wrong(clusterrun.serve)
wrong(lambda: clusterrun.function(7))
wrong(lambda: clusterrun.function("name"))
wrong(lambda: clusterrun.function(later))
wrong(lambda: clusterrun.function(f, name="a\nb"))
assert clusterrun.function(f) is f and clusterrun.function(f) is f
wrong(lambda: clusterrun.function(g, name="f"))
assert clusterrun.cancelled() is False
os.environ["TF_COORDINATOR_SCHEDULE_START_DELAY"] = "soon"
wrong(clusterrun.serve)
del os.environ["CLUSTERRUN_SOCKET"]
wrong(clusterrun.serve)
for delay, most, index in (("", "", "3"), ("5", "", "3"), ("5", "10", "3"), ("5", "10", "1"), ("0.5", "0", "3"), ("5", "", "")):
    print(clusterrun.serving.start_delay({"TF_COORDINATOR_SCHEDULE_START_DELAY": delay, "TF_COORDINATOR_SCHEDULE_START_DELAY_MAX": most, "CLUSTERRUN_TASK_INDEX": index}), end=" ")
