package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/activities/process/supervise"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/ports"
	"github.com/clusterrun/clusterrun/activities/system/diskspace"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/doctor"
	"github.com/clusterrun/clusterrun/starter/hosts/hostlist"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// programTakes limits how long a program takes to report its version.
const programTakes = 5 * time.Second

func examinePrograms(ctx context.Context, a *cli.App) []doctor.Finding {
	_, external, _ := a.External(ctx) // examineServer reports its error
	ctx, cancel := context.WithTimeout(ctx, programTakes)
	defer cancel()
	line, err := a.Home().Version(ctx)
	found := doctor.CheckPrograms(cli.VersionLine(), line, err, supervise.CheckProgram(ctx), external)
	if p := supervisor.Programs(a.WorkerDir()); p != nil {
		found = append(found, doctor.CheckWorker(spec.Version, p.PID, p.Version, p.Supervisor)...)
	}
	return found
}

func examineCgroups(h doctor.Host) []doctor.Finding {
	there := supervisor.Prospect()
	return doctor.CheckCgroups(h, there.Controllers, there.Why)
}

func examineLimits(h doctor.Host) []doctor.Finding {
	hard := func(resource int) uint64 {
		var l unix.Rlimit
		if unix.Getrlimit(resource, &l) != nil {
			return 0
		}
		return l.Max
	}
	return doctor.CheckLimits(doctor.Limits{
		Files: hard(unix.RLIMIT_NOFILE), Processes: hard(unix.RLIMIT_NPROC), Locked: hard(unix.RLIMIT_MEMLOCK),
	}, h)
}

func examinePorts(a *cli.App, h doctor.Host) []doctor.Finding {
	const most = 16
	tried, free := 0, 0
	for port := range ports.Free() {
		if tried++; canListen("", port) {
			free++
		}
		if tried == most {
			break
		}
	}
	var taken []int
	if held, _ := filelock.IsHeld(filepath.Join(a.Global.StateDir, cli.DevLock)); !held {
		for _, port := range []int{7233, 8233} {
			if !canListen("127.0.0.1", port) {
				taken = append(taken, port)
			}
		}
	}
	return doctor.CheckPorts(h, free, tried, taken)
}

func canListen(host string, port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(host, fmt.Sprint(port)))
	if err != nil {
		return !errors.Is(err, syscall.EADDRINUSE)
	}
	l.Close()
	return true
}

func examineDisks(a *cli.App) []doctor.Finding {
	return slices.Concat(
		doctor.CheckDisk(diskOf(a.Global.StateDir, "databases, journals and logs", "--state-dir")),
		doctor.CheckDisk(diskOf(os.TempDir(), "temporary files", "TMPDIR")))
}

// networks are the network file systems, by their statfs(2) numbers.
var networks = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB",
	unix.CEPH_SUPER_MAGIC: "Ceph", unix.AFS_SUPER_MAGIC: "AFS", 0x0BD00BD0: "Lustre", 0x47504653: "GPFS", 0x19830326: "BeeGFS",
}

// diskOf returns a directory's file system. The directory need not exist yet.
func diskOf(dir, use, setting string) doctor.Disk {
	space, err := diskspace.Of(dir)
	d := doctor.Disk{Path: dir, Use: use, Setting: setting, Full: cli.FullDisk(dir), Network: networks[space.Type], Space: space}
	if err != nil {
		d.NotUsable = err
	} else if info, err := os.Stat(space.At); err == nil && !info.IsDir() {
		d.NotUsable = fmt.Errorf("%s is not a directory", space.At)
	} else if err := hostuser.Access(space.At, unix.W_OK|unix.X_OK); err != nil {
		d.NotUsable = fmt.Errorf("%s: %w", space.At, err)
	}
	return d
}

func examineShm() []doctor.Finding {
	space, err := diskspace.Of(diskspace.ShmDir)
	if err != nil || space.At != diskspace.ShmDir {
		space = diskspace.Space{}
	}
	return doctor.CheckShm(space)
}

func examineGPUs(ctx context.Context, h doctor.Host) []doctor.Finding {
	usable := len(resources.ReadGPUs(os.Environ()).Visible)
	program, err := exec.LookPath("nvidia-smi")
	if err != nil || h.NVIDIADevices == 0 {
		return doctor.CheckGPUs(h, usable, err == nil, 0, nil)
	}
	rows, _, err := resources.AskNVIDIA(ctx, program, "--query-gpu=uuid,utilization.gpu")
	return doctor.CheckGPUs(h, usable, true, len(rows), err)
}

// otherHosts returns a check for each host in the file except this one.
func (e *examination) otherHosts() ([]doctor.Check, error) {
	f, err := os.Open(e.hostfile)
	if err != nil {
		return nil, cli.Usagef("--hostfile: %v", err)
	}
	defer f.Close()
	hosts, err := hostlist.ParseFile(f)
	if err != nil {
		return nil, cli.Usagef("--hostfile %s: %v", e.hostfile, err)
	}
	agent := strings.Fields(e.agent)
	if len(agent) == 0 {
		return nil, cli.Usagef("--launch-agent is empty; name a program that can be called like ssh")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find our own executable: %w", err)
	}
	const together = 32
	turn := make(chan struct{}, together)
	var checks []doctor.Check
	for _, h := range hosts {
		if specs.IsThisMachine(h.Name) || slices.ContainsFunc(checks, func(c doctor.Check) bool { return c.Name == h.Name }) {
			continue
		}
		checks = append(checks, doctor.Check{Name: h.Name, Find: func(ctx context.Context) []doctor.Finding {
			select {
			case turn <- struct{}{}:
				defer func() { <-turn }()
			case <-ctx.Done():
				return []doctor.Finding{doctor.Unknown(errors.New("there was no time left to check it"), "list fewer hosts in --hostfile")}
			}
			version, err := remotehosts.Ask(ctx, agent, h.Login, self)
			return doctor.CheckOther(cli.VersionLine(), version, err)
		}})
	}
	return checks, nil
}
