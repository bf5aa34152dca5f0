package worker

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/process/hostcheck"
	"github.com/clusterrun/clusterrun/activities/process/supervise"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/detach"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/homeworker"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// submitStart limits the start of a host worker for submitted runs.
	submitStart = time.Minute
	// serviceUmask is a service's umask.
	serviceUmask = 0o022
	// startLock is locked in a host worker's state directory by commands that start or stop it.
	startLock  = "start.lock"
	startEvery = 5 * time.Millisecond
)

// WantWorker starts a host worker for submitted runs if no host worker serves the embedded
// server's default queue. Its side is the home's host worker, which does not stop it before release
// is called.
func WantWorker(ctx context.Context, a *cli.App, c client.Client, s cli.Target, queue string) (release func()) {
	if !s.Embedded || queue != "" && queue != spec.TaskQueue || supervisor.InTask() {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, submitStart)
	defer cancel()
	home := homeworker.Of(a.Global.StateDir, s.Options)
	home.Umask = serviceUmask
	side, err := home.Connect(ctx)
	if err == nil {
		err = ensureWorker(ctx, a, c, s, side)
	}
	if err != nil {
		a.Say("could not start a host worker in the background: %s", err)
	}
	return func() {
		if side != nil {
			side.Close()
		}
	}
}

// lockWorker keeps other commands from starting or stopping the state directory's host worker.
func lockWorker(ctx context.Context, a *cli.App) (*os.File, error) {
	if err := os.MkdirAll(a.WorkerDir(), 0o700); err != nil {
		return nil, err
	}
	return filelock.Wait(ctx, filelock.Try, filepath.Join(a.WorkerDir(), startLock), startEvery)
}

func ensureWorker(ctx context.Context, a *cli.App, c client.Client, s cli.Target, side *homeworker.Link) error {
	lock, err := lockWorker(ctx, a)
	if err != nil {
		return err
	}
	defer lock.Close()
	dev, err := filelock.IsHeld(filepath.Join(a.Global.StateDir, cli.DevLock))
	if err != nil || dev || supervisor.Holder(a.WorkerDir()) != 0 {
		return err
	}
	o, err := submitOptions(a, s)
	if err == nil {
		err = cmp.Or(o.CheckSockets(), o.CheckName(ctx, c))
	}
	switch {
	case starter.IsError[*workers.NamesakeError](err): // another state directory's host worker
		return nil
	case err != nil:
		return err
	}
	cli.EndAbandoned(ctx, a, c, s)()
	pid, _, err := startDaemon(ctx, a, workerDaemon, func(log, ready *os.File) (*exec.Cmd, error) { return startAtHome(o, side, log, ready) })
	if err == nil {
		err = os.WriteFile(submittedFile(a.WorkerDir()), nil, 0o600)
	}
	if err != nil {
		return err
	}
	a.Say("started a host worker in the background (process %d); it exits after %s without runs; `clusterrun worker stop` stops it", pid, strings.TrimSuffix(cli.Roughly(o.IdleExit), "0s"))
	sayEndsWith(a)
	return nil
}

// Revive starts the host worker of submitted runs again if it was killed while some of them are
// open, because without it they stay open.
func Revive(ctx context.Context, a *cli.App, c client.Client, s cli.Target) {
	dir := a.WorkerDir()
	if _, err := os.Stat(submittedFile(dir)); err != nil || supervisor.Holder(dir) != 0 {
		return
	}
	if n, err := workers.OpenRuns(ctx, c, spec.TaskQueue); err == nil && n > 0 {
		WantWorker(ctx, a, c, s, "")()
	}
}

// submittedFile returns the file that exists if submit started the last host worker.
func submittedFile(workerDir string) string { return filepath.Join(workerDir, "submitted") }

// submitOptions returns options for submitted runs' host worker. The host worker serves several
// shells, so its options must not depend on this one.
func submitOptions(a *cli.App, s cli.Target) (workers.Options, error) {
	home, dir := a.Home(), a.WorkerDir()
	checks, err := hostcheck.ParseAll(nil)
	return workers.Options{
		StateDir: dir, Instance: cmp.Or(supervisor.InstanceIn(dir), supervisor.NewInstance()), Queue: spec.TaskQueue,
		Slots: -1, Oversubscribe: true, LogRoot: a.LogsDir(), Retention: &retention.Policy{Home: a.Global.StateDir, For: retention.DefaultFor},
		Checks: checks, CheckEvery: hostcheck.DefaultEvery, CheckTimeout: hostcheck.DefaultTimeout,
		Server: s.Options, Home: &home, IdleExit: homeworker.IdleExit, Debug: a.Debug(),
	}, err
}

// startAtHome starts a supervisor like a service, in the home directory, with the home's host worker
// as its side.
func startAtHome(o workers.Options, side *homeworker.Link, log, ready *os.File) (*exec.Cmd, error) {
	settings, err := workers.Supervisor(o)
	if err != nil {
		return nil, err
	}
	settings.SidePID = side.PID()
	served := workers.Supervised{Options: o, Environ: detach.Environ(os.Environ()), Log: log.Name()}
	return serve(side, served, func(socket *os.File) (*exec.Cmd, error) {
		cmd, own, err := settings.Command(supervise.Files{Side: socket, Ready: ready})
		if err != nil {
			return nil, err
		}
		defer own.Close()
		cmd.Dir = "/"
		if home, err := os.UserHomeDir(); err == nil && cli.IsDir(home) {
			cmd.Dir = home
		}
		cmd.Env, cmd.Stdout, cmd.Stderr = detach.Environ(cmd.Env), log, log
		return cmd, detach.Start(cmd)
	})
}
