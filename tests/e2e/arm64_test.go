package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// A machine for arm64 executes runs. It is a virtual machine of qemu, since qemu's emulation of
// single programs has no subreapers. The server runs outside: emulated processors are slow.
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
cp tests/e2e/testdata/arm64/init "$files"
echo "$server" > "$files/server"
for module in failover net_failover virtio virtio_ring virtio_pci virtio_pci_legacy_dev virtio_pci_modern_dev virtio_net; do
  find "$root/lib/modules" -name "$module.ko" -exec cp {} "$files/modules" \;
done
GOARCH=arm64 CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$files/usr/bin/clusterrun" ./starter/clusterrun
cd "$files"
find . | cpio --quiet -o -H newc > "$image"`)
	script.Dir = harness.Root()
	script.Env = append(os.Environ(), "root="+root, "server="+server, "files="+files, "image="+image)
	out, err := script.CombinedOutput()
	require.NoError(t, err, string(out))
	kernels, err := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
	require.NoError(t, err)
	require.Len(t, kernels, 1)

	vm := emulate(t, dir, "aarch64", "-M", "virt", "-cpu", "cortex-a72", "-serial", "file:"+console, "-kernel", kernels[0], "-initrd", image,
		"-append", "console=ttyAMA0 quiet panic=-1")
	said, err := os.ReadFile(console)
	require.NoError(t, err)
	t.Logf("%s", said)
	require.Zero(t, vm.ExitCode(), vm.Stderr())
	for _, line := range []string{
		"rank 0 of 2 on aarch64", "rank 1 of 2 on aarch64", "run=0", "after 2 restarts", "restart=0",
		"Root cause: worker-0 on node (rank 0, pid ", "failure=3", "barrier=0",
	} {
		assert.Contains(t, string(said), line)
	}
}
