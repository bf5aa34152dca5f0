package worker

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// KeepLogs holds the flags for log retention.
type KeepLogs struct{ age, most string }

// forever is the age that keeps all logs.
const forever = "forever"

func (k *KeepLogs) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.age, "keep-logs", "90d", "keep logs for this `TIME` after a run has ended, such as 30d, or forever")
	cmd.Flags().StringVar(&k.most, "max-logs", "", "maximum `SIZE` of the logs of all runs, such as 50GiB; above it, logs of the runs that ended first are removed (default: no limit)")
}

// Policy returns the flags' policy for a state directory's runs.
func (k *KeepLogs) Policy(home string) (*retention.Policy, error) {
	p := &retention.Policy{Home: home}
	if k.age != forever {
		var err error
		if p.For, err = cli.ParseLength(k.age); err != nil || p.For <= 0 {
			return nil, cli.Usagef("--keep-logs %q: use a time such as 30d or 12h, or forever", k.age)
		}
	}
	if k.most != "" {
		var err error
		if p.MaxBytes, err = spec.ParseSize(k.most); err != nil {
			return nil, cli.Usagef("--max-logs: %v", err)
		}
	}
	return p, nil
}
