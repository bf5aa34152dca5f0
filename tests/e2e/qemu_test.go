package e2e

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// guestsServer starts a server for machines of qemu, and returns the address by which they reach it.
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
	require.True(t, vm.EndsWithin(10*time.Minute), "it is powered off in the end") // emulated processors are slow
	return vm
}
