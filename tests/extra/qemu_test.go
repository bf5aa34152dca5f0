package extra

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// guestsServer starts a server for qemu machines, and returns its address for them.
func guestsServer(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(harness.StartServer(t, "--headless").Address)
	require.NoError(t, err)
	return net.JoinHostPort("10.0.2.2", port)
}

// emulate emulates a machine with qemu until it is powered off.
func emulate(t *testing.T, dir, architecture string, args ...string) *harness.Process {
	t.Helper()
	vm := harness.Start(t, dir, harness.Env(dir), slices.Concat([]string{
		"qemu-system-" + architecture, "-accel", "tcg,thread=multi", "-smp", "2", "-m", "2G", "-display", "none", "-no-reboot", "-nic", "user,model=virtio-net-pci",
	}, args)...)
	require.True(t, vm.EndsWithin(10*time.Minute), "it is powered off in the end") // emulated CPUs are slow
	return vm
}

// An arm64 machine executes runs. It is a qemu virtual machine, since qemu's emulation of single
// programs lacks subreapers. The server runs outside because emulated CPUs are slow.
func TestOnARM64(t *testing.T) {
	t.Parallel()
	root := os.Getenv("CLUSTERRUN_ARM64_ROOT")
	if root == "" {
		t.Skip("CLUSTERRUN_ARM64_ROOT does not name the files of a Debian for arm64, which .ci/arm64-image makes")
	}
	server := guestsServer(t)

	dir := t.TempDir()
	files, image, console := filepath.Join(dir, "files"), filepath.Join(dir, "image"), filepath.Join(dir, "console")
	script := exec.Command("sh", "-euc", `
mkdir -p "$files/bin" "$files/usr/bin" "$files/modules" "$files/proc" "$files/sys" "$files/dev" "$files/root" "$files/tmp"
cp "$root/bin/busybox" "$files/bin"
cp tests/extra/testdata/arm64/init "$files"
echo "$server" > "$files/server"
for module in failover net_failover virtio virtio_ring virtio_pci virtio_pci_legacy_dev virtio_pci_modern_dev virtio_net; do
  find "$root/lib/modules" -name "$module.ko" -exec cp {} "$files/modules" \;
done
GOARCH=arm64 CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$files/usr/bin/" ./starter/clusterrun ./starter/clusterrun-supervisor
cd "$files"
find . | cpio --quiet -o -H newc > "$image"`)
	script.Dir = harness.Root()
	script.Env = append(os.Environ(), "root="+root, "server="+server, "files="+files, "image="+image)
	out, err := script.CombinedOutput()
	require.NoError(t, err, string(out))
	kernels := must.Get(filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*")))(t)
	require.Len(t, kernels, 1)

	vm := emulate(t, dir, "aarch64", "-M", "virt", "-cpu", "cortex-a72", "-serial", "file:"+console, "-kernel", kernels[0], "-initrd", image,
		"-append", "console=ttyAMA0 quiet panic=-1")
	said := must.Get(os.ReadFile(console))(t)
	t.Logf("%s", said)
	require.Zero(t, vm.ExitCode(), vm.Stderr())
	for _, line := range []string{
		"rank 0 of 2 on aarch64", "rank 1 of 2 on aarch64", "run=0", "after 2 restarts", "restart=0",
		"Root cause: worker-0 on node (rank 0, pid ", "failure=3", "barrier=0",
	} {
		assert.Contains(t, string(said), line)
	}
}

// A machine with systemd as process 1 runs host workers and a controller using the unit printed
// by worker unit, with delegated version 2 cgroups. It is a qemu virtual machine, with its server
// outside.
func TestUnderSystemd(t *testing.T) {
	t.Parallel()
	root := os.Getenv("CLUSTERRUN_SYSTEMD_ROOT")
	if root == "" {
		t.Skip("CLUSTERRUN_SYSTEMD_ROOT does not name the files of a Debian, which .ci/systemd-image makes")
	}
	server := guestsServer(t)

	dir := t.TempDir()
	disk, said, console := filepath.Join(dir, "disk"), filepath.Join(dir, "said"), filepath.Join(dir, "console")
	files := filepath.Join(dir, "files")
	do := func(args ...string) {
		t.Helper()
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		require.NoError(t, err, "%s: %s", args, out)
	}
	do("cp", "-a", root, files)
	do("cp", harness.Clusterrun(t), harness.Supervisor(t), filepath.Join(harness.Root(), "tests/extra/testdata/systemd/scenario"), filepath.Join(files, "usr/bin"))
	for name, text := range map[string]string{
		"etc/systemd/network/all.network": "[Match]\nName=e*\n[Network]\nDHCP=yes\n",
		"etc/systemd/system/scenario.service": "[Service]\nType=idle\nExecStart=/usr/bin/scenario " + server +
			"\n[Install]\nWantedBy=multi-user.target\n",
		"etc/hostname": "node\n",
		"etc/hosts":    "127.0.0.1 localhost node\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(files, name), []byte(text), 0o644))
	}
	do("chroot", files, "systemctl", "enable", "scenario.service", "systemd-networkd.service")
	do("truncate", "-s", "2G", disk)
	do("mke2fs", "-q", "-t", "ext4", "-d", files, disk)
	require.NoError(t, os.RemoveAll(files))
	newest := func(pattern string) string {
		found := must.Get(filepath.Glob(filepath.Join(root, "boot", pattern)))(t)
		require.NotEmpty(t, found)
		return found[len(found)-1]
	}
	vm := emulate(t, dir, "x86_64", "-M", "q35", "-cpu", "max", "-serial", "file:"+console, "-serial", "file:"+said,
		"-kernel", newest("vmlinuz-*"), "-initrd", newest("initrd.img-*"), "-append", "root=/dev/vda rw console=ttyS0",
		"-drive", "file="+disk+",if=virtio,format=raw")
	code := vm.ExitCode()
	text := must.Get(os.ReadFile(said))(t)
	is := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		is[name] = strings.TrimSpace(value)
	}
	all, _ := os.ReadFile(console)
	t.Logf("%s\n%s", text, all)
	require.Zero(t, code, vm.Stderr())
	require.Equal(t, "yes", is["done"])

	assert.Equal(t, "cgroup2fs", is["cgroups"])
	assert.Equal(t, "active enabled", is["installed"])
	assert.Contains(t, is["eater"], "reached its memory limit")
	assert.Equal(t, "0 the same", is["reload"], "the tasks and the host worker are the same processes")
	assert.Equal(t, "active", is["restart"], "without a task of before")
	assert.Contains(t, is["restart_report"], "the host worker on node was stopped together with its tasks")
	assert.Equal(t, "active", is["killed"], "without a task of before")
	assert.Contains(t, is["killed_report"], "run killed failed")
	assert.Equal(t, "active", is["controller"])
	assert.Contains(t, is["apart"], "run apart succeeded")
	for _, task := range []string{"worker-0", "worker-1"} {
		assert.Contains(t, is["apart"], fmt.Sprintf("[%s]: NoNewPrivs:\t0", task), "tasks inherit no hardening")
	}
}
