import clusterrun
coord = clusterrun.Coordinator(run=True)
coord.request_stop()
for call in (clusterrun.request_stop, coord.join):
    try:
        call()
    except clusterrun.TaskError as e:
        print(e.code, e)
