package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
)

// journalFixture is a state directory with one run's journal: worker-0 ended, was granted and
// restarted; worker-1 was about to start.
func journalFixture(t *testing.T) (dir, path string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	s := must.Get(OpenState(dir))(t)
	j := newJournal(s.journalPath(runHash(testRun)), testRun)
	fence := &Fence{Launch: 0, Attempt: 1}
	for _, r := range []record{
		{Type: recStarting, Task: "worker-0", Fence: fence, LogDir: "/logs", Boot: s.boot},
		{Type: recStarted, Task: "worker-0", PID: 999999, Ticks: 5, Boot: s.boot},
		{Type: recExited, Task: "worker-0", Exit: &Exit{Code: 3, Ended: time.Now().UTC()}},
		{Type: recGranted, Task: "worker-0"},
		{Type: recStarting, Task: "worker-0", Number: 1, Fence: &Fence{Launch: 0, Attempt: 2}, Boot: s.boot},
		{Type: recStarted, Task: "worker-0", Number: 1, PID: 999998, Ticks: 6, Boot: s.boot},
		{Type: recStarting, Task: "worker-1", Fence: fence, Boot: s.boot},
		{Type: recLeased, Ports: []int{20001}, Fixed: []int{80}},
	} {
		require.NoError(t, j.append(r))
	}
	require.NoError(t, j.close())
	require.NoError(t, s.Close())
	return dir, j.path
}

func reopen(t *testing.T, dir string) (*State, *run) {
	t.Helper()
	s := must.Get(OpenState(dir))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s, s.runs[runHash(testRun)]
}

func TestJournalIsRead(t *testing.T) {
	dir, _ := journalFixture(t)
	s, r := reopen(t, dir)
	require.Equal(t, testRun, r.key)
	views := r.views()
	require.Len(t, views, 3)
	require.Equal(t, 3, views[0].Exit.Code)
	require.False(t, views[0].Exit.Lost)
	require.True(t, views[0].Granted)
	require.Equal(t, "/logs", views[0].LogDir)
	require.True(t, views[1].Exit.Lost, "started, and nobody saw the end")
	require.Equal(t, 999998, views[1].PID)
	require.True(t, views[2].Exit.Lost, "about to be started: nobody knows")
	require.Equal(t, Fence{Launch: 0, Attempt: 2}, r.tasks[taskID{0, "worker-0"}].fence)
	require.Equal(t, []int{20001, 80}, r.ports.Leased(0, 0).All())
	require.NoError(t, s.Close())

	_, r = reopen(t, dir)
	again := r.views()
	require.Equal(t, views, again, "what was found lost is journalled")
}

func TestJournalTorn(t *testing.T) {
	dir, path := journalFixture(t)
	whole := must.Get(os.ReadFile(path))(t)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	// Wherever the journal is cut, the whole records are read and nothing is damaged.
	for cut := 0; cut <= len(whole); cut += 7 {
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o600))
		size := 0
		for _, l := range lines {
			if size+len(l) > cut {
				break
			}
			size += len(l)
		}
		r, c, err := loadJournal(path, runHash(testRun))
		require.NoError(t, err)
		require.False(t, c.damaged, "cut at %d", cut)
		require.Equal(t, size, len(c.good))
		require.EqualValues(t, size, r.journal.size)
	}
	// The next record replaces the torn one.
	require.NoError(t, os.WriteFile(path, whole[:len(whole)-5], 0o600))
	s, r := reopen(t, dir)
	require.Empty(t, r.damaged)
	require.NoError(t, s.Close())
	_, r = reopen(t, dir)
	require.Empty(t, r.damaged)
	require.Len(t, r.views(), 3)
	require.Empty(t, r.ports.Leased(0, 0).All(), "the torn line")
}

func TestJournalDamaged(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"garbage in a line": func(b []byte) []byte { return bytes.Replace(b, []byte(`"starting"`), []byte(`"star"""`), 1) },
		"zeros":             func(b []byte) []byte { copy(b[len(b)/2:len(b)/2+100], make([]byte, 100)); return b },
		"a line is missing": func(b []byte) []byte {
			lines := bytes.SplitAfter(b, []byte("\n"))
			return bytes.Join(append(lines[:1:1], lines[2:]...), nil)
		},
		"the head is missing": func(b []byte) []byte { _, rest, _ := bytes.Cut(b, []byte("\n")); return rest },
		"another run's head": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"iris"`), []byte(`"ifis"`), 1)
		},
		"of no type": func(b []byte) []byte { return append(b, "{}\n"...) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, path := journalFixture(t)
			whole := must.Get(os.ReadFile(path))(t)
			require.NoError(t, os.WriteFile(path, damage(bytes.Clone(whole)), 0o600))
			for range 2 { // even the second time
				s, r := reopen(t, dir)
				require.NotEmpty(t, r.damaged)
				aside := must.Get(os.ReadFile(r.damaged))(t)
				require.NotEmpty(t, aside)
				for _, p := range r.views() {
					require.NotNil(t, p.Exit)
				}
				require.NoError(t, s.Close())
			}

			if name != "garbage in a line" {
				return
			}
			h := newHost(t, func(r *role) { r.Dir = dir })
			_, err := h.client.Start(h.ctx(), h.request("new", 0, "touch $D/ran"))
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, "lost with the host")
			_, err = h.client.Attach(h.ctx(), AttachRequest{Key: keyOf("new"), Fence: Fence{Attempt: 1}})
			require.ErrorIs(t, err, ErrDamaged)
			_, err = h.client.Wait(h.ctx(), ref("new", 0))
			require.ErrorIs(t, err, ErrDamaged)
			_, err = h.client.Release(h.ctx(), ReleaseRequest{Run: testRun, Stops: Stops{Stop: Stop{Signal: sigTERM}}})
			require.NoError(t, err)
			require.False(t, h.exists("ran"))
			// Another run is unaffected.
			r := h.request("worker-0", 0, "exit 0")
			r.Key.Run = runNamed("healthy")
			h.launch(r)
		})
	}
}

// Records from a later version are kept when the journal is read, written and rewritten.
func TestJournalOfALaterVersion(t *testing.T) {
	dir, path := journalFixture(t)
	whole := must.Get(os.ReadFile(path))(t)
	later := []byte(`{"type":"teleported","to":"mars"}` + "\n")
	head, rest, _ := bytes.Cut(bytes.Clone(whole), []byte("\n"))
	head = append(bytes.Clone(bytes.TrimSuffix(head, []byte("}"))), `,"mood":"good"}`+"\n"...)
	require.NoError(t, os.WriteFile(path, slices.Concat(head, later, rest), 0o600))
	s, r := reopen(t, dir)
	require.Empty(t, r.damaged)
	require.NoError(t, s.Close())
	text := must.Get(os.ReadFile(path))(t)
	require.True(t, bytes.HasPrefix(text, slices.Concat(head, later)))
}

func TestJournalOfAnotherBoot(t *testing.T) {
	dir, path := journalFixture(t)
	s := must.Get(OpenState(dir))(t)
	boot := s.boot
	require.NoError(t, s.Close())
	raw := must.Get(os.ReadFile(path))(t)
	// Our own pid from another boot must not be mistaken for a task.
	stat := must.Get(proc.ReadStat(os.Getpid()))(t)
	text := strings.ReplaceAll(string(raw), fmt.Sprintf("%q", boot), `"another boot"`)
	text = strings.ReplaceAll(text, "999998", fmt.Sprint(stat.Session))
	// Drop the records of processes that the first opening found lost.
	var kept []string
	for _, line := range strings.SplitAfter(text, "\n") {
		if !strings.Contains(line, `"lost":true`) {
			kept = append(kept, line)
		}
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600))
	_, r := reopen(t, dir)
	require.Empty(t, r.damaged)
	for _, p := range r.views() {
		require.NotNil(t, p.Exit)
	}
}

func TestOldRunsArePruned(t *testing.T) {
	dir, path := journalFixture(t)
	long := time.Now().Add(-keepReleased - time.Hour)
	require.NoError(t, os.Chtimes(path, long, long))
	s, r := reopen(t, dir)
	require.NotNil(t, r, "nobody released it")
	require.NoError(t, r.journal.keep(record{Type: recReleased}))
	require.NoError(t, s.Close())
	s, r = reopen(t, dir)
	require.Nil(t, r)
	require.NotNil(t, s.archived(runHash(testRun)))
	require.NoError(t, s.Close())
	require.NoError(t, os.Chtimes(s.releasedPath(runHash(testRun)), long, long))
	s, _ = reopen(t, dir)
	require.Nil(t, s.archived(runHash(testRun)))
}

func TestJournalSharesSyncs(t *testing.T) {
	j := newJournal(filepath.Join(t.TempDir(), "j.jsonl"), testRun)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			assert.NoError(t, j.append(record{Type: recStarting, Task: "worker", Number: i, Fence: &Fence{}}))
			assert.NoError(t, j.commit())
		})
	}
	wg.Wait()
	require.NoError(t, j.close())
	require.Error(t, j.append(record{Type: recGranted}))
	raw := must.Get(os.ReadFile(j.path))(t)
	require.Equal(t, 201, bytes.Count(raw, []byte("\n")))
}

func TestStateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	s := must.Get(OpenState(dir))(t)
	require.Regexp(t, `^[a-z0-9]{8}$`, s.Instance())
	require.Equal(t, dir, s.Dir())
	info := must.Get(os.Stat(dir))(t)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, instanceFile), []byte("../../x\n"), 0o600))
	_, err := OpenState(dir)
	require.ErrorContains(t, err, instanceFile)
	require.True(t, LockFree(dir), "a failed opening leaves no lock")
}

// Reading a journal with any content neither panics nor forgets that it was not empty.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"type":"starting","task":"w","fence":{"launch":0,"attempt":1}}` + "\n" + `{"type":"aborted","task":"w"}` + "\n"))
	f.Add([]byte(`{"type":"exited","task":"w","number":-1,"exit":{}}` + "\n"))
	f.Add([]byte("\n\x00"))
	path := filepath.Join(f.TempDir(), "j")
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		r, c, err := loadJournal(path, runHash(testRun))
		require.NoError(t, err)
		if !c.damaged && bytes.Contains(text, []byte("\n")) {
			require.Equal(t, testRun, r.key)
		}
		for _, tk := range r.tasks {
			for i, p := range tk.processes {
				require.Equal(t, i, p.Number)
			}
		}
	})
}

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

// A task that restarts every few seconds for weeks does not cost more memory with every restart.
// The first process, the last hundred and the number of failures are kept.
func TestCrashLoopIsBounded(t *testing.T) {
	const restarts = 2500
	h := newHost(t, nil)
	h.kill9()
	h.awaitCount("swept", 1)
	boot := must.Get(bootID())(t)
	s := must.Get(OpenState(h.role.Dir))(t)
	j := newJournal(s.journalPath(runHash(testRun)), testRun)
	for number := range restarts {
		crashed(t, j, boot, 0, number)
	}
	require.NoError(t, j.close())
	require.NoError(t, s.Close())

	h.start()
	attach := func() []Process {
		reply := must.Get(h.client.Attach(h.ctx(), AttachRequest{Key: keyOf("worker-0"), Fence: Fence{Attempt: restarts + 1}}))(t)
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
	h.launch(r)
	require.Equal(t, 4, h.wait("worker-0", restarts).Code)
	known = attach()
	require.Len(t, known, 1+KeepProcesses)
	require.Equal(t, restarts, known[len(known)-1].Number)

	reply := must.Get(h.client.Release(h.ctx(), ReleaseRequest{Run: testRun, Stops: Stops{Stop: Stop{Signal: sigTERM}}}))(t)
	require.Equal(t, known, reply.Processes)
}

// Likewise, a group's first generation and the last hundred are kept.
func TestCrashLoopOfAGroupIsBounded(t *testing.T) {
	const generations = 1500
	dir := t.TempDir()
	s := must.Get(OpenState(dir))(t)
	j := newJournal(s.journalPath(runHash(testRun)), testRun)
	for generation := range generations {
		require.NoError(t, j.append(record{Type: recLeased, Generation: generation, Ports: []int{20001}}))
		crashed(t, j, s.boot, generation, 0)
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

// A task's living processes and the first of each launch are kept, but not the middle.
func TestTheMiddleOfATask(t *testing.T) {
	dir := t.TempDir()
	s := must.Get(OpenState(dir))(t)
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
	require.NoError(t, s.Close())
}

// A user's file in the state directory is not a journal.
func TestAnotherFileIsNoJournal(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.jsonl"), []byte("hello\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, runHash(testRun)+openJournal), nil, 0o600))
	var read []string
	require.NoError(t, eachJournal(dir, openJournal, func(_, hash string) error {
		read = append(read, hash)
		return nil
	}))
	require.Equal(t, []string{runHash(testRun)}, read)
}
