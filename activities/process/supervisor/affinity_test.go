package supervisor

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/fork"
)

// Only the process is bound, and it is bound with all its threads and children before it
// executes anything (MPR-33).
func TestCPUs_MPR33(t *testing.T) {
	own := unix.NewCPUSet(fork.MostCPUs)
	require.NoError(t, unix.SchedGetaffinityDynamic(0, own))
	var cpus []int
	for n := range fork.MostCPUs {
		if own.IsSet(n) {
			cpus = append(cpus, n)
		}
	}
	if len(cpus) < 2 {
		t.Skip("needs two CPUs")
	}
	first, last := cpus[0], cpus[len(cpus)-1]
	all := allowedIn(t, "/proc/self/status")

	h := newHost(t, nil)
	tasks := 0
	start := func(program string, cpus ...int) Process {
		r := h.request("task-"+strconv.Itoa(tasks), 0, "")
		tasks++
		r.Command.Path, r.Command.Args = program, []string{"cat", "/proc/self/status"}
		r.Command.CPUs = cpus
		p, err := h.client.Start(h.ctx(), r)
		require.NoError(t, err)
		h.wait(r.Key.Task, 0)
		return p
	}
	allowed := func(p Process) string { return allowedIn(t, p.LogDir+"/stdout.log") }

	require.Equal(t, all, allowed(start("/bin/cat")))
	require.Equal(t, strconv.Itoa(last), allowed(start("/bin/cat", last)))
	require.Equal(t, all, allowed(start("/bin/cat")), "the next one is not bound")
	require.Equal(t, strconv.Itoa(first), allowed(start("/bin/cat", first)))

	for text, bad := range map[string][]int{
		"binding to CPUs [8191]: invalid argument":           {8191},
		"binding to CPUs [8192]: no CPU 8192":                {8192},
		"binding to CPUs [-1]: no CPU -1":                    {-1},
		"]: CPU 8191 may not be used here":                   {first, 8191},
		"cannot execute /nowhere: no such file or directory": nil,
	} {
		program := "/bin/cat"
		if bad == nil {
			program, bad = "/nowhere", []int{last}
		}
		p := start(program, bad...)
		require.NotNil(t, p.Exit, text)
		require.Contains(t, p.Exit.StartError, text)
		require.Equal(t, all, allowed(start("/bin/cat")), "after %s", text)
	}
	require.Equal(t, strconv.Itoa(last), allowed(start("/bin/cat", last)))
}

func allowedIn(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(b), "Cpus_allowed_list:")
	require.True(t, found, "%s", b)
	list, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(list)
}
