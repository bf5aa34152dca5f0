package mpirun

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/starter/hosts/hostlist"
)

// nodes reads srun's number of nodes.
func (t *translation) nodes(typed string, values []string) error {
	low, high, isRange := strings.Cut(values[0], "-")
	least, err := strconv.Atoi(low)
	most := least
	if err == nil && isRange {
		most, err = strconv.Atoi(high)
	}
	if err != nil || least < 1 || most < least {
		return fmt.Errorf("%s %s: give a number of hosts, such as 4, or MIN-MAX, such as 2-4; to name hosts use -H a,b", typed, values[0])
	}
	count := low
	if most > least {
		count += ":" + high
	}
	t.counted = true
	t.add("--nnodes", count)
	return nil
}

// nodelist reads srun's names of nodes. Their translation depends on other flags.
func (t *translation) nodelist(typed string, values []string) error {
	names, err := hostlist.Expand(values[0])
	if err != nil {
		return fmt.Errorf("%s %s: %w", typed, values[0], err)
	}
	t.names = append(t.names, names...)
	return nil
}

// placeOnNodes adds the hosts of --nodelist. Like srun it distributes the tasks evenly.
func (t *translation) placeOnNodes() {
	if len(t.names) == 0 {
		return
	}
	if t.fleet {
		t.add("--select", strings.Join(t.names, ","))
		if !t.counted {
			t.add("--nnodes", strconv.Itoa(len(t.names)))
		}
		return
	}
	hosts := strings.Join(t.names, ",")
	if n, err := strconv.Atoi(t.tasks); err == nil && n > len(t.names) && t.perHost == "" {
		each := strconv.Itoa((n + len(t.names) - 1) / len(t.names))
		hosts = strings.ReplaceAll(hosts, ",", ":"+each+",") + ":" + each
	}
	t.add("--host", hosts)
}

// mapBy reads how mpirun maps processes: over hosts, which one of our flags sets, and within a
// host, which is up to the kernel.
func (t *translation) mapBy(typed string, values []string) error {
	const remedy = "give slot, node or ppr:N:node; to say which task is on which host use --task TYPE=HOST,HOST,..."
	what, rest, _ := strings.Cut(strings.ToLower(values[0]), ":")
	switch what {
	case "slot":
		t.add("--strategy", "pack")
	case "node":
		t.add("--strategy", "spread")
	case "core", "hwthread", "socket", "package", "numa", "board", "l1cache", "l2cache", "l3cache":
		t.note("%s %s: hosts are filled one after the other, and in a host the kernel places the processes; --cpus auto binds each to CPUs of its own", typed, values[0])
	case "ppr":
		count, resource, _ := strings.Cut(rest, ":")
		resource, rest, _ = strings.Cut(resource, ":")
		if n, err := strconv.Atoi(count); err != nil || n < 1 || resource != "node" {
			return fmt.Errorf("%s %s: write ppr:N:node, such as ppr:4:node; within a host tasks are not placed", typed, values[0])
		}
		t.perHost = count
		t.add("--per-host", count)
	default:
		return fmt.Errorf("%s %s: there is no such placement here; %s", typed, values[0], remedy)
	}
	for _, modifier := range strings.FieldsFunc(rest, func(r rune) bool { return r == ':' || r == ',' }) {
		switch {
		case modifier == "oversubscribe":
			t.add("--oversubscribe")
		case modifier == "nooversubscribe", modifier == "span":
		case strings.HasPrefix(modifier, "pe="):
			return fmt.Errorf("%s %s: a task has no number of CPUs; --cpus auto shares all of a host out, and --limit-cpus N bounds what each task uses", typed, values[0])
		default:
			return fmt.Errorf("%s %s: %q is not understood; %s", typed, values[0], modifier, remedy)
		}
	}
	return nil
}

// distribution reads how srun distributes tasks over nodes.
func (t *translation) distribution(typed string, values []string) error {
	over, _, _ := strings.Cut(values[0], ":") // the rest describes a host's CPUs
	if err := oneOf(typed, over, "block", "cyclic"); err != nil {
		return err
	}
	t.add("--strategy", map[string]string{"block": "pack", "cyclic": "spread"}[over])
	return nil
}

func (t *translation) rankBy(typed string, values []string) error {
	if err := oneOf(typed, values[0], "slot", "fill"); err != nil {
		return fmt.Errorf("%w; ranks are in the order in which tasks are placed, and --map-by node deals them out", err)
	}
	return nil
}
