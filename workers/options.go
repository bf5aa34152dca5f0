package workers

import (
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/workers/connect"
)

// Options describe a host worker. They travel as JSON from the supervisor to
// its Temporal-facing side.
type Options struct {
	// StateDir is the host worker's own directory: lock, journal, plans.
	StateDir string `json:"state_dir"`
	// Instance is the name that StateDir gets if it is new; see [supervisor.StateOptions].
	// Default: any.
	Instance string `json:"instance,omitempty"`
	// KeyDir is the state directory of the machine, where StateDir is that of one run: all
	// its runs have one [tasklog.ValueKey]. Default: StateDir.
	KeyDir string `json:"key_dir,omitempty"`
	// Host is the name under which specs can pin tasks to it. Default: the
	// host name of the machine.
	Host string `json:"host,omitempty"`
	// Queue is the task queue of the workflows it serves, after which the
	// queues of hosts are named. Default [spec.TaskQueue].
	Queue string `json:"queue,omitempty"`
	// Owned reports whether the runs on these queues end with whoever started this worker,
	// as those of `clusterrun run` do.
	Owned bool `json:"owned,omitempty"`
	// Slots bounds the tasks on this host. 0: no bound.
	Slots int `json:"slots,omitempty"`
	// Oversubscribe reports whether a run that is larger than its fleet may have more tasks
	// than Slots here; see [fleet.Host].
	Oversubscribe bool `json:"oversubscribe,omitempty"`
	// Memory, in bytes, GPUs and Labels are what the fleet is told of this host. Default:
	// the memory and the GPUs that are found.
	Memory int64             `json:"memory,omitempty"`
	GPUs   *int              `json:"gpus,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// LogRoot is where runs without a log directory of their own keep their
	// logs. Default: logs, below StateDir.
	LogRoot string `json:"log_root,omitempty"`
	// Retention is how long the logs of runs that have ended are kept; nil: nobody removes
	// them.
	Retention *retention.Policy `json:"retention,omitempty"`
	// LogsCopiedTo is the directory on the owner's machine to which the owner copies what
	// is below LogRoot; see [activities.Config].
	LogsCopiedTo string `json:"logs_copied_to,omitempty"`
	// Advertise is the address by which tasks of other hosts reach those of this one.
	// Default: Host, where the others find this host by it, and otherwise the address by
	// which it reaches the server.
	Advertise string `json:"advertise,omitempty"`
	// Listen is where the files of runs are served to others, as HOST:PORT or a part of it;
	// empty: they are not. ListenAs is the address by which others reach that, where it is
	// another.
	Listen   string `json:"listen,omitempty"`
	ListenAs string `json:"listen_as,omitempty"`
	// Policy is the file that says what this host runs for whom, and Audit the one that gets a
	// line for each start, refusal and request; see package guard. Empty: there is none.
	Policy string `json:"policy,omitempty"`
	Audit  string `json:"audit,omitempty"`
	// Metrics is where metrics are served, as HOST:PORT; empty: they are not.
	Metrics string `json:"metrics,omitempty"`
	// Role is what the host worker does. Default [RoleBoth].
	Role Role `json:"role,omitempty"`
	// OwnersOutput reports whether streams that go to no file go to the owner's output.
	OwnersOutput bool `json:"owners_output,omitempty"`
	// Env are variables that all processes get on this host, as NAME=VALUE, where their spec
	// sets no other value.
	Env []string `json:"env,omitempty"`
	// Foreground is the task that gets the owner's stdin, stdout and stderr.
	Foreground string `json:"foreground,omitempty"`
	// Stdin is the task that gets the owner's stdin; all: each gets the file that it is.
	Stdin string `json:"stdin,omitempty"`
	// Server is the Temporal server.
	Server connect.Options `json:"server"`
	// OrphanGrace is how long processes have after the owner died. Default 2s.
	OrphanGrace time.Duration `json:"orphan_grace,omitempty"`
	// IdleExit is after how long without a run the host worker ends by itself; see [Want].
	// 0: it does not.
	IdleExit time.Duration `json:"idle_exit,omitempty"`
	// Debug logs more.
	Debug bool `json:"debug,omitempty"`
}
