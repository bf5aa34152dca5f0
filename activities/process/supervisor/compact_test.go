package supervisor

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// crashed journals a process that failed and was granted a successor.
func crashed(t *testing.T, j *journal, boot string, generation, number int) {
	t.Helper()
	r := record{Generation: generation, Task: "worker-0", Number: number}
	starting, started, exited, granted := r, r, r, r
	starting.Type, starting.Fence, starting.LogDir, starting.Boot = recStarting, &Fence{Attempt: number + 1}, "/logs", boot
	started.Type, started.PID, started.Ticks = recStarted, 999999, 5
	exited.Type, exited.Exit = recExited, &Exit{Code: 1, Ended: time.Now().UTC()}
	granted.Type, granted.Failures = recGranted, number+1
	for _, r := range []record{starting, started, exited, granted} {
		require.NoError(t, j.append(r))
	}
}

// A task that is started again every few seconds for weeks does not cost more with every
// restart: the journal keeps the first process, the last hundred, and the number of failures.
func TestCrashLoopIsBounded(t *testing.T) {
	const restarts = 9000
	h := newHost(t, nil)
	h.kill9()
	h.awaitCount("swept", 1)
	boot, err := bootID()
	require.NoError(t, err)
	s, err := OpenState(h.role.Dir)
	require.NoError(t, err)
	j := newJournal(s.journalPath(runHash(testRun)), testRun)
	for number := range restarts {
		crashed(t, j, boot, 0, number)
		require.Less(t, j.size, int64(compactFrom+10000))
	}
	require.NoError(t, j.close())
	require.NoError(t, s.Close())

	h.start()
	attach := func() []Process {
		reply, err := h.client.Attach(h.ctx(), AttachRequest{Key: keyOf("worker-0"), Fence: Fence{Attempt: restarts + 1}})
		require.NoError(t, err)
		return reply.Processes
	}
	known := attach()
	require.Len(t, known, 1+KeepProcesses)
	require.Zero(t, known[0].Number)
	require.Equal(t, restarts-KeepProcesses, known[1].Number)
	last := known[len(known)-1]
	require.Equal(t, restarts-1, last.Number)
	require.Equal(t, restarts, last.Failures)

	r := h.request("worker-0", restarts, "exit 4")
	r.Fence.Attempt = restarts + 1
	_, err = h.client.Start(h.ctx(), r)
	require.NoError(t, err)
	require.Equal(t, 4, h.wait("worker-0", restarts).Code)
	known = attach()
	require.Len(t, known, 1+KeepProcesses)
	require.Equal(t, restarts, known[len(known)-1].Number)

	reply, err := h.client.Release(h.ctx(), ReleaseRequest{Run: testRun, Stops: Stops{Stop: Stop{Signal: sigTERM}}})
	require.NoError(t, err)
	require.Equal(t, known, reply.Processes)
}

// The same is true of a group: the journal keeps its first generation and the last hundred.
func TestCrashLoopOfAGroupIsBounded(t *testing.T) {
	const generations = 1500
	dir := t.TempDir()
	s, err := OpenState(dir)
	require.NoError(t, err)
	j := newJournal(s.journalPath(runHash(testRun)), testRun)
	for generation := range generations {
		require.NoError(t, j.append(record{Type: recLeased, Generation: generation, Ports: []int{20001}}))
		crashed(t, j, s.boot, generation, 0)
		require.Less(t, j.size, int64(compactFrom+10000))
	}
	require.NoError(t, j.close())
	require.NoError(t, s.Close())
	_, r := reopen(t, dir)
	require.Empty(t, r.damaged)
	require.Equal(t, generations-1, r.newest)
	views := r.views()
	require.Len(t, views, 1+1+KeepProcesses)
	require.Zero(t, views[0].Key.Generation)
	require.Equal(t, generations-1-KeepProcesses, views[1].Key.Generation)
}

// Compacting leaves out records from the middle of a task. It keeps living processes, starts
// that were taken back, and the beginning of each launch.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenState(dir)
	require.NoError(t, err)
	j := newJournal(s.journalPath(runHash(testRun)), testRun)
	for number := range 150 {
		crashed(t, j, s.boot, 0, number)
	}
	require.NoError(t, j.append(record{Type: recStarting, Task: "worker-0", Number: 150, Fence: &Fence{Launch: 1}, Boot: s.boot}))
	require.NoError(t, j.append(record{Type: recAborted, Task: "worker-0", Number: 150}))
	launch1 := func(number int) {
		require.NoError(t, j.append(record{Type: recStarting, Task: "worker-0", Number: number, Fence: &Fence{Launch: 1}, Boot: s.boot}))
	}
	for number := 150; number < 300; number++ {
		launch1(number)
		require.NoError(t, j.append(record{Type: recExited, Task: "worker-0", Number: number, Exit: &Exit{Code: 1}}))
	}
	require.NoError(t, j.append(record{Type: recStarting, Task: "worker-1", Fence: &Fence{}, Boot: s.boot}))
	launch1(300)
	require.NoError(t, j.close())
	raw, err := os.ReadFile(j.path)
	require.NoError(t, err)
	text, ok := compact(raw, runHash(testRun))
	require.True(t, ok)
	require.Less(t, len(text), len(raw)/2)
	again, ok := compact(text, runHash(testRun))
	require.True(t, ok)
	require.True(t, bytes.Equal(text, again))

	require.NoError(t, os.WriteFile(j.path, text, 0o600))
	r, c, err := loadJournal(j.path, runHash(testRun))
	require.NoError(t, err)
	require.False(t, c.damaged)
	var numbers []int
	for _, p := range r.tasks[taskID{0, "worker-0"}].processes {
		numbers = append(numbers, p.Number)
	}
	require.Len(t, numbers, 2+KeepProcesses)
	require.Equal(t, []int{0, 150, 201}, numbers[:3])
	require.Equal(t, 300, numbers[len(numbers)-1])
	require.Nil(t, r.tasks[taskID{0, "worker-0"}].process(300).Exit)
	require.NotNil(t, r.tasks[taskID{0, "worker-1"}].process(0))
	_, ok = compact(append(raw, "torn"...), runHash(testRun))
	require.False(t, ok, "a journal that cannot be read is left alone")
	require.NoError(t, s.Close())
}
