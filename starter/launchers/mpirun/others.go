package mpirun

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// bindTo binds each task to its own CPUs if processes are bound at all.
func (t *translation) bindTo(typed string, values []string) error {
	what, _, _ := strings.Cut(strings.ToLower(values[0]), ":")
	if err := oneOf(typed, what, "none", "core", "cores", "hwthread", "threads", "socket", "sockets", "package", "numa", "ldoms", "board", "l1cache", "l2cache", "l3cache"); err != nil {
		return err
	}
	if what != "none" {
		t.bind = true
		t.note("%s %s: the tasks of a host divide its CPUs in blocks; --cpus says which CPUs", typed, values[0])
	}
	return nil
}

// bound binds the tasks to all CPUs unless a flag gives others.
func (t *translation) bound() {
	if t.bind && !slices.ContainsFunc(t.Args, func(arg string) bool { return arg == "--cpus" || strings.HasPrefix(arg, "--cpus=") }) {
		t.add("--cpus", "auto")
	}
}

// export reads srun's --export. It passes values other than ALL and NONE to our flag of that
// name.
func (t *translation) export(_ string, values []string) error {
	first, rest, more := strings.Cut(values[0], ",")
	switch first {
	case "ALL":
		t.add("--env-from-shell")
	case "NONE":
		t.add("--unset-env", "*")
	default:
		t.add("--export=" + values[0])
		return nil
	}
	if more {
		return t.envList("", []string{rest})
	}
	return nil
}

func (t *translation) envList(_ string, values []string) error {
	for name := range strings.SplitSeq(values[0], ",") {
		t.add("--export=" + name)
	}
	return nil
}

func (t *translation) envPair(_ string, values []string) error {
	t.add("--env", values[0]+"="+values[1])
	return nil
}

// timeout reads a plain number as seconds, and leaves any other value to our flag.
func (t *translation) timeout(_ string, values []string) error {
	text := values[0]
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		text = strconv.FormatUint(n, 10) + "s"
	}
	t.add("--timeout=" + text)
	return nil
}

// time reads Slurm's limit on the time of a job.
func (t *translation) time(typed string, values []string) error {
	d, ok := slurmTime(values[0])
	if !ok {
		return fmt.Errorf("%s %s: write MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS or DAYS-HOURS, as for srun; --timeout takes times such as 90m", typed, values[0])
	}
	t.add("--timeout", spec.Duration(d).String())
	if typed == "-t" {
		t.note("-t %s: the run is stopped after %s, as with srun; torchrun's -t is --tee", values[0], spec.Duration(d).String())
	}
	return nil
}

// slurmTime parses a time span of Slurm. Its first part is in minutes, or in hours if there are
// three parts or days before it.
func slurmTime(text string) (d time.Duration, ok bool) {
	days, rest, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, rest = "0", text
	}
	parts := strings.Split(rest, ":")
	if len(parts) > 3 {
		return 0, false
	}
	units := []time.Duration{time.Minute, time.Second}
	if hasDays || len(parts) == 3 {
		units = []time.Duration{time.Hour, time.Minute, time.Second}
	}
	units = append([]time.Duration{24 * time.Hour}, units...)
	for i, part := range append([]string{days}, parts...) {
		n, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return 0, false
		}
		d += time.Duration(n) * units[i]
	}
	return d, d > 0
}
