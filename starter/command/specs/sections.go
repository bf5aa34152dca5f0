package specs

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// sections lists the headings in the help of `clusterrun run`, with their flags. The first
// heading lists the flags that most runs need; a flag without a heading is advanced.
var sections = []struct {
	heading string
	flags   []string
}{
	{"Flags that most runs need", []string{"np", "task", "nproc-per-node", "host", "dir", "env", "ship", "max-restarts", "timeout", "remote"}},
	{"Tasks", []string{"nnodes", "name", "id", "set", "foreground", "stdin"}},
	{"Where", []string{"hostfile", "queue", "hosts", "select", "priority", "after", "launch-agent"}},
	{"Program", []string{"secret", "export", "exclude", "sign"}},
	{"Restarts and end", []string{"on-failure", "auto-restart", "restart-scope", "grace", "on-disconnect"}},
	{"Output", []string{"quiet", "log-dir", "tee", "filter", "log-prefix"}},
	{"GPUs, limits, sweeps", []string{"devices", "gpus-per-task", "cpus", "limit-memory", "array", "at-most", "max-failures"}},
	{advanced, nil},
}

const advanced = "Advanced"

// Headings returns the headings for the flags of `clusterrun run`, in order.
func Headings() []string {
	headings := make([]string, len(sections))
	for i, s := range sections {
		headings[i] = s.heading
	}
	return headings
}

// SetSections puts the flags of `clusterrun run` under their headings in its help, except those
// in before.
func SetSections(fs *pflag.FlagSet, before map[string]bool) {
	fs.VisitAll(func(f *pflag.Flag) {
		if before[f.Name] {
			return
		}
		heading := advanced
		for _, s := range sections {
			if slices.Contains(s.flags, f.Name) {
				heading = s.heading
			}
		}
		cli.SetSection(fs, f.Name, heading)
	})
}
