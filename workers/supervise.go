package workers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervise"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// optionsVar carries [Options] to the side.
const optionsVar = "CLUSTERRUN_WORKER_OPTIONS"

// Supervisor returns the settings for a host worker's supervisor, which runs `clusterrun side`.
// It fails immediately if the host worker could not listen at the addresses in the options.
func Supervisor(o Options) (s supervise.Settings, err error) {
	if o, err = o.withDefaults(); err != nil {
		return s, err
	}
	// If the lock is held, a running host worker may already be using these addresses. The
	// supervisor then reports that worker.
	if supervisor.LockFree(o.StateDir) {
		if err := cmp.Or(o.checkListen(), CheckMetrics(MetricsFlag, o.Metrics)); err != nil {
			return s, err
		}
	}
	options, err := json.Marshal(o)
	if err != nil {
		return s, err
	}
	return supervise.Settings{
		StateDir: o.StateDir, Instance: o.Instance, Volatile: o.Owned, SoleRun: o.SoleRun,
		Side: []string{"side"}, SideEnv: []string{optionsVar + "=" + string(options)},
		OrphanGrace: o.OrphanGrace, LongestGrace: o.LongestGrace, Debug: o.Debug,
	}, nil
}

// Service returns a host worker that is a system service or runs in the background. On request, its
// side is upgraded to the given program.
func Service(program string) *supervise.Service {
	return &supervise.Service{Program: program, Version: spec.Version}
}

func (o Options) withDefaults() (Options, error) {
	if o.StateDir == "" {
		return o, fmt.Errorf("a host worker needs a state directory")
	}
	if o.Host == "" {
		name, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("find this host's name: %w; or specify one with --host-name", err)
		}
		o.Host = name
	}
	o.Queue = cmp.Or(o.Queue, defaultQueue)
	o.OrphanGrace = cmp.Or(o.OrphanGrace, 2*time.Second)
	return o, nil
}
