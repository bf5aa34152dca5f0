import clusterrun, gc
for i in range(100):
    clusterrun.Coordinator(run=True)
coord = clusterrun.Coordinator(run=True)
gc.collect()
assert len(clusterrun.stop._listeners) == 1
print("ready", flush=True)
assert coord.wait_for_stop(60)
for _ in range(2):
    try:
        coord.join()
    except clusterrun.StopError as e:
        print(e, len(e.__traceback__.tb_frame.f_code.co_name) > 0)
