package workers

import (
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/process/hostcheck"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workers/embedded"
)

// Options configures a host worker. The supervisor passes them as JSON to its Temporal-facing side.
type Options struct {
	// StateDir is the host worker's own directory: lock, journal, plans.
	StateDir string `json:"state_dir"`
	// Instance is the instance name for a new StateDir; see [supervisor.StateOptions]. By default a
	// name is chosen.
	Instance string `json:"instance,omitempty"`
	// Host is the name for pinning tasks to this host. The default is the machine's host name.
	Host string `json:"host,omitempty"`
	// Queue is the task queue of the workflows that the host worker serves. The names of host
	// queues are derived from it. The default is [spec.TaskQueue].
	Queue string `json:"queue,omitempty"`
	// Owned reports whether the runs on these queues end with the process that started this worker,
	// as the runs of `clusterrun run` do.
	Owned bool `json:"owned,omitempty"`
	// SoleRun is as in [supervisor.Config].
	SoleRun bool `json:"sole_run,omitempty"`
	// Slots is the maximum number of tasks on this host. 0 means no limit; a negative number means
	// one task for each processor.
	Slots int `json:"slots,omitempty"`
	// Oversubscribe reports whether a run that is larger than its fleet may have more tasks than
	// Slots on this host; see [fleet.Host].
	Oversubscribe bool `json:"oversubscribe,omitempty"`
	// GPUs limits the GPUs that tasks may use. By default, tasks may use all.
	GPUs *int `json:"gpus,omitempty"`
	// LogRoot is the directory for the logs of runs that do not name one. The default is logs, in
	// StateDir.
	LogRoot string `json:"log_root,omitempty"`
	// Retention limits the age and size of ended runs' logs. If it is nil, logs are never removed.
	Retention *retention.Policy `json:"retention,omitempty"`
	// LogsCopiedTo is the directory on the owner's machine that receives the copy of LogRoot; see
	// [activities.Config].
	LogsCopiedTo string `json:"logs_copied_to,omitempty"`
	// Advertise is the address other hosts' tasks use to reach this host's tasks. The default is
	// Host if other hosts can resolve that name, and otherwise the local address of connections to
	// the server.
	Advertise string `json:"advertise,omitempty"`
	// Listen is the address that serves runs' files to other hosts, as HOST:PORT or a part of it.
	// If it is empty, the files are not served. ListenAs is the address that other hosts use, if it
	// differs from Listen.
	Listen   string `json:"listen,omitempty"`
	ListenAs string `json:"listen_as,omitempty"`
	// Policy is the file with the rules for what this host runs, and for whom. Audit is the file
	// that gets a line for each start, refusal and request; see package guard. Both may be empty.
	Policy string `json:"policy,omitempty"`
	Audit  string `json:"audit,omitempty"`
	// Checks decide whether this host is fit for tasks; CheckEvery and CheckTimeout are the same as
	// in [hostcheck.Config].
	Checks       []hostcheck.Check `json:"checks,omitempty"`
	CheckEvery   time.Duration     `json:"check_every,omitempty"`
	CheckTimeout time.Duration     `json:"check_timeout,omitempty"`
	// Metrics is the HOST:PORT address that serves metrics. If it is empty, metrics are not served.
	Metrics string `json:"metrics,omitempty"`
	// Role selects the work that the host worker does. The default is [RoleBoth].
	Role Role `json:"role,omitempty"`
	// OwnersOutput reports whether streams without a file go to the owner's output.
	OwnersOutput bool `json:"owners_output,omitempty"`
	// Env contains variables for all processes on this host, as NAME=VALUE. Values in a spec take
	// precedence.
	Env []string `json:"env,omitempty"`
	// Foreground is the task that gets the owner's stdin, stdout and stderr.
	Foreground string `json:"foreground,omitempty"`
	// Stdin is the task that gets the owner's stdin.
	Stdin string `json:"stdin,omitempty"`
	// Server is the Temporal server. If this host worker keeps an embedded server running, Home is
	// its home.
	Server connect.Options `json:"server"`
	Home   *embedded.Home  `json:"home,omitempty"`
	// OrphanGrace limits the time that processes have to exit after the owner has died. The default
	// is 2s.
	OrphanGrace time.Duration `json:"orphan_grace,omitempty"`
	// LongestGrace limits the processes' graces when the host worker is asked to exit. The default
	// is [supervisor.DefaultLongestGrace].
	LongestGrace time.Duration `json:"longest_grace,omitempty"`
	// IdleExit limits how long the host worker stays without a run. 0 means no limit.
	IdleExit time.Duration `json:"idle_exit,omitempty"`
	// Debug logs more.
	Debug bool `json:"debug,omitempty"`
}
