package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/activities/process/supervise"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/diskspace"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/doctor"
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
	there, why := supervisor.Prospect()
	return doctor.CheckCgroups(h, there, why)
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
