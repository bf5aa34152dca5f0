import clusterrun
for call in (clusterrun.should_stop, clusterrun.should_stop, clusterrun.wait_for_stop, clusterrun.request_stop):
    try:
        call()
    except clusterrun.TaskError as e:
        print(e.code, e)
