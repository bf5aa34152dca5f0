package look

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/activities/process/software"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/record"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// printOrigin prints the source code and the software of a run.
func printOrigin(a *cli.App, of *record.Account) {
	if of.Source != nil {
		fmt.Fprintln(a.Out, "\nsource:")
		for _, line := range of.Source.Lines() {
			fmt.Fprintf(a.Out, "  %s\n", spec.Visible(line))
		}
	}
	if len(of.Software) == 0 {
		return
	}
	// Hosts with the same software have one line.
	hosts := map[string][]string{}
	var lines []string
	for _, s := range of.Software {
		line := softwareLine(s.Record)
		if hosts[line] == nil {
			lines = append(lines, line)
		}
		if !slices.Contains(hosts[line], s.Host) {
			hosts[line] = append(hosts[line], s.Host)
		}
	}
	fmt.Fprintln(a.Out, "\nsoftware:")
	for _, line := range lines {
		fmt.Fprintf(a.Out, "  %s: %s\n", spec.Visible(shorten.List(hosts[line], cli.MostNames)), spec.Visible(line))
	}
}

// softwareLine returns the software of a host in a line.
func softwareLine(r software.Record) string {
	parts := list.Of(slices.Sorted(maps.Keys(r.Versions)), func(name string) string { return name + " " + r.Versions[name] })
	if p := r.Python; p != nil {
		parts = append(parts, fmt.Sprintf("Python %s (%s) with %s, digest %s", p.Version, p.Interpreter, plural.Of(len(p.Packages), "package", "packages"), p.Digest))
		for _, name := range []string{"torch", "jax", "tensorflow"} {
			if version, ok := p.Packages[name]; ok {
				parts = append(parts, name+" "+version)
			}
		}
		if p.CUDA != "" {
			parts = append(parts, "CUDA of torch "+p.CUDA)
		}
		for _, name := range []string{"nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11"} {
			if version, ok := p.Packages[name]; ok {
				parts = append(parts, "NCCL of Python "+version)
				break
			}
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing is known")
}
