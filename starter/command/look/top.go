package look

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/act"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/logs"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/starter/top"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Top(a *cli.App) *cobra.Command {
	var o topOptions

	cmd := &cobra.Command{
		Use:               "top [flags] [RUN]",
		Short:             "Watch runs, tasks, hosts and output live",
		ValidArgsFunction: cli.Complete(a, cli.CompleteRuns),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return o.choice.Args(cli.OneArg("RUN"))(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runTop(cmd.Context(), a, args, &o) },
	}
	cmd.Flags().BoolVar(&o.choice.Last, "last", false, "begin with the tasks of the latest run")
	cli.QueueFlag(cmd, &o.queue)
	return cmd
}

// topOptions are the flags of [Top].
type topOptions struct {
	queue  string
	choice cli.RunChoice
}

// runTop runs the command [Top].
func runTop(ctx context.Context, a *cli.App, args []string, o *topOptions) error {
	const elsewhere = "`clusterrun list --json`, `status --json RUN`, `list --pending --json` and `host list --json` have the same for programs"
	in, out := tasklog.FileOf(a.In), tasklog.FileOf(a.Out)
	switch {
	case a.Global.JSON:
		return cli.Usagef("--json: top is for people; %s", elsewhere)
	case in == nil || out == nil || !tasklog.IsTerminal(in) || !tasklog.IsTerminal(out):
		return cli.Usagef("top needs a terminal as stdin and stdout, and TERM to say which; %s", elsewhere)
	}
	// Messages must not disturb the screen.
	quiet := &cli.App{In: a.In, Out: a.Out, Err: &lineBuffer{}, Global: a.Global, Given: a.Given}
	c, _, err := quiet.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	run := ""
	if len(args) > 0 || o.choice.Last {
		r, _, err := o.choice.Find(ctx, c, args)
		if err != nil {
			return err
		}
		run = r.ID
	}
	return showTop(ctx, quiet, c, run, o.queue, in, out)
}

// showTop shows the model on a terminal until the user quits or a signal comes.
func showTop(ctx context.Context, a *cli.App, c client.Client, run, queue string, in, out *os.File) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	signals := make(chan os.Signal, 1)
	for _, s := range cli.NotIgnored(cli.Interrupts) {
		signal.Notify(signals, s)
	}
	defer signal.Stop(signals)
	go func() {
		select {
		case s := <-signals:
			stop(&cli.ExitError{Code: cli.CodeOfSignal(s)})
		case <-ctx.Done():
		}
	}()
	shown := &topProgram{model: top.New(run), look: &topFetcher{app: a, ctx: ctx, client: c, queue: queue, runs: map[spec.RunRef]*starter.Run{}}}
	defer shown.look.unfollow()
	_, err := tea.NewProgram(shown, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	if signalled, ok := errors.AsType[*cli.ExitError](context.Cause(ctx)); ok {
		return signalled
	}
	return err
}

// topProgram shows a [top.Model] with bubbletea.
type topProgram struct {
	model top.Model
	look  *topFetcher
	round int // number of the last fetch; results of earlier ones do not schedule another
}

// foundMsg has the result of a fetch and the time that it took.
type foundMsg struct {
	top.Found
	round int
	took  time.Duration
}

// nextMsg starts the next fetch.
type nextMsg struct{ round int }

func (t *topProgram) Init() tea.Cmd { return t.fetch() }

func (t *topProgram) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.KeyPressMsg:
		return t, t.update(top.Key(message.String()))
	case tea.WindowSizeMsg:
		return t, t.update(top.Size{Width: message.Width, Height: message.Height})
	case top.Note:
		return t, tea.Batch(t.update(message), t.fetch())
	case nextMsg:
		if message.round == t.round {
			return t, t.fetch()
		}
	case foundMsg:
		t.update(message.Found)
		if message.round == t.round {
			return t, tea.Tick(pause(message), func(time.Time) tea.Msg { return nextMsg{message.round} })
		}
	}
	return t, nil
}

// update passes a message to the model, and carries out the model's request.
func (t *topProgram) update(message any) tea.Cmd {
	var want any
	switch t.model, want = t.model.Update(message); want := want.(type) {
	case top.Quit:
		return tea.Quit
	case top.Suspend:
		return tea.Suspend
	case top.Fetch:
		return t.fetch()
	case top.Action:
		return func() tea.Msg { return top.Note(t.look.act(want)) }
	}
	return nil
}

// fetch starts a fetch for the present view.
func (t *topProgram) fetch() tea.Cmd {
	t.round++
	subject, inView, round := t.model.Subject(), t.model.InView(), t.round
	return func() tea.Msg {
		began := time.Now()
		f := t.look.find(subject, inView)
		f.At = time.Now()
		return foundMsg{f, round, time.Since(began)}
	}
}

// pause returns the time to wait before the next fetch. Queries cost the server and the
// workers, so a slow answer makes the pause longer.
func pause(f foundMsg) time.Duration {
	switch f.Subject.Kind {
	case top.Output:
		return outputEvery
	case top.Runs:
		return max(runsEvery, topLoad*f.took)
	}
	if f.Status != nil && !f.Status.Open {
		return endedEvery
	}
	return max(topEvery, topLoad*f.took)
}

const (
	outputEvery = 200 * time.Millisecond
	topEvery    = 2 * time.Second
	runsEvery   = 5 * time.Second // the endings of runs are looked up one by one
	endedEvery  = time.Minute     // only its logs change, when they are removed
	topLoad     = 10
)

func (t *topProgram) View() tea.View {
	screen := t.model.View()
	for i, line := range screen.Lines {
		switch {
		case i == screen.Cursor:
			screen.Lines[i] = "\x1b[7m" + line + "\x1b[0m"
		case i == 0:
			screen.Lines[i] = "\x1b[1m" + line + "\x1b[0m"
		case i == len(screen.Lines)-1:
			screen.Lines[i] = "\x1b[2m" + line + "\x1b[0m"
		}
	}
	v := tea.NewView(strings.Join(screen.Lines, "\n"))
	v.AltScreen = true
	return v
}

// topFetcher fetches the data for views, and carries out actions.
type topFetcher struct {
	app    *cli.App
	ctx    context.Context
	client client.Client
	queue  string

	mu       sync.Mutex
	runs     map[spec.RunRef]*starter.Run
	followed top.Subject
	output   *lineBuffer
	stop     context.CancelFunc
}

// lookBound is the longest time for a fetch.
const lookBound = 15 * time.Second

func (l *topFetcher) find(s top.Subject, inView []starter.TaskStatus) top.Found {
	ctx, cancel := context.WithTimeout(l.ctx, lookBound)
	defer cancel()
	f := top.Found{Subject: s}
	if s.Kind != top.Output {
		l.unfollow()
	}
	switch s.Kind {
	case top.Runs:
		f.Runs, f.Err = starter.List(ctx, l.client, starter.ListOptions{Limit: topRuns, LastOutput: true, OpenFirst: true})
	case top.Queue:
		f.Queue, f.Err = starter.GetFleet(l.client, l.queue).Waiting(ctx)
	case top.Hosts:
		f.Hosts, f.Err = starter.GetFleet(l.client, l.queue).Hosts(ctx)
	case top.Tasks:
		f.Status, f.Err = l.run(s.Run, s.Execution).Status(ctx)
		f.Last = map[string]string{}
		for _, t := range inView {
			f.Last[t.Name] = lastLine(t.LogDir)
		}
	case top.Output:
		f.Lines = l.follow(s)
	}
	return f
}

// topRuns is the largest number of runs in the list.
const topRuns = 100

func (l *topFetcher) run(id, execution string) *starter.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	ref := spec.RunRef{WorkflowID: id, RunID: execution}
	if l.runs[ref] == nil {
		l.runs[ref] = starter.Get(l.client, id, execution)
	}
	return l.runs[ref]
}

// follow returns the lines that have come since the last call, in the form of `logs -f`.
func (l *topFetcher) follow(s top.Subject) []string {
	run := l.run(s.Run, s.Execution)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.followed != s {
		l.end()
		ctx, cancel := context.WithCancel(l.ctx)
		output := &lineBuffer{}
		l.followed, l.output, l.stop = s, output, cancel
		selected := logs.Selection{Selection: tasklog.Selection{Tail: topTail}}
		if s.Task != "" {
			selected.Names = []string{s.Task}
		}
		reader := logs.NewReader(&cli.App{Out: output, Err: output, Global: l.app.Global}, run, selected)
		reader.Follow = true
		go func() {
			err := reader.Show(ctx)
			switch exit := (*cli.ExitError)(nil); {
			case ctx.Err() != nil:
			case err == nil, errors.As(err, &exit) && exit.Cause == nil:
				_, _ = output.Write([]byte("clusterrun: that is all; the run has ended\n"))
			default:
				_, _ = fmt.Fprintf(output, "clusterrun: %s\n", err)
			}
		}()
	}
	return l.output.take()
}

// topTail is the number of earlier lines of each stream that are shown.
const topTail = 200

func (l *topFetcher) unfollow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// end stops following output. l.mu must be held.
func (l *topFetcher) end() {
	if l.stop != nil {
		l.stop()
	}
	l.followed, l.output, l.stop = top.Subject{}, nil, nil
}

// actTimeout is the longest time for a run to carry out an action.
const actTimeout = 30 * time.Second

// act carries out a confirmed action, and returns a message with its result.
func (l *topFetcher) act(a top.Action) string {
	ctx, cancel := context.WithTimeout(l.ctx, actTimeout)
	defer cancel()
	run := l.run(a.Run, a.Execution)
	var tasks []string
	if a.Task != "" {
		tasks = []string{a.Task}
	}
	var (
		answer spec.RequestAnswer
		err    error
		did    string
	)
	switch a.Verb {
	case top.Stop:
		did = "stopping: " + a.Run
		_, err = act.StopSignal(ctx, run)
	case top.Kill:
		did = "killed: "
		if tasks == nil {
			answer, err = starter.Ask(ctx, run, spec.UpdateTerminateAll, spec.TerminateAllRequest{})
		} else {
			answer, err = starter.Ask(ctx, run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: tasks, Signal: "SIGKILL"})
		}
	case top.Restart:
		did = "restarted: "
		answer, err = starter.Ask(ctx, run, spec.UpdateRestartTask, spec.TaskRequest{Tasks: tasks})
	case top.Stacks:
		answer, err = starter.Ask(ctx, run, spec.UpdateCaptureStacks, spec.StacksRequest{Tasks: tasks})
		for _, task := range answer.Tasks {
			if file := answer.Files[task]; file != "" {
				did = "written to " + filepath.Dir(file) + " and beside the logs of: "
				break
			}
		}
	}
	if err != nil {
		return err.Error()
	}
	text := strings.TrimSpace(did + report.SomeOf(answer.Tasks))
	if len(answer.Problems) > 0 {
		text = strings.TrimSpace(text + "; " + cli.Messages(answer.Problems))
	}
	return cmp.Or(answer.Note, text)
}

// lastLine returns the last line that a process has written if its files are on this machine.
func lastLine(dir string) string {
	if dir == "" {
		return ""
	}
	var newest os.FileInfo
	var path string
	for _, name := range []string{"stdout.log", "stderr.log"} {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Size() > 0 && (newest == nil || info.ModTime().After(newest.ModTime())) {
			newest, path = info, file
		}
	}
	return tasklog.LastLines(path, 1, 1<<10)
}

// lineBuffer keeps the lines that are written to it until they are taken.
type lineBuffer struct {
	mu    sync.Mutex
	rest  []byte
	lines []string
}

const (
	// mostHeard is the largest number of lines that are kept. Older lines are dropped.
	mostHeard = 5000
	// longestHeard is the number of bytes that are kept of a line. No terminal shows more.
	longestHeard = 4 << 10
)

func (h *lineBuffer) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for left := b; len(left) > 0; {
		line, rest, ended := bytes.Cut(left, []byte("\n"))
		h.rest = append(h.rest, line[:min(len(line), longestHeard-len(h.rest))]...)
		if ended {
			h.lines, h.rest = append(h.lines, string(h.rest)), h.rest[:0]
		}
		left = rest
	}
	if len(h.lines) > 2*mostHeard {
		h.lines = slices.Clone(h.lines[len(h.lines)-mostHeard:])
	}
	return len(b), nil
}

func (h *lineBuffer) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := h.lines
	h.lines = nil
	return lines
}
