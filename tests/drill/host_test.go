package drill

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// slots is a host's number of slots.
const slots = 16

// host is a host worker with its own path to the server, network and disks.
type host struct {
	name   string
	dir    string
	link   *Link  // to the server
	peers  *Link  // from all remaining hosts
	wire   string // the outer end of its network; empty without namespaces
	netns  string
	argv   []string
	env    []string
	worker *harness.Process
	fills  map[Kind]string // files that fill its disks
}

// newHost creates a host's parts, and starts its worker.
func newHost(t *testing.T, i int, server string, limits Limits, dir string) *host {
	h := &host{name: HostName(i), dir: dir, fills: map[Kind]string{}}
	outside, service := "127.0.0.1", harness.FreeAddress(t)
	if limits.Namespaces {
		outside, service = h.isolate(t, i)
	}
	h.link, h.peers = newLink(t, outside, server), newLink(t, outside, service)
	for _, kind := range []Kind{FillState, FillLogs} {
		require.NoError(t, os.MkdirAll(h.disk(kind), 0o700))
		if limits.Disks {
			mount(t, h.disk(kind))
		}
		h.fills[kind] = filepath.Join(h.disk(kind), "fill")
	}
	h.argv = []string{
		harness.Clusterrun(t), "worker", "--address", h.link.Address(), "--host-name", h.name, "--slots", fmt.Sprint(slots),
		"--state-dir", filepath.Join(h.disk(FillState), "clusterrun"), "--log-dir", h.disk(FillLogs),
		"--gpus", fmt.Sprint(gpus), "--check", "disk", "--check", h.check(), "--check-every", checkEvery.String(),
		"--listen", service, "--advertise", h.peers.Address(), // tasks do not talk to each other here
	}
	if h.netns != "" {
		h.argv = append([]string{"nsenter", "--net=/run/netns/" + h.netns}, h.argv...)
	}
	home := filepath.Join(dir, "home")
	require.NoError(t, os.MkdirAll(home, 0o700))
	h.env = harness.Env(home, "CUDA_VISIBLE_DEVICES=0,1")
	h.start(t)
	harness.Eventually(t, h.name+" polls", func() bool { return strings.Contains(h.worker.Stderr(), "ready") })
	return h
}

func newLink(t *testing.T, outside, target string) *Link {
	l := must.Get(NewLink(outside+":0", target))(t)
	t.Cleanup(l.Close)
	return l
}

// disk returns the disk directory that such a fault fills.
func (h *host) disk(kind Kind) string {
	return filepath.Join(h.dir, strings.TrimPrefix(string(kind), "fill "))
}

func (h *host) start(t *testing.T) {
	h.worker = harness.Start(t, h.dir, h.env, h.argv...)
}

// side returns the pid of the worker's Temporal-facing process, or 0.
func (h *host) side() int {
	for _, pid := range harness.Children(h.worker.Process.Pid) {
		if strings.Contains(harness.Cmdline(pid), " side") {
			return pid
		}
	}
	return 0
}

// holdsPort reports whether a port is leased on the host. If so, the host's supervisor holds an
// abstract socket with that name.
func (h *host) holdsPort(port string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", h.worker.Process.Pid))
	return err == nil && port != "" && strings.Contains(string(b), "@clusterrun-port-"+port+"\n")
}

// isolate gives the host a network namespace that is linked to the outside. It returns this
// machine's address on the link, and the address for the host's output service and its peers.
func (h *host) isolate(t *testing.T, i int) (outside, service string) {
	h.netns = fmt.Sprintf("drill%d%c", os.Getpid(), 'a'+i)
	h.wire = fmt.Sprintf("dr%d%co", os.Getpid(), 'a'+i)
	theirs := fmt.Sprintf("dr%d%ci", os.Getpid(), 'a'+i)
	subnet := fmt.Sprintf("10.%d.%d", 64+os.Getpid()%128, i+1)
	ip(t, "netns", "add", h.netns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", h.netns).Run() })
	ip(t, "link", "add", h.wire, "type", "veth", "peer", "name", theirs, "netns", h.netns)
	ip(t, "addr", "add", subnet+".1/30", "dev", h.wire)
	ip(t, "link", "set", h.wire, "up")
	ip(t, "-n", h.netns, "addr", "add", subnet+".2/30", "dev", theirs)
	ip(t, "-n", h.netns, "link", "set", theirs, "up")
	ip(t, "-n", h.netns, "link", "set", "lo", "up")
	ip(t, "-n", h.netns, "route", "add", "default", "via", subnet+".1") // other hosts are reached through their links
	return subnet + ".1", subnet + ".2:7000"
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", strings.Join(args, " "), out)
}

// hasNamespaces reports whether this test can create network namespaces.
func hasNamespaces() bool {
	name := fmt.Sprintf("drill%dx", os.Getpid())
	if exec.Command("ip", "netns", "add", name).Run() != nil {
		return false
	}
	defer func() { _ = exec.Command("ip", "netns", "del", name).Run() }()
	return exec.Command("nsenter", "--net=/run/netns/"+name, "true").Run() == nil
}

// diskSize is enough for the journals and logs of all rounds.
const diskSize = 256 << 20

// mount mounts a disk for the host.
func mount(t *testing.T, dir string) {
	require.NoError(t, syscall.Mount("drill", dir, "tmpfs", 0, fmt.Sprintf("size=%d", diskSize)))
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// hasDisks reports whether this test can mount disks.
func hasDisks(t *testing.T) bool {
	dir := t.TempDir()
	if syscall.Mount("drill", dir, "tmpfs", 0, "size=4096") != nil {
		return false
	}
	return syscall.Unmount(dir, 0) == nil
}

// fill fills a disk.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1<<20)
	for size := len(b); size > 0; {
		if _, err := f.Write(b[:size]); err != nil {
			size /= 2 // including the last bytes
		}
	}
	return nil
}
