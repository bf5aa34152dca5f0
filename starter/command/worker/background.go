package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/process/plans"
	"github.com/clusterrun/clusterrun/activities/process/supervise"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
	"github.com/clusterrun/clusterrun/workflows/text/shellword"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// onDemandIdle is how long a host worker that was started on demand stays without runs.
	onDemandIdle = 10 * time.Minute
	// onDemandStart limits its start.
	onDemandStart = time.Minute
	// onDemandEnd limits how long a host worker without tasks takes to exit.
	onDemandEnd = 20 * time.Second
)

// backgroundWorker is the record that the background host worker writes about itself, and
// removes when it exits. If the file exists but the process does not, the process was killed.
type backgroundWorker struct {
	PID      int       `json:"pid"`
	Queue    string    `json:"queue"`
	Log      string    `json:"log"`
	Started  time.Time `json:"started"`
	OnDemand bool      `json:"on_demand,omitempty"` // started by submit
}

func backgroundFile(workerDir string) string { return filepath.Join(workerDir, "background.json") }

// readBackground returns the background host worker's record, or nil if there is none.
func readBackground(workerDir string) *backgroundWorker {
	b, err := os.ReadFile(backgroundFile(workerDir))
	var w backgroundWorker
	if err != nil || json.Unmarshal(b, &w) != nil {
		return nil
	}
	return &w
}

// record makes the supervisor write the record when it serves, and notify the command that
// started this process.
func (b *Detached) record(a *cli.App, s *supervise.Settings, queue string, onDemand bool) error {
	w := backgroundWorker{PID: os.Getpid(), Queue: queue, Log: daemonLog(a, workerDaemon), Started: time.Now(), OnDemand: onDemand}
	text, err := json.Marshal(w)
	s.Service.Record, s.Service.Text, s.Service.Ready = backgroundFile(s.StateDir), string(text), b.ready
	return err
}

const workerDaemon = "worker"

// detachWorker executes this command in the background.
func detachWorker(ctx context.Context, a *cli.App) error {
	wanted, err := supervise.Want(ctx, a.WorkerDir())
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	defer wanted.Close()
	if err := makeWay(ctx, a); err != nil {
		return err
	}
	if pid := supervisor.Holder(a.WorkerDir()); pid != 0 {
		return a.Print(map[string]any{"pid": pid}, func() { a.Say("a host worker runs already, as process %d; `clusterrun worker stop` ends it", pid) })
	}
	w, err := startWorker(ctx, a, daemon{name: workerDaemon, args: a.Args, start: asAsked})
	if err != nil {
		return err
	}
	sayEndsWith(a)
	stop := "clusterrun worker stop"
	if a.Given.Changed("state-dir") {
		stop += " --state-dir " + shellword.Of(a.Global.StateDir)
	}
	return a.PrintLine(w, "Host worker      process %d, for the queue %s; `%s` ends it\nLog              %s", w.PID, w.Queue, stop, w.Log)
}

// sayEndsWith reports what stops a background process started by this command.
func sayEndsWith(a *cli.App) {
	if what := supervisor.EndsWith(); what != "" {
		a.Say("it also ends with %s", what)
	}
}

// startWorker starts a host worker in the background, and returns when it serves.
func startWorker(ctx context.Context, a *cli.App, d daemon) (*backgroundWorker, error) {
	text, err := startDaemon(ctx, a, d)
	if err != nil {
		return nil, err
	}
	w := new(backgroundWorker)
	return w, json.Unmarshal(text, w)
}

// WantWorker starts a host worker in the background if no host worker serves the default queue
// of our own server.
func WantWorker(ctx context.Context, a *cli.App, c client.Client, s cli.Server, queue string) {
	if !s.Embedded || queue != "" && queue != spec.TaskQueue || supervisor.InTask() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, onDemandStart)
	defer cancel()
	if w, last, err := ensureWorker(ctx, a, c); err != nil {
		a.Say("no host worker could be started in the background: %s", err)
	} else if w != nil {
		killed := ""
		if last != nil {
			killed = fmt.Sprintf(" to replace process %d, which was killed", last.PID)
		}
		a.Say("started a host worker in the background (process %d)%s; it ends after %s without runs, or by `clusterrun worker stop`", w.PID, killed, strings.TrimSuffix(cli.Roughly(onDemandIdle), "0s"))
		sayEndsWith(a)
	}
}

// ensureWorker returns the host worker that it started, and the earlier one if that was killed.
// Either may be nil.
func ensureWorker(ctx context.Context, a *cli.App, c client.Client) (w, killed *backgroundWorker, err error) {
	dir := a.WorkerDir()
	// This waits for other commands that are starting one, and for one that is about to exit.
	wanted, err := supervise.Want(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	defer wanted.Close()
	dev, err := filelock.IsHeld(filepath.Join(a.Global.StateDir, cli.DevLock))
	if err != nil || dev || supervisor.Holder(dir) != 0 || servedByOthers(ctx, a, c) {
		return nil, nil, err
	}
	killed = readBackground(dir)
	args := []string{"worker", "--state-dir", a.Global.StateDir, "--idle-exit", onDemandIdle.String(), "--" + onDemandFlag}
	if keys := a.Global.Server.CodecKeys; keys != "" {
		args = append(args, "--codec-keys", keys)
	}
	w, err = startWorker(ctx, a, daemon{name: workerDaemon, args: args, start: asService})
	return w, killed, err
}

// pollLasts is slightly longer than the server holds a poll. A poller that has not polled for
// longer is gone.
const pollLasts = 70 * time.Second

// servedByOthers reports whether another state directory's host worker serves the default queue.
func servedByOthers(ctx context.Context, a *cli.App, c client.Client) bool {
	d, err := c.DescribeTaskQueue(ctx, spec.HostsQueue(spec.TaskQueue), enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return false
	}
	var ours []string
	for _, dir := range []string{a.WorkerDir(), a.DevDir()} {
		if instance := supervisor.InstanceIn(dir); instance != "" {
			ours = append(ours, "/"+instance)
		}
	}
	for _, p := range d.GetPollers() {
		own := slices.ContainsFunc(ours, func(suffix string) bool { return strings.HasSuffix(p.GetIdentity(), suffix) })
		if !own && time.Since(p.GetLastAccessTime().AsTime()) < pollLasts {
			return true
		}
	}
	return false
}

// makeWay stops an idle host worker that was started on demand. The lock of [supervise.Want]
// must be held.
func makeWay(ctx context.Context, a *cli.App) error {
	dir := a.WorkerDir()
	pid := supervisor.Holder(dir)
	w := readBackground(dir)
	if pid == 0 || w == nil || w.PID != pid || !w.OnDemand {
		return nil
	}
	held, err := plans.Held(dir)
	if err != nil || len(held) > 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, onDemandEnd)
	defer cancel()
	return endWorker(ctx, dir, pid)
}

// StopOnDemand stops the background host worker if it was started on demand and can be stopped.
func StopOnDemand(ctx context.Context, a *cli.App) error {
	if _, err := os.Stat(backgroundFile(a.WorkerDir())); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	wanted, err := supervise.Want(ctx, a.WorkerDir())
	if err != nil {
		return err
	}
	defer wanted.Close()
	return makeWay(ctx, a)
}

// endWorker asks a state directory's supervisor to stop everything, and returns when it has
// exited.
func endWorker(ctx context.Context, dir string, pid int) error {
	if err := supervisor.RequestEnd(ctx, dir, pid); err != nil {
		return fmt.Errorf("the host worker with pid %d does not end: %w", pid, err)
	}
	return nil
}

// heldRuns returns the names of runs for a message.
func heldRuns(held []runkey.Run) string {
	names := list.Of(held, func(run runkey.Run) string { return run.WorkflowID })
	slices.Sort(names)
	return plural.Of(len(names), "run", "runs") + " (" + shorten.List(names, NamesMost) + ")"
}
