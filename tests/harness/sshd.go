package harness

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// SSHHost is a machine with sshd: a network namespace with a host name and a clusterrun state
// directory.
type SSHHost struct {
	Name, Address string
	State         string // clusterrun's state directory there
	sshd          *Process
	netns, wire   string
}

// SSHHosts are such machines on one network, reachable from this machine only through ssh.
type SSHHosts struct {
	t       testing.TB
	Dir     string
	Hosts   []*SSHHost
	Address string // this machine's, on their network
	// Agent is an ssh command line with their names and keys, without the user's configuration.
	Agent string
}

// sshNetworks counts this process's networks.
var sshNetworks atomic.Int32

// StartSSHHosts starts n hosts, called a, b, c and so on. by is a command that starts sshd, if
// any. It skips the test if the machine does not support that.
func StartSSHHosts(t testing.TB, n int, by ...string) *SSHHosts {
	t.Helper()
	const sshd = "/usr/sbin/sshd"
	for _, program := range []string{sshd, "ssh", "ssh-keygen", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("only root makes network namespaces")
	}
	s := &SSHHosts{t: t, Dir: t.TempDir()}
	s.Agent = "ssh -F " + s.path("ssh_config")
	number := int(sshNetworks.Add(1))
	bridge := fmt.Sprintf("cr%d%c", os.Getpid(), 'a'+number%26)
	subnet := freeSubnet(t, number)
	s.Address = subnet + ".1"
	if out, err := exec.Command("ip", "link", "add", bridge, "type", "bridge").CombinedOutput(); err != nil {
		t.Skipf("no bridge can be made here: %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", bridge).Run() })
	s.run("ip", "addr", "add", s.Address+"/24", "dev", bridge)
	s.run("ip", "link", "set", bridge, "up")
	for _, key := range []string{"id", "hostkey"} {
		s.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.path(key))
	}
	config := fmt.Sprintf("Host *\n User root\n IdentityFile %s\n IdentitiesOnly yes\n UserKnownHostsFile %s\n GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking yes\n ControlPath none\n",
		s.path("id"), s.path("known_hosts"))
	known, names := "", "127.0.0.1 localhost\n"
	for i := range n {
		h := &SSHHost{Name: string(rune('a' + i)), Address: fmt.Sprintf("%s.%d", subnet, i+2)}
		s.Hosts = append(s.Hosts, h)
		names += h.Address + " " + h.Name + "\n"
	}
	s.Write("etc-hosts", names)
	for i, h := range s.Hosts {
		s.start(h, bridge, i, by)
		config = fmt.Sprintf("Host %s\n HostName %s\n", h.Name, h.Address) + config
		known += h.Address + " " + s.read("hostkey.pub")
	}
	s.Write("ssh_config", config)
	s.Write("known_hosts", known)
	for _, h := range s.Hosts {
		Eventually(t, "sshd of "+h.Name, func() bool {
			require.False(t, h.sshd.Exited(), "sshd has ended: %s", h.sshd.Stderr())
			c, err := net.DialTimeout("tcp", h.Address+":22", time.Second)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
	return s
}

func (s *SSHHosts) start(h *SSHHost, bridge string, i int, by []string) {
	s.t.Helper()
	h.netns = fmt.Sprintf("%s%s", bridge, h.Name)
	theirs := fmt.Sprintf("%sx%d", bridge, i)
	h.wire = fmt.Sprintf("%sw%d", bridge, i)
	s.run("ip", "netns", "add", h.netns)
	s.t.Cleanup(func() {
		// Processes of a cut-off host are still running.
		out, _ := exec.Command("ip", "netns", "pids", h.netns).Output()
		for _, text := range strings.Fields(string(out)) {
			if pid, err := strconv.Atoi(text); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		_ = exec.Command("ip", "netns", "del", h.netns).Run()
	})
	s.run("ip", "link", "add", h.wire, "type", "veth", "peer", "name", theirs, "netns", h.netns)
	s.run("ip", "link", "set", h.wire, "master", bridge, "up")
	s.run("ip", "-n", h.netns, "addr", "add", h.Address+"/24", "dev", theirs)
	s.run("ip", "-n", h.netns, "link", "set", theirs, "up")
	s.run("ip", "-n", h.netns, "link", "set", "lo", "up")
	h.State = s.path("state-" + h.Name)
	require.NoError(s.t, os.MkdirAll("/run/sshd", 0o755)) // sshd requires it
	config := s.Write("sshd_config-"+h.Name, strings.Join([]string{
		"ListenAddress " + h.Address, "HostKey " + s.path("hostkey"), "AuthorizedKeysFile " + s.path("id.pub"),
		"PidFile none", "UsePAM no", "StrictModes no", "PermitRootLogin yes", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"MaxStartups 100", "AllowTcpForwarding no", "AllowStreamLocalForwarding no",
		// HOME is set so that the user's shell files are not read.
		fmt.Sprintf("SetEnv HOME=%s PATH=%s CLUSTERRUN_STATE_DIR=%s", s.Dir, os.Getenv("PATH"), h.State),
	}, "\n")+"\n")
	argv := append([]string{"nsenter", "--net=/run/netns/" + h.netns}, by...)
	argv = append(argv, "unshare", "--uts", "--mount", "sh", "-c", `hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"`, h.Name, s.path("etc-hosts"))
	h.sshd = Start(s.t, "/", Env("/root"), append(argv, "/usr/sbin/sshd", "-D", "-e", "-f", config)...)
}

// LoggedIn returns the command line for a program on a host, as a user logged in to it runs it.
func (s *SSHHosts) LoggedIn(h *SSHHost, argv ...string) []string {
	return append([]string{
		"nsenter", "--net=/run/netns/" + h.netns, "unshare", "--uts", "--mount",
		"sh", "-c", `hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"`, h.Name, filepath.Join(s.Dir, "etc-hosts"),
		"env", "CLUSTERRUN_STATE_DIR=" + h.State, "OMP_NUM_THREADS=1", "CLUSTERRUN_TOKEN=a secret that nobody guesses",
	}, argv...)
}

// Cut disconnects the host from the network.
func (s *SSHHosts) Cut(h *SSHHost) {
	s.t.Helper()
	s.run("ip", "link", "set", h.wire, "down")
}

// Processes returns the processes in the host's network namespace, without its sshd.
func (s *SSHHosts) Processes(h *SSHHost) (list []string) {
	s.t.Helper()
	out, err := exec.Command("ip", "netns", "pids", h.netns).Output()
	require.NoError(s.t, err)
	for _, pid := range strings.Fields(string(out)) {
		b, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		line := strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
		if line != "" && !strings.Contains(line, "sshd") {
			list = append(list, pid+" "+line)
		}
	}
	return list
}

// Write writes a file for the machines, and returns its path.
func (s *SSHHosts) Write(name, text string) string {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(s.path(name), []byte(text), 0o700))
	return s.path(name)
}

func (s *SSHHosts) path(name string) string { return filepath.Join(s.Dir, name) }

func (s *SSHHosts) read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.path(name))
	require.NoError(s.t, err)
	return string(b)
}

func (s *SSHHosts) run(argv ...string) {
	s.t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	require.NoError(s.t, err, "%s: %s", strings.Join(argv, " "), out)
}

// freeSubnet returns the first three numbers of a network that this machine is not on.
func freeSubnet(t testing.TB, number int) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for i := range 250 {
		// Another test in this process may be about to take the previous number.
		subnet := fmt.Sprintf("10.213.%d", (os.Getpid()+11*number+i)%250)
		used := false
		for _, a := range addresses {
			used = used || strings.HasPrefix(a.String(), subnet+".")
		}
		if !used {
			return subnet
		}
	}
	t.Skip("every network is in use")
	return ""
}
