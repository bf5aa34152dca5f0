# Commands whose workflows are recorded. The IDs of the runs are the names of the files.
run() { id=$1; shift; clusterrun run --remote --id "$id" "$@" || true; }
background() { id=$1; shift; clusterrun submit --id "$id" "$@"; }
up() { until [ -e "up-$1" ]; do sleep 0.1; done; }
sleeping() { echo "echo > up-\$CLUSTERRUN_RUN_ID-\$RANK; exec sleep 1000"; }

until [ "$(clusterrun host list 2>/dev/null | grep -c 'host-[ab]')" = 2 ]; do sleep 0.2; done
run success --task chief=1 --task worker=2 -- true
run failure -n 2 -- bash -c '[ $RANK = 0 ] && exit 3; exec sleep 1000'
run chief-grace --auto-restart --set chief_grace=200ms --task chief=1 --task worker=2 -- bash -c '[ $CLUSTERRUN_TASK = chief-0 ] || exec sleep 1000'
run timeout -n 2 --timeout 300ms -- sleep 1000
run max-run-time --set max_run_time=300ms -- sleep 1000
run placement --set placement_timeout=1s --task worker=1 --task ps=nowhere:2222 -- true
run refused -- no-such-program
run two-hosts --task worker=host-b --task ps=host-a:28222 -- true
run group -n 2 --restart-scope group -- bash -c '[ $CLUSTERRUN_GENERATION -gt 1 ] && exit 0; [ $RANK = 1 ] && exit 3; exec sleep 1000'
run group-two-hosts --restart-scope group --task worker=host-b,host-b --task ps=host-a:28223 -- bash -c '[ $CLUSTERRUN_GENERATION -gt 1 ] && exit 0; [ $RANK = 1 ] && exit 3; exec sleep 1000'
run barrier -n 2 --set barriers=server -- bash -c 'clusterrun task barrier x && clusterrun task barrier x'
run barrier-broken -n 2 --set barriers=server --on-failure continue -- bash -c '[ $RANK = 0 ] && exit 3; clusterrun task barrier x'
run barrier-late -n 2 --set barriers=server --on-failure continue -- bash -c '[ $RANK = 0 ] && exec sleep 4; clusterrun task barrier --timeout 1s x'
python3 -c 'import http.server as h
s = h.HTTPServer(("127.0.0.1", 0), type("Hook", (h.BaseHTTPRequestHandler,), {"do_POST": lambda r: r.send_error(404)}))
print(s.server_port, file=open("port", "w"), flush=True)
s.handle_request()' &
until [ -s port ]; do sleep 0.1; done
run notified --notify "http://127.0.0.1:$(cat port)/" -- false
run stop-by-a-task -n 2 -- bash -c '[ $RANK = 0 ] && clusterrun task stop --error enough; sleep 1'
run closures --task chief=1 --task worker=2 --env PYTHONPATH="$(clusterrun task python --dir)" -- python3 closures.py
clusterrun run --id here -n 2 --restart-scope group -- bash -c '[ $CLUSTERRUN_GENERATION = 1 ] || exit 3'
clusterrun run --id here-longer -n 2 -- sleep 0.5

background cancel -n 2 -- bash -c "$(sleeping)"
up cancel-1
clusterrun stop --wait cancel
background requests -n 2 -- bash -c "$(sleeping)"
up requests-0
up requests-1
for _ in 1 2 3 4 5 6 7 8; do clusterrun signal requests worker-0 CONT; done
clusterrun restart requests worker-0
clusterrun stop requests worker-1
until clusterrun start requests worker-1; do sleep 0.2; done
clusterrun start requests evaluator-0 -- true
clusterrun start requests evaluator-1 -- no-such-program || true
clusterrun stop --wait requests
background group-requests -n 2 --restart-scope group --max-restarts 0 -- bash -c "[ \$CLUSTERRUN_GENERATION = 1 ] && exit 5; $(sleeping)"
up group-requests-0
up group-requests-1
clusterrun stacks group-requests
clusterrun restart group-requests worker-0
clusterrun wait group-requests || true
background stragglers -n 2 --set stop_together='{grace: 300ms}' -- bash -c "$(sleeping)"
up stragglers-1
clusterrun stop --graceful --wait stragglers
background sweep --array n=0..5 --at-most 2 -- bash -c '[ {n} != 3 ]'
clusterrun wait sweep || true
run in-groups -n 252 --set stop='{signal: SIGKILL}' -- sh -c '[ $RANK != 0 ] || { sleep 2; exit 3; }; exec sleep 1000'
