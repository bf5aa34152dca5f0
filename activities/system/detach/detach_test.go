package detach

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/tests/must"
)

// The tests run this binary again: as a command called in specific surroundings, and as the program
// that it starts in the background.
const roleVar = "CLUSTERRUN_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "command":
		command()
	case "background":
		raiseLimits(0)
		if err := json.NewEncoder(os.Stdout).Encode(look()); err != nil {
			panic(err)
		}
	default:
		os.Exit(m.Run())
	}
}

func command() {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVar+"=background")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := Start(cmd); err != nil {
		panic(err)
	}
	if err := cmd.Wait(); err != nil {
		panic(err)
	}
}

// surroundings are the attributes that a process inherits from its parent.
type surroundings struct {
	Umask, Nice, CPUs int
	Files             unix.Rlimit
	CPUTime           unix.Rlimit
	Leader            bool // of its session
	Inherited         bool // descriptor 9
	OOMScore          string
}

func look() surroundings {
	var s surroundings
	s.Umask = unix.Umask(0)
	unix.Umask(s.Umask)
	nice, _ := unix.Getpriority(unix.PRIO_PROCESS, 0)
	s.Nice = 20 - nice
	cpus := unix.NewCPUSet(mostCPUs)
	_ = unix.SchedGetaffinityDynamic(0, cpus)
	s.CPUs = cpus.Count()
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &s.Files)
	_ = unix.Getrlimit(unix.RLIMIT_CPU, &s.CPUTime)
	session, _ := unix.Getsid(0)
	s.Leader = session == os.Getpid()
	_, err := unix.FcntlInt(9, unix.F_GETFD, 0)
	s.Inherited = err == nil
	score, _ := os.ReadFile("/proc/self/oom_score_adj")
	s.OOMScore = string(score)
	return s
}

// A shell's settings do not reach processes that its commands start in the background.
func TestABackgroundProcessBeginsLikeAService(t *testing.T) {
	for _, tool := range []string{"sh", "nice", "taskset"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	self := must.Get(os.Executable())(t)
	// The niceness is last: lowering it again may be refused.
	shell := `umask 077; ulimit -S -n 99; ulimit -S -t 5000; exec 9</dev/null; echo 500 >/proc/self/oom_score_adj; exec taskset -c "$2" nice -n "$3" "$1"`
	run := func(nice int) surroundings {
		cmd := exec.Command("sh", "-c", shell, "sh", self, strconv.Itoa(firstCPU(t)), strconv.Itoa(nice))
		cmd.Env = append(os.Environ(), roleVar+"=command")
		cmd.Stderr = os.Stderr
		out := must.Get(cmd.Output())(t)
		s := must.JSON[surroundings](t, out)
		return s
	}
	here := look()
	s := run(0)
	assert.Equal(t, 0o022, s.Umask)
	assert.GreaterOrEqual(t, s.CPUs, here.CPUs)
	assert.Equal(t, s.Files.Max, s.Files.Cur, "the hard limit")
	assert.GreaterOrEqual(t, s.CPUTime.Cur, here.CPUTime.Cur)
	assert.True(t, s.Leader)
	assert.False(t, s.Inherited)
	assert.Equal(t, "0\n", s.OOMScore)
	if os.Geteuid() == 0 {
		assert.Zero(t, run(5).Nice)
	} else {
		assert.Equal(t, here.Nice, s.Nice)
	}
}

func firstCPU(t *testing.T) int {
	cpus := unix.NewCPUSet(mostCPUs)
	require.NoError(t, unix.SchedGetaffinityDynamic(0, cpus))
	for n := range mostCPUs {
		if cpus.IsSet(n) {
			return n
		}
	}
	t.Fatal("no processor")
	return 0
}

// A caller's lock is released when the caller exits.
func TestSealKeepsDescriptorsFromPrograms(t *testing.T) {
	pipe := make([]int, 2)
	require.NoError(t, unix.Pipe(pipe)) // not closed on exec, like a shell's descriptors
	require.NoError(t, Seal())
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	require.NoError(t, unix.Close(pipe[1]))
	end := os.NewFile(uintptr(pipe[0]), "pipe")
	defer end.Close()
	require.NoError(t, unix.SetNonblock(pipe[0], true))
	n, err := unix.Read(pipe[0], make([]byte, 1))
	assert.NoError(t, err, "the other end is closed everywhere")
	assert.Zero(t, n)
}

func TestLimitsAreRaisedOnly(t *testing.T) {
	none := uint64(unix.RLIM_INFINITY)
	for name, c := range map[string]struct {
		resource         int
		own, first, want unix.Rlimit
	}{
		"a soft one":            {unix.RLIMIT_CPU, unix.Rlimit{Cur: 60, Max: none}, unix.Rlimit{Cur: none, Max: none}, unix.Rlimit{Cur: none, Max: none}},
		"a hard one":            {unix.RLIMIT_AS, unix.Rlimit{Cur: 60, Max: 60}, unix.Rlimit{Cur: none, Max: none}, unix.Rlimit{Cur: none, Max: none}},
		"the usual stack":       {unix.RLIMIT_STACK, unix.Rlimit{Cur: 8, Max: none}, unix.Rlimit{Cur: 8, Max: none}, unix.Rlimit{Cur: 8, Max: none}},
		"more than process 1":   {unix.RLIMIT_MEMLOCK, unix.Rlimit{Cur: 64, Max: 64}, unix.Rlimit{Cur: 8, Max: 8}, unix.Rlimit{Cur: 64, Max: 64}},
		"files are at the most": {unix.RLIMIT_NOFILE, unix.Rlimit{Cur: 99, Max: 4096}, unix.Rlimit{Cur: 1024, Max: 4096}, unix.Rlimit{Cur: 4096, Max: 4096}},
	} {
		assert.Equal(t, c.want, raised(c.resource, c.own, c.first), name)
	}
}

func TestEnvironIsTheUsersAndNotTheShells(t *testing.T) {
	env := []string{"HOME=/h", "PATH=/bin", "LC_ALL=C", "CLUSTERRUN_STATE_DIR=/s", "PWD=/x", "OMP_NUM_THREADS=1", "SSH_AUTH_SOCK=/a", "LD_PRELOAD=/l", "XDG_RUNTIME_DIR=/r"}
	assert.Equal(t, env[:4], Environ(env))
}
