package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/diskspace"
	"github.com/clusterrun/clusterrun/activities/system/remedy"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// ServerFacts are what is known about a Temporal server that answers.
type ServerFacts struct {
	Name, Version, Namespace string
	Retention                time.Duration
	// Program is the version line of the embedded server's program. It is empty for any other
	// server.
	Program string
	// Missing lists search attributes of runs that the server does not define, and Register is the
	// command that registers them. AttributesErr is the error if they could not be read.
	Missing       []string
	Register      string
	AttributesErr error
}

const (
	fewRetention = 24 * time.Hour
	maxNames     = 8
)

// CheckServer judges a server.
func CheckServer(s ServerFacts) []Finding {
	all := []Finding{ok("%s answers: Temporal server %s, namespace %s", s.Name, s.Version, s.Namespace)}
	if s.Program != "" && !strings.Contains(s.Program, "Temporal server "+s.Version) {
		all = append(all, warning("wait until it exits, or restart `clusterrun dev`", "the running embedded server is %s, but the program on disk is %s", s.Version, s.Program))
	}
	if s.Retention > 0 && s.Retention < fewRetention {
		all = append(all, warning(fmt.Sprintf("temporal operator namespace update --retention 30d %s", s.Namespace), "it deletes runs %s after their end", s.Retention))
	} else if s.Retention > 0 {
		all = append(all, ok("it keeps runs for %s", units.Count(int(s.Retention/(24*time.Hour)), "day", "days")))
	}
	switch {
	case s.AttributesErr != nil:
		all = append(all, Unknown(fmt.Errorf("search attributes: %w", s.AttributesErr), "ask its operator whether they are registered: "+s.Register))
	case len(s.Missing) > 0:
		all = append(all, warning(s.Register, "the search attributes %s are not registered: `list` finds fewer runs", shorten.List(s.Missing, maxNames)))
	default:
		all = append(all, ok("all search attributes of runs are registered"))
	}
	return all
}

// CheckUnreached judges a server that did not answer. why is the error.
func CheckUnreached(why error, remedy string) []Finding {
	return []Finding{problem(remedy, "%v", why)}
}

// CheckNotRunning returns the finding for an embedded server that is not running, which is
// normal.
func CheckNotRunning() []Finding {
	return []Finding{ok("the embedded server is not running; a command that needs it will start it")}
}

// CheckMembers judges a queue's hosts. version is this program's version.
func CheckMembers(queue, version string, hosts []fleet.HostStatus) []Finding {
	var silent []string
	by := map[string][]string{}
	for _, h := range hosts {
		by[h.Version] = append(by[h.Version], h.Name)
		if h.State == fleet.HostSilent {
			silent = append(silent, h.Name)
		}
	}
	var all []Finding
	if len(silent) > 0 {
		all = append(all, warning("start `clusterrun worker` on it again", "in the queue %s, %s silent: %s",
			queue, units.Count(len(silent), "host is", "hosts are"), shorten.List(silent, maxNames)))
	}
	for _, h := range hosts {
		if h.State != fleet.HostSilent && len(h.Failing) > 0 {
			all = append(all, warning("clusterrun host show "+h.Name, "host %s gets no tasks: its %s", h.Name, h.Failing[0]))
		}
	}
	delete(by, version)
	var others []string
	for v, names := range by {
		slices.Sort(names)
		others = append(others, fmt.Sprintf("%s on %s", v, shorten.List(names, maxNames)))
	}
	slices.Sort(others)
	if len(others) > 0 {
		all = append(all, warning("install this version of clusterrun there, and upgrade the host worker: clusterrun worker upgrade", "%s here, %s there", version, strings.Join(others, "; ")))
	}
	switch {
	case len(hosts) == 0:
		all = append(all, ok("queue %s has no hosts; `submit` needs a `clusterrun worker`, but `run` does not", queue))
	case len(all) == 0:
		all = append(all, ok("%s in the queue %s, all %s", units.Count(len(hosts), "host", "hosts"), queue, version))
	}
	return all
}

// CheckCgroups judges the limits that a host worker started here can set. why is the reason for a
// missing one.
func CheckCgroups(h Host, controllers []string, why error) []Finding {
	do := "a service by clusterrun worker unit, or systemd-run --user -p Delegate=yes clusterrun worker"
	if h.Cgroups != cgroupsV2 {
		do = "boot with systemd.unified_cgroup_hierarchy=1, or omit these limits"
	}
	var lacks []string
	for _, c := range []struct{ name, limit string }{{"memory", "limits.memory"}, {"cpu", "limits.cpus"}, {"pids", "limits.pids"}} {
		if !slices.Contains(controllers, c.name) {
			lacks = append(lacks, c.limit)
		}
	}
	if len(lacks) > 0 {
		what, _ := remedy.Split(why)
		return []Finding{warning(do, "%s: a host worker started in this way refuses specs with %s: %s", h.Cgroups, strings.Join(lacks, ", "), what)}
	}
	return []Finding{ok("%s: limits of memory, processors and processes work", h.Cgroups)}
}

// Disk is a directory's file system.
type Disk struct {
	Path, Use string
	Setting   string // the flag or variable that chooses another directory
	Full      error  // why it counts as full
	Network   string // its type, if it is a network file system
	NotUsable error  // why nothing can be written to it
	diskspace.Space
}

const littleRoom = 1 << 30

// CheckDisk judges a file system.
func CheckDisk(d Disk) []Finding {
	var all []Finding
	switch {
	case d.Full != nil:
		what, do := remedy.Split(d.Full)
		all = append(all, problem(do, "%s", what))
	case d.ReadOnly:
		all = append(all, problem("mount -o remount,rw, or choose another directory with "+d.Setting, "%s (%s) is on a disk that is mounted read-only", d.Path, d.Use))
	case d.NotUsable != nil:
		all = append(all, problem("chown or chmod it, or choose another directory with "+d.Setting, "%s (%s) is not writable: %v", d.Path, d.Use, d.NotUsable))
	case d.All == 0:
		all = append(all, ok("%s (%s) is writable", d.Path, d.Use))
	case d.Free < littleRoom:
		all = append(all, warning("clusterrun rm --older-than 30d", "%s (%s) has %d MiB left", d.Path, d.Use, d.Free>>20))
	default:
		all = append(all, ok("%s (%s) has %d GiB left", d.Path, d.Use, d.Free>>30))
	}
	if d.Network != "" {
		all = append(all, warning("choose a directory on a disk of this host with "+d.Setting, "%s (%s) is on %s: locks and syncs are slow on it, and hosts must not share it", d.Path, d.Use, d.Network))
	}
	if d.NoExec {
		all = append(all, warning("mount -o remount,exec, or choose another directory with "+d.Setting, "%s (%s) does not allow executing programs", d.Path, d.Use))
	}
	return all
}

// CheckShm judges shared memory, through which ranks and data loaders exchange data.
func CheckShm(s diskspace.Space) []Finding {
	switch {
	case s.All == 0:
		return []Finding{warning("mount -t tmpfs tmpfs /dev/shm", "there is no shared memory at /dev/shm, which NCCL and data loaders need")}
	case s.Free <= s.All/20:
		return []Finding{problem("ls -l /dev/shm, and remove files left by killed programs", "/dev/shm is full: %d of %d MiB are in use, and programs that run out of space get SIGBUS", (s.All-s.Free)>>20, s.All>>20)}
	}
	return []Finding{ok("/dev/shm has %d MiB left", s.Free>>20)}
}

// CheckGPUs judges a driver by its answer. usable is the number of devices that a host worker
// started here would see.
func CheckGPUs(h Host, usable int, program bool, answered int, err error) []Finding {
	switch {
	case h.NVIDIADriver == "" && h.NVIDIADevices == 0 && h.NVIDIAOnBus > 0:
		return []Finding{problem("install NVIDIA's driver, or load it: modprobe nvidia", "an NVIDIA GPU without a driver")}
	case h.NVIDIADriver != "" && h.NVIDIADevices == 0:
		return []Finding{problem("run nvidia-smi as root, which creates the device files; in a container: --gpus all", "the NVIDIA driver (%s) is loaded, but /dev/nvidia0 is missing", h.NVIDIADriver)}
	case h.NVIDIADevices > 0 && h.NVIDIADriver == "" && !program:
		return []Finding{problem("modprobe nvidia", "devices /dev/nvidia* exist, but no driver is loaded")}
	case h.NVIDIADevices > 0 && !program:
		return []Finding{warning("install nvidia-smi (nvidia-utils), or add it to PATH", "nvidia-smi is missing, so `status --usage` cannot show GPUs")}
	case h.NVIDIADevices > 0 && err != nil:
		return []Finding{problem("dmesg | grep -i -e xid -e nvrm", "nvidia-smi does not answer: %v", err)}
	case h.NVIDIADevices > 0 && usable == 0:
		return []Finding{warning("usermod -aG video USER, or unset CUDA_VISIBLE_DEVICES", "%s, but this user cannot use any of them", units.Count(h.NVIDIADevices, "GPU", "GPUs"))}
	case h.NVIDIADevices > 0:
		return []Finding{ok("%s; the driver %s reports %d", units.Count(usable, "usable GPU", "usable GPUs"), h.NVIDIADriver, answered)}
	case usable > 0:
		return []Finding{ok("%s", units.Count(usable, "usable GPU", "usable GPUs"))}
	}
	return []Finding{ok("no GPU")}
}

// CheckPrograms judges the programs that belong together. server is the version line of the
// embedded server's program, and supervisorErr why no supervisor could be started.
func CheckPrograms(own, server string, serverErr, supervisorErr error, external bool) []Finding {
	all := []Finding{ok("%s", own)}
	broken := func(err error) {
		what, do := remedy.Split(err)
		all = append(all, problem(do, "%s", what))
	}
	if supervisorErr != nil {
		broken(supervisorErr)
	}
	switch {
	case external: // it does not use our program
	case serverErr != nil:
		broken(serverErr)
	default:
		all = append(all, ok("%s", server))
	}
	return all
}

// CheckWorker judges the programs of the host worker with process ID pid. worker is the version
// of its side, and supervisor is its supervisor's version.
func CheckWorker(version string, pid int, worker, supervisor string) []Finding {
	var all []Finding
	if worker == version {
		all = append(all, ok("the host worker with pid %d has the same version", pid))
	} else {
		all = append(all, warning("clusterrun worker upgrade", "the host worker with pid %d has version %s, but this program has %s", pid, worker, version))
	}
	if supervisor != worker {
		all = append(all, ok("its supervisor has version %s, and exits when no run is open on this host", supervisor))
	}
	return all
}
