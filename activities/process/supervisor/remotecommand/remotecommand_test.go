package remotecommand

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
)

// connection is a client and a host with a task, in one process.
type connection struct {
	t        *testing.T
	executor *Executor
	task     *exec.Cmd
	out, err bytes.Buffer
	cut      context.CancelFunc // the connection
	ended    chan struct{}      // the host has finished
}

func connect(t *testing.T) *connection {
	c := &connection{t: t, executor: NewExecutor(t.TempDir(), "test"), task: exec.Command("sleep", "600"), ended: make(chan struct{})}
	require.NoError(t, c.task.Start())
	t.Cleanup(func() {
		_ = c.task.Process.Kill()
		_ = c.task.Wait()
	})
	return c
}

// execute executes a command. in and sizes may be nil.
func (c *connection) execute(client Client, terminal *Size, argv ...string) (End, error) {
	c.t.Helper()
	toHost, fromClient := io.Pipe()
	toClient, fromHost := io.Pipe()
	var ctx context.Context
	ctx, c.cut = context.WithCancel(c.t.Context())
	context.AfterFunc(ctx, func() {
		_ = toHost.CloseWithError(io.ErrUnexpectedEOF)
		_ = toClient.CloseWithError(io.ErrUnexpectedEOF)
	})
	go func() {
		defer close(c.ended)
		s, err := Accept(toHost, fromHost)
		if !assert.NoError(c.t, err) {
			return
		}
		s.Close(c.executor.Run(ctx, s, Command{
			Path: "/bin/sh", Args: append([]string{"sh"}, s.Command...), Env: os.Environ(), Dir: c.t.TempDir(), Task: c.task.Process.Pid,
		}))
	}()
	client.Out, client.Err = &c.out, &c.err
	if client.In == nil {
		client.In = strings.NewReader("")
	}
	return client.Run(ctx, toClient, fromClient, Start{Command: argv, Terminal: terminal})
}

func TestStreamsAndExitCode(t *testing.T) {
	c := connect(t)
	input := strings.Repeat("0123456789abcde\n", 3*window/16)
	end := must.Get(c.execute(Client{In: strings.NewReader(input)}, nil, "-c", "cat; echo problem >&2; exit 7"))(t)
	assert.Equal(t, End{Code: 7}, end)
	assert.Equal(t, input, c.out.String())
	assert.Equal(t, "problem\n", c.err.String())
}

func TestInputThatIsNotRead(t *testing.T) {
	c := connect(t)
	signals := make(chan string, 1)
	started := func() { signals <- "SIGTERM" }
	end := must.Get(c.execute(Client{In: strings.NewReader(strings.Repeat("x", 4*window)), Signals: signals, Started: started}, nil, "-c", "exec sleep 600"))(t)
	assert.Equal(t, End{Code: 143}, end, "the signal passes input that is not read")
}

func TestTerminal(t *testing.T) {
	c := connect(t)
	sizes := make(chan Size, 1)
	in, keyboard := io.Pipe()
	go func() { _, _ = keyboard.Write([]byte("line\n")) }()
	sizes <- Size{50, 100}
	end, err := c.execute(Client{In: in, Sizes: sizes}, &Size{30, 90}, "-c",
		`read line; echo "got $line"; while [ "$(stty size)" != "50 100" ]; do sleep 0.01; done; tty; stty size`)
	require.NoError(t, err)
	assert.Equal(t, End{}, end)
	assert.Contains(t, c.out.String(), "got line\r\n/dev/pts/")
	assert.Contains(t, c.out.String(), "\r\n50 100\r\n")
}

// children returns the processes that have the ID of a command of the executor.
func (c *connection) children() int {
	pids := must.Get(proc.PIDs())(c.t)
	return len(living(pids, func(pid int, _ proc.Stat) bool {
		raw, _ := os.ReadFile(proc.Dir(pid) + "/environ")
		return bytes.Contains(raw, []byte(Variable+"=test/")) && bytes.Contains(raw, []byte("OF="+c.t.Name()+"\x00"))
	}))
}

const leaves = `trap "" HUP; sleep 601 & setsid sleep 602 & echo started; `

func TestNothingIsLeft(t *testing.T) {
	for name, how := range map[string]struct {
		script string
		end    func(*connection)
		want   End
	}{
		"when the command ends":    {"exit 3", func(*connection) {}, End{Code: 3}},
		"when the task ends":       {"wait", func(c *connection) { _ = c.task.Process.Kill() }, End{Code: 137, Why: taskEnded}},
		"when the connection ends": {"wait", func(c *connection) { c.cut() }, End{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t)
			end, err := c.execute(Client{Started: func() { how.end(c) }}, nil, "-c", "export OF='"+t.Name()+"'; "+leaves+how.script)
			if how.want == (End{}) {
				require.ErrorIs(t, err, ErrCut)
			} else {
				require.NoError(t, err)
				assert.Equal(t, how.want.Why, end.Why)
			}
			select {
			case <-c.ended:
			case <-time.After(time.Minute):
				t.Fatal("the host still waits")
			}
			assert.Zero(t, c.children())
			entries := must.Get(os.ReadDir(c.executor.dir))(t)
			assert.Empty(t, entries)
		})
	}
}

func TestSweep(t *testing.T) {
	e := NewExecutor(t.TempDir(), "test")
	p := &process{}
	_, err := e.mark(p)
	require.NoError(t, err)
	left := exec.Command("sleep", "600")
	left.Env = append(os.Environ(), Variable+"="+p.id)
	require.NoError(t, left.Start())
	ended := make(chan error)
	go func() { ended <- left.Wait() }()
	e.Sweep()
	assert.ErrorContains(t, <-ended, "killed")
	assert.NoFileExists(t, p.marker)
}

func TestProgramThatCannotBeExecuted(t *testing.T) {
	c := connect(t)
	p, err := c.executor.start(Command{Path: "/no/such", Args: []string{"such"}, Dir: "/", Task: c.task.Process.Pid}, nil)
	assert.Nil(t, p)
	assert.ErrorContains(t, err, "cannot execute /no/such: no such file")
}

func TestMoreInputThanAllowed(t *testing.T) {
	in := newInflow()
	assert.True(t, in.add(make([]byte, window)))
	assert.False(t, in.add([]byte{1}))
	data, more := in.next()
	assert.Len(t, data, window)
	assert.True(t, more)
	assert.False(t, in.add([]byte{1}), "it was not taken yet")
	in.took(window)
	assert.True(t, in.add([]byte{1}))
}

// A line that does not end is not read to its end.
func TestLinesAreBounded(t *testing.T) {
	in := bufio.NewReaderSize(io.MultiReader(strings.NewReader("one\n"+strings.Repeat("x", 99)+"\n"), endless{}), 16)
	line := must.Get(ReadLine(in, 100))(t)
	assert.Equal(t, "one\n", string(line))
	line = must.Get(ReadLine(in, 100))(t)
	assert.Len(t, line, 100)
	_, err := ReadLine(in, 100)
	assert.ErrorContains(t, err, "it sends a line of more than 100 bytes")
}

// endless never ends a line.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, "xxxxxxxxxxxxxxxx"), nil }
