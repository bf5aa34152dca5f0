package supervisor

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// startMany starts n processes at once.
func (h *host) startMany(n int, script string) {
	h.t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			p, err := h.client.Start(h.ctx(), h.request(fmt.Sprintf("worker-%d", i), 0, script))
			if assert.NoError(h.t, err) {
				assert.Nil(h.t, p.Exit)
			}
		})
	}
	wg.Wait()
}

func (h *host) waitMany(n int) []Exit {
	h.t.Helper()
	exits := make([]Exit, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			p, err := h.client.Wait(h.ctx(), ref(fmt.Sprintf("worker-%d", i), 0))
			if assert.NoError(h.t, err) {
				exits[i] = *p.Exit
			}
		})
	}
	wg.Wait()
	return exits
}

func TestManyTasks(t *testing.T) {
	const n = 256
	for way, change := range mainWay() {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, change)
			h.startMany(n, "exec sleep 1000")
			// A process that is just executing another program has no environment to read.
			h.until("all are seen", func() bool { return len(h.cookied()) == n })
			require.Len(t, h.stop(sigTERM, long), n)
			for _, e := range h.waitMany(n) {
				require.Equal(t, -15, e.Code)
				require.Equal(t, ReasonTerminate, e.Reason)
			}
			require.Empty(t, h.cookied())
		})
	}
}

// Processes start and end in every order and at the same time, with orphans in between.
func TestChurn(t *testing.T) {
	for way, change := range mainWay() {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, change)
			scripts := []string{"exit 1", "exec sleep 1000", "sleep 1000 & exit 2", "setsid sleep 1000 & exit 3", "kill -9 $$"}
			codes := []int{1, -9, 2, 3, -9}
			var wg sync.WaitGroup
			for i := range 40 {
				wg.Go(func() {
					task := fmt.Sprintf("worker-%d", i)
					for number := range 5 {
						kind := (i + number) % len(scripts)
						if _, err := h.client.Start(h.ctx(), h.request(task, number, scripts[kind])); !assert.NoError(t, err) {
							return
						}
						if kind == 1 {
							_, err := h.client.Stop(h.ctx(), StopRequest{Run: testRun, Tasks: []string{task}, Signal: sigKILL, Reason: ReasonRestart})
							assert.NoError(t, err)
						}
						p, err := h.client.Wait(h.ctx(), ref(task, number))
						if !assert.NoError(t, err) {
							return
						}
						assert.Equal(t, codes[kind], p.Exit.Code, scripts[kind])
						assert.False(t, p.Exit.Unkillable)
						assert.NoError(t, h.client.Grant(h.ctx(), GrantRequest{Key: keyOf(task), Number: number, Fence: Fence{Attempt: 1}}))
					}
				})
			}
			wg.Wait()
			require.Empty(t, h.cookied())
		})
	}
}

// TestMeasure is a measurement, not a test. Run it with CLUSTERRUN_MEASURE=1 go test -v -run
// Measure.
func TestMeasure(t *testing.T) {
	if os.Getenv("CLUSTERRUN_MEASURE") == "" {
		t.Skip("set CLUSTERRUN_MEASURE=1 to measure")
	}
	for way, change := range ways {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, change)
			memory := func() string {
				raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
				var out []string
				for line := range strings.Lines(string(raw)) {
					for _, name := range []string{"VmRSS", "RssAnon", "Threads"} {
						if strings.HasPrefix(line, name) {
							out = append(out, strings.Join(strings.Fields(line), " "))
						}
					}
				}
				return strings.Join(out, ", ")
			}
			t.Logf("idle, no task: %s", memory())
			const n = 256
			begun := time.Now()
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					r := h.request(fmt.Sprintf("worker-%d", i), 0, "")
					r.Command.Path, r.Command.Args = "/bin/sleep", []string{"sleep", "1000"}
					_, err := h.client.Start(h.ctx(), r)
					assert.NoError(t, err)
				})
			}
			wg.Wait()
			took := time.Since(begun)
			t.Logf("%d starts in %v: %.0f/s", n, took, n/took.Seconds())
			t.Logf("%d sleeping tasks: %s, %d descriptors", n, memory(), h.fds())
			begun = time.Now()
			h.stop(sigTERM, long)
			h.waitMany(n)
			t.Logf("%d stops and waits in %v", n, time.Since(begun))
			h.sh("one", 0, "exit 0")
			h.wait("one", 0)
			for i := range 8 {
				h.sh(fmt.Sprintf("eight-%d", i), 0, "exec sleep 1000")
			}
			begun = time.Now()
			h.stop(sigTERM, long)
			for i := range 8 {
				h.wait(fmt.Sprintf("eight-%d", i), 0)
			}
			t.Logf("8 stops and waits in %v", time.Since(begun))
			begun = time.Now()
			for i := range 20 {
				h.sh("serial", i, "exit 0")
				h.wait("serial", i)
				assert.NoError(t, h.client.Grant(h.ctx(), GrantRequest{Key: keyOf("serial"), Number: i, Fence: Fence{Attempt: 1}}))
			}
			t.Logf("start, exit, wait, grant, one after another: %v each", time.Since(begun)/20)
		})
	}
}
