package stacks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
)

func TestWhatTheKernelKnows(t *testing.T) {
	p := startProgram(t, nil, "bash", "-c", `sleep 1000 & echo ready; wait`).sleeps()
	text := p.capture()
	assert.True(t, strings.HasPrefix(text, "What worker-0 was doing at 2"), text)
	assert.Contains(t, text, "\na line of the caller\n")
	assert.Contains(t, text, fmt.Sprintf("=== process %d: bash -c %q\n", p.pid, "sleep 1000 & echo ready; wait"))
	assert.Regexp(t, `(?m)^sleeping \(S\), parent \d+, 1 thread, \S+ of CPU time$`, text)
	assert.Regexp(t, `=== process \d+: sleep 1000\n`, text)
	assert.Contains(t, text, "in wait4")
	assert.Contains(t, text, "in clock_nanosleep")
	assert.NotContains(t, text, "by its own account", "it has not opted in")
	if os.Getuid() == 0 {
		assert.Regexp(t, `(?m)^    do_wait\+0x`, text)
	}
	p.alive()
}

func TestACallShowsItsFile(t *testing.T) {
	p := startProgram(t, nil, "bash", "-c", `mkfifo $LOGS/fifo; exec 5<>$LOGS/fifo; echo ready; read <&5`)
	assert.Eventually(t, func() bool {
		return regexp.MustCompile(`in read on descriptor \d+ \(.*/fifo\)`).MatchString(p.capture())
	}, time.Minute, 10*time.Millisecond)
}

// An unexpected signal kills most programs, and a program that ignores it does not answer.
func TestNobodyIsAskedWhoHasNotOptedIn(t *testing.T) {
	for name, script := range map[string]string{
		"does not catch it":                      `echo ready; while :; do sleep 1000; done`,
		"ignores it":                             `trap '' 60; echo ready; while :; do sleep 1000; done`,
		"catches it for something else":          `trap 'touch $LOGS/hit' 60; echo ready; while :; do sleep 0.01; done`,
		"has the file and does not catch it":     `exec 3>>$CLUSTERRUN_STACK_FILE.$$; echo ready; while :; do sleep 1000; done`,
		"catches it, and has closed the file":    `: > $CLUSTERRUN_STACK_FILE.$$; trap 'touch $LOGS/hit' 60; echo ready; while :; do sleep 0.01; done`,
		"catches it, and has another file there": `echo > $CLUSTERRUN_STACK_FILE.$$; mkdir $LOGS/x; exec 3>>$LOGS/x/stacks.$$; trap 'touch $LOGS/hit' 60; echo ready; while :; do sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			p := startProgram(t, nil, "bash", "-c", script)
			assert.NotContains(t, p.capture(), "by its own account")
			p.alive()
			assert.NoFileExists(t, filepath.Join(p.dir, "hit"))
		})
	}
}

func TestAProgramAnswers(t *testing.T) {
	p := startSelf(t, "answer", "SAYS=I wait for \x1b[31mGodot")
	text := p.capture()
	assert.Contains(t, text, "--- by its own account\nI wait for \\x1b[31mGodot\n", "without what terminals act on")
	// A later answer neither hides nor repeats an earlier one.
	again := p.capture()
	assert.Equal(t, 1, strings.Count(again, "Godot"), again)
	files := must.Get(filepath.Glob(filepath.Join(p.dir, "stacks-*.txt")))(t)
	assert.Len(t, files, 2, "no capture replaces another")
	info := must.Get(os.Stat(files[0]))(t)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestTheExampleForBash(t *testing.T) {
	p := startProgram(t, nil, "bash", "-c", `
exec 3>>"$CLUSTERRUN_STACK_FILE.$$"
trap 'echo "in $step, called from ${FUNCNAME[*]}" >&3' "$CLUSTERRUN_STACK_SIGNAL"
train() { step=7; echo ready; while :; do sleep 0.01; done; }
train`)
	assert.Contains(t, p.capture(), "by its own account\nin 7, called from train")
}

func TestAnAnswerIsBounded(t *testing.T) {
	p := startSelf(t, "answer")
	text := p.capture()
	assert.Contains(t, text, "the rest of its answer is in "+answerFile(p.dir, p.pid))
	assert.Less(t, len(text), maxAnswer+100_000)
}

func TestAStoppedProcess(t *testing.T) {
	p := startSelf(t, "answer", "SAYS=something")
	require.NoError(t, syscall.Kill(p.pid, syscall.SIGSTOP))
	eventually(t, "it is stopped", func() bool {
		s, err := proc.ReadStat(p.pid)
		return err == nil && stopped(s)
	})
	text := p.capture()
	assert.Contains(t, text, "\nstopped (T), parent")
	assert.Contains(t, text, "by its own account: not asked: it is stopped")
	require.NoError(t, syscall.Kill(p.pid, syscall.SIGCONT))
	assert.Contains(t, p.capture(), "by its own account\nsomething\n")
	assert.Equal(t, "something\n", must.Read(t, answerFile(p.dir, p.pid)), "it was asked once")
}

// The capture does not wait for a program that answers only after its child exits.
func TestNoAnswer(t *testing.T) {
	p := startProgram(t, nil, "bash", "-c", `exec 3>>$CLUSTERRUN_STACK_FILE.$$; trap 'echo late >&3' 60; echo ready; sleep 1000`).sleeps()
	text := p.capture()
	assert.Contains(t, text, "by its own account: it did not answer within 2s")
	assert.Contains(t, text, "by the kernel's")
	p.alive()
}

func TestOneThatEndsWhenItIsAsked(t *testing.T) {
	p := startProgram(t, nil, "bash", "-c", `exec 3>>$CLUSTERRUN_STACK_FILE.$$; trap 'exit 3' 60; echo ready; while :; do sleep 0.01; done`)
	assert.Contains(t, p.capture(), "by its own account: it exited without answering")
}

func TestProcessesThatEndMeanwhile(t *testing.T) {
	p := startProgram(t, nil, "bash", "-c", `echo ready; while :; do for i in 1 2 3 4 5 6 7 8; do /bin/true & done; wait; done`)
	for range 5 {
		assert.Contains(t, p.capture(), "=== process "+strconv.Itoa(p.pid))
	}
}

func TestManyThreadsAreBounded(t *testing.T) {
	p := startSelf(t, "threads", "N=1000")
	text := p.capture()
	assert.Equal(t, maxThreads, strings.Count(text, "\nthread "))
	shown := regexp.MustCompile(`(?m)^(\d+) more threads are not shown$`).FindStringSubmatch(text)
	require.NotNil(t, shown)
	n := must.Get(strconv.Atoi(shown[1]))(t)
	assert.GreaterOrEqual(t, n, 1000-maxThreads)
	assert.Contains(t, text, "in poll")
	p.alive()
}

func TestManyProcessesAreBounded(t *testing.T) {
	p := startProgram(t, nil, "bash", "-c", `for ((i = 0; i < 300; i++)); do sleep 1000 & done; echo ready; wait`)
	text := p.capture()
	assert.Equal(t, maxProcesses, strings.Count(text, "\n=== process "))
	assert.Contains(t, text, "\n45 more processes are not shown\n")
}

// A child in its own session is found through its parent, and an orphan by the task's mark from the
// supervisor.
func TestProcessesThatLeftTheSession(t *testing.T) {
	p := startProgram(t, []string{cookieVar + "=instance/run/0/worker-0/0 outer/run/0/x-0/0"}, "bash", "-c", `
setsid bash -c 'echo $$ > $LOGS/child; exec sleep 1001' &
(setsid -f bash -c 'echo $$ > $LOGS/orphan; exec sleep 1002') &
until [ -s $LOGS/child ] && [ -s $LOGS/orphan ]; do sleep 0.01; done; echo ready; wait`)
	eventually(t, "the child is seen", func() bool { return strings.Contains(p.capture(), ": sleep 1001\n") })
	orphan := p.number("orphan")
	t.Cleanup(func() {
		_ = syscall.Kill(orphan, syscall.SIGKILL)
		_ = syscall.Kill(p.number("child"), syscall.SIGKILL)
	})

	// Pretend that the orphan was reparented past us, although we are a subreaper.
	all := must.Get(readTable())(t)
	s := all[orphan]
	s.PPID = all[p.pid].PPID
	all[orphan] = s
	of := members(context.Background(), all, []int{p.pid}, cookieVar)
	assert.Equal(t, p.pid, of[p.pid][0], "the leader is the first")
	assert.Contains(t, of[p.pid], orphan)
	assert.NotContains(t, of[p.pid], os.Getpid())
	assert.NotContains(t, members(context.Background(), all, []int{p.pid}, "")[p.pid], orphan)
}

func (p *program) number(file string) int {
	p.t.Helper()
	raw := must.Get(os.ReadFile(filepath.Join(p.dir, file)))(p.t)
	n := must.Get(strconv.Atoi(strings.TrimSpace(string(raw))))(p.t)
	return n
}

func TestATaskWithoutAProcess(t *testing.T) {
	p := startProgram(t, nil, "bash", "-c", `echo ready; exec sleep 1000`)
	task := p.task()
	require.NoError(t, syscall.Kill(p.pid, syscall.SIGKILL))
	eventually(t, "it is dead", func() bool {
		s, err := proc.ReadStat(p.pid)
		return err == nil && s.Dead()
	})
	require.ErrorIs(t, p.captureTask(task).Err, ErrGone, "not reaped yet")
	_ = p.cmd.Wait()
	require.ErrorIs(t, p.captureTask(task).Err, ErrGone)
	task.PID = os.Getppid()
	if s, err := proc.ReadStat(task.PID); err == nil && s.Session != task.PID {
		require.ErrorIs(t, p.captureTask(task).Err, ErrGone, "the number is another process's now")
	}
}

func TestACaptureThatCannotBeWritten(t *testing.T) {
	p := startProgram(t, nil, "bash", "-c", `echo ready; exec sleep 1000`)
	task := p.task()
	task.Root = filepath.Join(script(t, "file", ""), "below")
	require.ErrorContains(t, p.captureTask(task).Err, "not a directory")
}

// Many tasks share the time, because they answer in parallel.
func TestManyTasks(t *testing.T) {
	var tasks []Task
	for i := range 24 {
		task := startSelf(t, "answer", "SAYS=mine "+strconv.Itoa(i)).task()
		task.Name = "worker-" + strconv.Itoa(i)
		tasks = append(tasks, task)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	results := must.Get(Capture(ctx, tasks, cookieVar))(t)
	require.Len(t, results, len(tasks))
	for i, r := range results {
		require.NoError(t, r.Err)
		text := must.Get(os.ReadFile(r.File))(t)
		assert.Contains(t, string(text), "What worker-"+strconv.Itoa(i)+" was")
		assert.Contains(t, string(text), "account\nmine "+strconv.Itoa(i)+"\n")
	}
}

func TestNoTimeLeft(t *testing.T) {
	p := startProgram(t, nil, "bash", "-c", `echo ready; exec sleep 1000`)
	ctx, cancel := context.WithTimeout(context.Background(), reserve/2)
	defer cancel()
	results := must.Get(Capture(ctx, []Task{p.task()}, cookieVar))(t)
	require.ErrorIs(t, results[0].Err, errLate)
}

// A reader of a process's files may hang with the process, and must not block us.
func TestAReaderThatHangs(t *testing.T) {
	hang := make(chan struct{})
	var all []chan struct{}
	for range maxDetached {
		done := make(chan struct{})
		require.True(t, detached(func() { defer close(done); <-hang }))
		all = append(all, done)
	}
	p := startProgram(t, nil, "bash", "-c", `echo ready; exec sleep 1000`).sleeps()
	text := p.capture()
	assert.Contains(t, text, "not read: too many reads of other processes are hanging")
	assert.Contains(t, text, "[sleep]", "what was known before is there")
	close(hang)
	for _, done := range all {
		<-done
	}
	eventually(t, "the slots are free", func() bool { return len(detachedSlots) == 0 })
	assert.Contains(t, p.capture(), "sleep 1000")
}
