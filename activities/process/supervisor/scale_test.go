package supervisor

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// startMany starts n processes in parallel.
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
			// During an exec a process's environment cannot be read.
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

// Processes start and exit in every order and simultaneously, with orphans in between.
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
