package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/diskspace"
	"github.com/clusterrun/clusterrun/activities/system/remedy"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

var (
	errFull    = remedy.With(errors.New("the disk with /s is full (0 KiB of 10 are free)"), "free some space there")
	errOff     = errors.New("it is off")
	healthy    = Host{Cgroups: cgroupsV2}
	ourServer  = ServerFacts{Name: "the embedded server", Version: "1.32.1", Namespace: "default", Retention: 90 * 24 * time.Hour}
	everything = []string{"cpu", "memory", "pids"}
)

// with returns a changed copy of v.
func with[T any](v T, change func(*T)) T {
	change(&v)
	return v
}

func host(name, version string) fleet.HostStatus {
	return fleet.HostStatus{Host: fleet.Host{Name: name, Version: version}}
}

// Each row holds the facts and the worst finding about them.
func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		found  []Finding
		level  Level
		text   string
		remedy string
	}{
		"server":             {CheckServer(ourServer), OK, "it keeps runs for 90 days", ""},
		"forgetful server":   {CheckServer(with(ourServer, func(s *ServerFacts) { s.Retention = time.Hour })), Warning, "it deletes runs 1h0m0s", "namespace update --retention 30d default"},
		"without attributes": {CheckServer(with(ourServer, func(s *ServerFacts) { s.Missing, s.Register = []string{"A", "B"}, "register" })), Warning, "the search attributes A, B are not registered", "register"},
		"secretive server":   {CheckServer(with(ourServer, func(s *ServerFacts) { s.AttributesErr = errOff })), Warning, "could not be checked: search attributes: it is off", "operator"},
		"older server runs":  {CheckServer(with(ourServer, func(s *ServerFacts) { s.Program = "clusterrun-devserver (Temporal server 1.33.0)" })), Warning, "running embedded server is 1.32.1", "restart"},
		"same server":        {CheckServer(with(ourServer, func(s *ServerFacts) { s.Program = "clusterrun-devserver (Temporal server 1.32.1, Web UI)" })), OK, "", ""},
		"unreached":          {CheckUnreached(errOff, "turn it on"), Problem, "it is off", "turn it on"},

		"no hosts": {CheckMembers("q", "2", nil), OK, "queue q has no hosts", ""},
		"hosts":    {CheckMembers("q", "2", []fleet.HostStatus{host("a", "2"), host("b", "2")}), OK, "2 hosts in the queue q, all 2", ""},
		"mixed":    {CheckMembers("q", "2", []fleet.HostStatus{host("a", "2"), host("c", "1"), host("b", "1")}), Warning, "2 here, 1 on b, c there", "worker upgrade"},
		"a wrong clock": {CheckMembers("q", "2", []fleet.HostStatus{with(host("a", "2"), func(h *fleet.HostStatus) {
			h.Failing = []fleet.FailedCheck{{Check: "clock", Reason: "the clock is 31s ahead of the server's, more than 10s"}}
		})}), Warning, "host a gets no tasks: its check clock: the clock is 31s ahead of the server's, more than 10s", "host show a"},
		"silent hosts": {CheckMembers("q", "2", []fleet.HostStatus{with(host("a", "2"), func(h *fleet.HostStatus) { h.State = fleet.HostSilent })}), Warning, "in the queue q, 1 host is silent: a", "clusterrun worker"},

		"cgroups":    {CheckCgroups(healthy, everything, nil), OK, "work", ""},
		"some":       {CheckCgroups(healthy, []string{"memory", "pids"}, errors.New("only those")), Warning, "specs with limits.cpus: only those", "Delegate=yes"},
		"version 1":  {CheckCgroups(Host{Cgroups: "version 1 cgroups"}, nil, errors.New("none of them")), Warning, "limits.memory, limits.cpus, limits.pids: none of them", "unified_cgroup_hierarchy=1"},
		"no cgroups": {CheckCgroups(ReadHost(t.TempDir()), nil, remedy.With(errors.New("none"), "start it so")), Warning, "no cgroups: a host worker", "omit these limits"},

		"disk":        {CheckDisk(Disk{Path: "/s", Use: "state", Space: diskspace.Space{Free: 2 << 30, All: 4 << 30}}), OK, "/s (state) has 2 GiB left", ""},
		"little room": {CheckDisk(Disk{Path: "/s", Use: "state", Space: diskspace.Space{Free: 2 << 20, All: 4 << 30}}), Warning, "has 2 MiB left", "rm --older-than"},
		"full":        {CheckDisk(Disk{Path: "/s", Use: "state", Full: errFull, Space: diskspace.Space{Free: 10, All: 4 << 30}}), Problem, "the disk with /s is full (0 KiB of 10 are free)", "free some space there"},
		"read-only":   {CheckDisk(Disk{Path: "/s", Setting: "--state-dir", NotUsable: errOff, Space: diskspace.Space{ReadOnly: true, Free: 2 << 30, All: 4 << 30}}), Problem, "read-only", "remount,rw"},
		"not ours":    {CheckDisk(Disk{Path: "/s", Setting: "--state-dir", NotUsable: errOff, Space: diskspace.Space{Free: 2 << 30, All: 4 << 30}}), Problem, "is not writable: it is off", "--state-dir"},
		"no blocks":   {CheckDisk(Disk{Path: "/s"}), OK, "is writable", ""},
		"shm":         {CheckShm(diskspace.Space{Free: 60 << 20, All: 64 << 20}), OK, "/dev/shm has 60 MiB left", ""},
		"full shm":    {CheckShm(diskspace.Space{Free: 1 << 20, All: 64 << 20}), Problem, "/dev/shm is full: 63 of 64 MiB are in use", "ls -l /dev/shm"},
		"no shm":      {CheckShm(diskspace.Space{}), Warning, "no shared memory", "mount -t tmpfs"},
		"network":     {CheckDisk(Disk{Path: "/s", Setting: "--state-dir", Network: "NFS", Space: diskspace.Space{Free: 2 << 30, All: 4 << 30}}), Warning, "is on NFS", "--state-dir"},
		"noexec":      {CheckDisk(Disk{Path: "/tmp", Space: diskspace.Space{Free: 2 << 30, NoExec: true, All: 4 << 30}}), Warning, "/tmp () does not allow executing", "remount,exec"},

		"no GPU":                {CheckGPUs(Host{}, 0, false, 0, nil), OK, "no GPU", ""},
		"GPUs":                  {CheckGPUs(Host{NVIDIADriver: "550.1", NVIDIADevices: 8}, 8, true, 8, nil), OK, "8 usable GPUs; the driver 550.1 reports 8", ""},
		"AMD":                   {CheckGPUs(Host{}, 4, false, 0, nil), OK, "4 usable GPUs", ""},
		"no driver":             {CheckGPUs(Host{NVIDIAOnBus: 1}, 0, false, 0, nil), Problem, "without a driver", "modprobe nvidia"},
		"no device":             {CheckGPUs(Host{NVIDIADriver: "550.1", NVIDIAOnBus: 1}, 0, true, 0, nil), Problem, "/dev/nvidia0 is missing", "--gpus all"},
		"driver is gone":        {CheckGPUs(Host{NVIDIADevices: 1}, 1, false, 0, nil), Problem, "no driver is loaded", "modprobe"},
		"nvidia-smi is missing": {CheckGPUs(Host{NVIDIADriver: "550.1", NVIDIADevices: 1}, 1, false, 0, nil), Warning, "nvidia-smi is missing", "PATH"},
		"hangs":                 {CheckGPUs(Host{NVIDIADriver: "550.1", NVIDIADevices: 1}, 1, true, 0, errOff), Problem, "does not answer: it is off", "xid"},
		"not for us":            {CheckGPUs(Host{NVIDIADriver: "550.1", NVIDIADevices: 2}, 0, true, 2, nil), Warning, "2 GPUs, but this user cannot use any of them", "video"},

		"programs":      {CheckPrograms("clusterrun 2", "server", nil, nil, false), OK, "server", ""},
		"no server":     {CheckPrograms("clusterrun 2", "", errFull, nil, false), Problem, "is full", "free some space"},
		"none needed":   {CheckPrograms("clusterrun 2", "", errFull, nil, true), OK, "", ""},
		"no supervisor": {CheckPrograms("clusterrun 2", "", nil, errFull, true), Problem, "is full", "free some space"},
		"its worker":    {CheckWorker("2", 7, "2", "2"), OK, "pid 7 has the same version", ""},
		"older worker":  {CheckWorker("2", 7, "1", "1"), Warning, "pid 7 has version 1, but this program has 2", "worker upgrade"},
		"upgraded":      {CheckWorker("2", 7, "2", "1"), OK, "its supervisor has version 1, and exits when no run is open", ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.level, Worst(c.found), "%+v", c.found)
			var worst []string
			for _, f := range c.found {
				assert.Equal(t, f.Level == OK, f.Remedy == "", "what is wrong has a remedy, and nothing else has: %+v", f)
				assert.NotContains(t, f.Text+f.Remedy, "\n")
				if f.Level == c.level {
					worst = append(worst, f.Text+" -> "+f.Remedy)
				}
			}
			said := strings.Join(worst, "\n")
			assert.Contains(t, said, c.text)
			assert.Contains(t, said, c.remedy)
		})
	}
}

func TestReadHost(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\nGCC version: gcc 12\n",
		"dev/nvidia0":                "", "dev/nvidia1": "", "dev/nvidiactl": "", "dev/nvidia-uvm": "",
		"sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n", "sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
		"sys/bus/pci/devices/0000:01:00.1/vendor": "0x10de\n", "sys/bus/pci/devices/0000:01:00.1/class": "0x040300\n",
		"sys/fs/cgroup/cgroup.controllers": "cpu",
	} {
		file := filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	assert.Equal(t, Host{
		NVIDIADriver: "550.54.15", NVIDIADevices: 2, NVIDIAOnBus: 1, Cgroups: cgroupsV2,
	}, ReadHost(root))
	assert.Equal(t, Host{Cgroups: "no cgroups"}, ReadHost(t.TempDir()))
}

// A check that hangs is reported by name and does not delay the findings of other checks.
func TestExamine(t *testing.T) {
	hangs := make(chan struct{})
	defer close(hangs)
	found := Examine(context.Background(), time.Second, []Check{
		{"hangs", func(context.Context) []Finding { <-hangs; return nil }},
		{"fine", func(context.Context) []Finding { return []Finding{ok("well"), problem("mend", "ill")} }},
		{"patient", func(ctx context.Context) []Finding { <-ctx.Done(); return []Finding{Unknown(ctx.Err(), "wait")} }},
	})
	require.Len(t, found, 4)
	assert.Equal(t, "hangs", found[0].Check)
	assert.Contains(t, found[0].Text, "could not be checked: no answer within 1s")
	assert.Equal(t, Finding{Check: "fine", Level: OK, Text: "well"}, found[1])
	assert.Equal(t, Finding{Check: "fine", Level: Problem, Text: "ill", Remedy: "mend"}, found[2])
	assert.Equal(t, "patient", found[3].Check)
	assert.Equal(t, Problem, Worst(found))
}
