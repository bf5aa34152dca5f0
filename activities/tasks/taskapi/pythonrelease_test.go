package taskapi

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// CC-29, SEED-45: resources are released once nothing refers to them, and no earlier than the
// closures that use them are in the queue.
func TestPythonReleasesResources_CC29(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"same": same, "load": same})
	program := p.background(h.host, 0, coordinates+`
import copy, gc, pickle
def steps(*names):
    for name in names:
        print(name, flush=True)
        sys.stdin.readline()
dataset = c.create_per_worker_dataset("load", args=(8,))
kept = c.create_per_worker_resource("load", args=(7,))
copies = [copy.copy(kept), copy.deepcopy([kept])[0]]
assert copies[0] is kept and copies[1] is kept
named = pickle.loads(pickle.dumps(kept))
assert type(named) is clusterrun.PerWorkerValues and c.schedule("same", (named,)).fetch() == 7
del named
assert type(pickle.loads(pickle.dumps(iter(dataset)))) is type(iter(dataset))
for i in range(200):
    it = iter(dataset)
    assert c.schedule("same", (it,)).fetch() == 8
steps("one of 200 is left")
del it
steps("none is left")
it = iter(dataset)
steps("away")
values = [c.schedule("same", (it,)) for i in range(10)]
del it
steps("unsent")
assert c.fetch(values) == [8] * 10
steps("gone")
named = pickle.loads(pickle.dumps(kept))
del kept, copies
steps("released")
value = c.schedule("same", (named,))
text = raised(value.fetch, clusterrun.ClosureError)
assert text.startswith("RefusedError: resources: resource 1 was released by the client that created it"), text
assert raised(c.join, clusterrun.ClosureError) == text
more = [iter(dataset) for i in range(20)]
assert c.fetch([c.schedule("same", (it,)) for it in more]) == [8] * 20
print("ends")
`)
	left := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return h.queue.Counts().Resource == n && len(h.queue.Built()) == n }, time.Minute, time.Millisecond,
			"%d are known and %v built", h.queue.Counts().Resource, h.queue.Built())
		program.goOn()
	}
	program.says("one of 200 is left")
	left(2)
	assert.Less(t, h.queue.Updates(closure.UpdateReleaseResources), 200+2, "some go together, and none twice")
	program.says("none is left")
	left(1)
	program.says("away")
	h.queue.Away(true)
	program.goOn()
	program.says("unsent")
	h.queue.Away(false)
	program.goOn()
	program.says("gone")
	left(1)
	program.says("released")
	left(0)
	assert.Equal(t, "ends\n", program.ends())
	assert.Zero(t, h.queue.Counts().Resource, "the end of the program releases the others")
	assert.Empty(t, h.queue.Built())
}

// A coordinator that nothing refers to releases its resources before it ends. A forked child
// releases none.
func TestPythonCoordinatorsReleaseAtTheirEnd(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"same": same, "load": same})
	program := p.background(h.host, 0, strings.Replace(coordinates, "c = ", "", 1)+`
import gc
def threads():
    return [t for t in threading.enumerate() if t.name in ("clusterrun-schedule", "clusterrun-outcomes")]
values = clusterrun.ClusterCoordinator().create_per_worker_resource("load", args=(7,))
assert clusterrun.ClusterCoordinator() is values._coordinator, "they keep it"
pid = os.fork()
if pid == 0:
    del values
    gc.collect()
    sys.exit()
assert os.waitpid(pid, 0)[1] == 0
assert clusterrun.ClusterCoordinator().schedule("same", (values,)).fetch() == 7
ending = threads()
assert len(ending) == 2
del values
gc.collect()
for t in ending: t.join(60)
assert not threads(), threads()
print("ended", flush=True)
sys.stdin.readline()
`)
	program.says("ended")
	assert.Zero(t, h.queue.Counts().Resource)
	assert.Equal(t, 1, h.queue.Updates(closure.UpdateReleaseResources))
	program.goOn()
	program.ends()
}
