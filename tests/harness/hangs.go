package harness

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

var (
	//go:embed testdata/hang.py
	hangInPython []byte
	//go:embed testdata/hang.c
	hangInC []byte
)

// NoOne is the guilty rank of a hang without a single guilty rank.
const Nobody = -1

// Hang is a way of hanging.
type Hang struct {
	// Program is "torch", "python" or "mpich".
	Program string
	// Wait names the call where all ranks wait except the guilty one, which does Deed instead.
	Wait, Deed    string
	Ranks, Guilty int
}

func (h Hang) String() string {
	return fmt.Sprintf("%s: rank %d of %d %s, the others are in %s", h.Program, h.Guilty, h.Ranks, h.Deed, h.Wait)
}

// Named reports whether only the guilty rank was named.
func (h Hang) Named(f stacktree.Findings) bool {
	return f.Outliers.Len() == 1 && f.Outliers.Has(h.Guilty)
}

// waits lists the calls where ranks wait, and deeds what the guilty rank does instead.
var (
	waits = map[string][]string{
		"torch": {"all_reduce", "barrier", "broadcast", "all_gather", "reduce", "recv", "send", "async_all_reduce", "all_gather_object", "backward"},
		"mpich": {"barrier", "allreduce", "bcast", "allgather", "recv", "ssend"},
	}
	deeds = map[string][]string{
		"torch": {
			"load_batch_slowly", "takes_a_lock_twice", "waits_for_an_empty_queue", "waits_for_a_queue_of_processes",
			"waits_for_a_process", "waits_for_a_child", "waits_for_a_thread", "waits_for_a_future", "waits_for_a_socket",
			"reads_a_pipe", "locks_a_file", "pauses_in_c", "computes", "runs_another_thread_after_its_error",
			"loads_with_a_stuck_worker", "loads_with_a_stuck_collate", "is_slower",
		},
		"mpich": {
			"sleeps", "locks_twice", "waits_for_a_condition", "waits_for_a_semaphore", "reads_a_pipe", "reads_a_socket",
			"waits_for_a_child", "locks_a_file", "computes",
		},
	}
)

// ThirtyHangs returns 30 hangs. They include all deeds and a few more, each with a wait, a number
// of ranks and a guilty rank drawn from the seed.
func ThirtyHangs(seed uint64) []Hang {
	random := rand.New(rand.NewPCG(seed, 0))
	var all []Hang
	for _, program := range []string{"torch", "mpich"} {
		for i, at := range random.Perm(len(deeds[program])) {
			of := waits[program]
			h := Hang{Program: program, Wait: of[i%len(of)], Deed: deeds[program][at], Ranks: 3 + random.IntN(3)}
			h.Guilty = random.IntN(h.Ranks)
			all = append(all, h)
		}
	}
	return append(all,
		Hang{"torch", "all_reduce", "goes_to_another_collective", 4, random.IntN(4)},
		Hang{"python", "python", "computes", 4, random.IntN(4)},
		Hang{"torch", "recv", "nothing", 3, Nobody},
		Hang{"mpich", "recv", "nothing", 3, Nobody})
}

// HangStage runs hangs.
type HangStage struct {
	t testing.TB
	// start starts clusterrun.
	start  func(args ...string) *Process
	dir    string
	played int
}

// NewHangStage builds the programs. It skips the test if one of them cannot be built here. start
// starts clusterrun with some arguments.
func NewHangStage(t testing.TB, start func(args ...string) *Process, hangs ...Hang) *HangStage {
	t.Helper()
	s := &HangStage{t: t, start: start, dir: t.TempDir()}
	require.NoError(t, os.WriteFile(s.path("hang.py"), hangInPython, 0o600))
	require.NoError(t, os.WriteFile(s.path("hang.c"), hangInC, 0o600))
	needs := map[string]bool{}
	for _, h := range hangs {
		needs[h.Program] = true
	}
	if needs["torch"] && exec.Command(hangPython, "-c", "import torch.distributed").Run() != nil {
		t.Skip("PyTorch is not installed (Debian: python3-torch)")
	}
	if needs["mpich"] {
		if _, err := exec.LookPath("eu-stack"); err != nil {
			t.Skip("there is no eu-stack (Debian: elfutils)")
		}
		if out, err := exec.Command("gcc", "-g", "-w", "-pthread", "-o", s.path("hang"), s.path("hang.c"), "-l:libmpich.so.12").CombinedOutput(); err != nil {
			t.Skipf("no program for MPICH can be made here (Debian: gcc, libmpich12): %s", out)
		}
	}
	return s
}

// hangPython is the interpreter that distributions package torch for.
const hangPython = "/usr/bin/python3"

func (s *HangStage) path(name string) string { return filepath.Join(s.dir, name) }

// Play starts a program and waits until it hangs. It returns the findings of `clusterrun stacks`.
func (s *HangStage) Play(h Hang) stacktree.Findings {
	s.t.Helper()
	s.played++
	id := "hang-" + strconv.Itoa(s.played)
	command := []string{hangPython, s.path("hang.py")}
	if h.Program == "mpich" {
		command = []string{s.path("hang")}
	}
	command = append(command, h.Wait, h.Deed, strconv.Itoa(h.Guilty))
	p := s.start(append([]string{"run", "--id", id, "-n", strconv.Itoa(h.Ranks), "--set", "stop.signal=SIGKILL", "--"}, command...)...)
	defer func() {
		p.Kill(syscall.SIGINT)
		p.ExitCode()
	}()
	Eventually(s.t, h.String()+": all wait", func() bool {
		require.False(s.t, p.Exited(), "%s\n%s", p.Stdout(), p.Stderr())
		return strings.Count(p.Stdout(), "waiting") == h.Ranks
	})
	// A rank prints "waiting" before it waits. It has stopped moving once two captures match.
	var found, before stacktree.Findings
	Eventually(s.t, h.String()+": all stay where they are", func() bool {
		before, found = found, s.capture(id)
		return before.Sentence != "" && before.Sentence == found.Sentence && len(before.Classes) == len(found.Classes)
	})
	return found
}

func (s *HangStage) capture(id string) stacktree.Findings {
	s.t.Helper()
	p := s.start("stacks", "--again", "0", "--json", id)
	require.Zero(s.t, p.ExitCode(), p.Stderr())
	out := must.JSON[struct{ Findings stacktree.Findings }](s.t, p.Stdout())
	return out.Findings
}
