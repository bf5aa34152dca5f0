package service

import (
	"fmt"
	"strings"
)

// Unit describes a host worker that is started as a service.
type Unit struct {
	// Program is the path of clusterrun, and Args are the flags of `clusterrun worker`.
	Program string
	Args    []string
	// Name is the name of the unit without its suffix.
	Name string
	// StateDir is the state directory. Args contain it, too.
	StateDir string
	// OwnStateDir reports whether systemd creates that directory for Name.
	OwnStateDir bool
	// ForUser reports whether it is a unit of a user's systemd.
	ForUser bool
	// RunAs is the user of the process. If it is empty, it is the user of this systemd.
	RunAs string
	// Traversable reports whether users of tasks pass through the state directory.
	Traversable bool
	// Environment is a file of variables, which need not exist.
	Environment string
	// Controller reports whether the worker serves workflows but no tasks.
	Controller bool
}

// Mark is the first line of each unit. A unit without it was not written by clusterrun.
const Mark = "# Written by `clusterrun worker install`, which also changes and removes it.\n"

// StateRoot is the directory in which systemd creates the state directories of system units.
const StateRoot = "/var/lib/"

// Text returns the unit.
func (u Unit) Text() string {
	var b strings.Builder
	b.WriteString(Mark)
	for _, s := range []section{u.unit(), u.service(), u.install()} {
		fmt.Fprintf(&b, "\n[%s]\n", s.name)
		for _, l := range s.lines {
			if l.why != "" {
				fmt.Fprintf(&b, "# %s\n", l.why)
			}
			fmt.Fprintf(&b, "%s=%s\n", l.key, l.value)
		}
	}
	return strings.TrimSuffix(b.String(), "\n") + "\n"
}

type section struct {
	name  string
	lines []line
}

// line is a setting, with its reason.
type line struct{ key, value, why string }

func (s *section) add(key, value, why string) { s.lines = append(s.lines, line{key, value, why}) }

func (u Unit) unit() section {
	s := section{name: "Unit"}
	what := "host worker"
	if u.Controller {
		what = "controller"
	}
	s.add("Description", "clusterrun "+what, "")
	if !u.ForUser {
		s.add("Wants", "network-online.target", "")
		s.add("After", "network-online.target", "")
	}
	s.add("StartLimitIntervalSec", "0", "It is started again however often it fails.")
	return s
}

func (u Unit) service() section {
	s := section{name: "Service"}
	s.add("Type", "notify", "Ready when the queues are served, for which the server may come later.")
	s.add("TimeoutStartSec", "infinity", "")
	s.add("ExecStart", command(u.Program, append([]string{"worker"}, u.Args...)...), "")
	s.add("ExecReload", command(u.Program, "worker", "upgrade", "--state-dir", u.StateDir),
		"The worker uses the program that is on disk by then; processes of tasks go on.")
	s.add("ExecStop", command(u.Program, "worker", "stop", "--force", "--state-dir", u.StateDir),
		"It is heard also while the worker's program is replaced.")
	if u.RunAs != "" {
		s.add("User", u.RunAs, "")
	}
	s.add("WorkingDirectory", "-~", "")
	if u.OwnStateDir {
		s.add("StateDirectory", u.Name, "")
		mode := "0700"
		if u.Traversable {
			mode = "0711"
		}
		s.add("StateDirectoryMode", mode, "")
	}
	s.add("EnvironmentFile", "-"+value(u.Environment), "TEMPORAL_API_KEY and its like, which tasks do not get, and PATH, which they do.")
	s.add("Delegate", "yes", "Limits of tasks need cgroups of their own.")
	s.add("KillMode", "mixed", "The worker stops its tasks itself, and accounts for them.")
	s.add("TimeoutStopSec", "1min", "")
	s.add("OOMPolicy", "continue", "A task that has taken too much memory ends alone.")
	s.add("TasksMax", "infinity", "")
	if !u.ForUser && !u.Controller {
		s.add("LimitMEMLOCK", "infinity", "For tasks with RDMA.")
	}
	s.add("Restart", "on-failure", "")
	s.add("RestartSec", "5s", "")
	s.add("RestartPreventExitStatus", "2", "A mistake in ExecStart does not go away by itself.")
	u.harden(&s)
	return s
}

// harden removes rights that a controller does not need. A user's systemd does not support most
// of it.
func (u Unit) harden(s *section) {
	if !u.Controller || u.ForUser {
		return
	}
	for i, setting := range []string{
		"NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict", "ProtectHome=read-only",
		"PrivateTmp=yes", "PrivateDevices=yes", "ProtectClock=yes", "ProtectHostname=yes", "ProtectKernelLogs=yes",
		"ProtectKernelModules=yes", "ProtectKernelTunables=yes", "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
		"RestrictNamespaces=yes", "RestrictRealtime=yes", "RestrictSUIDSGID=yes", "LockPersonality=yes",
		"SystemCallArchitectures=native",
	} {
		key, value, _ := strings.Cut(setting, "=")
		why := ""
		if i == 0 {
			why = "It runs no task, so nothing of this is inherited."
		}
		s.add(key, value, why)
	}
	if !u.OwnStateDir {
		s.add("ReadWritePaths", quote(value(u.StateDir)), "")
	}
}

func (u Unit) install() section {
	s := section{name: "Install"}
	target := "multi-user.target"
	if u.ForUser {
		target = "default.target"
	}
	s.add("WantedBy", target, "")
	return s
}
