package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/task"
	"github.com/clusterrun/clusterrun/activities/task/pmi"
)

// taskMPICommand starts a program that finds on a descriptor what an MPI program asks its
// launcher. This process answers there, so that the host worker may be away or started again
// meanwhile, and programs without MPI pay for nothing.
func (a *app) taskMPICommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mpi [flags] -- PROGRAM [ARGUMENT ...]",
		Short: "Start a program of MPICH's family as a rank of the run",
		Long: `Starts PROGRAM as one rank of an MPI world, that of all tasks of the run, in the order
of their ranks, and ends as it ends. It is for programs that are linked with MPICH or
with what is made of it (Intel MPI, MVAPICH), and for scripts that start one. Processes
with the env profile "mpi" are started by it without being told.

Exit codes:
  2    mistake in the command line, or not called within a task
  125  PROGRAM could not be started as a rank
  126  PROGRAM cannot be executed
  127  there is no PROGRAM
  other codes are PROGRAM's`,
		Example: "  clusterrun task mpi -- ./solver input.dat\n  clusterrun run -n 4 -- bash -c 'module load solver; exec clusterrun task mpi -- solver'",
		Args:    someArgs(1, "PROGRAM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := currentTask()
			if err != nil {
				return err
			}
			w, err := mpiWorld()
			if err != nil {
				return err
			}
			return runRank(cmd.Context(), t, w, args)
		},
	}
}

// mpiRank is what this task is told of its place.
type mpiRank struct {
	pmi.World
	localRank, localSize int
	// alone reports whether the task was started again without the others.
	alone bool
}

func mpiWorld() (w mpiRank, err error) {
	var restarts, generation int
	for name, n := range map[string]*int{
		"RANK": &w.Rank, "WORLD_SIZE": &w.Size, "LOCAL_RANK": &w.localRank, "LOCAL_WORLD_SIZE": &w.localSize,
		"RESTART_COUNT": &restarts, "GENERATION": &generation,
	} {
		if *n, err = strconv.Atoi(os.Getenv("CLUSTERRUN_" + name)); err != nil {
			return w, usagef("CLUSTERRUN_%s is %q, and clusterrun sets it to a number: leave it as it is", name, os.Getenv("CLUSTERRUN_"+name))
		}
	}
	w.alone = restarts > generation
	return w, nil
}

// pmiFD is the descriptor on which the program asks.
const pmiFD = 3

// runRank runs the program to its end.
func runRank(ctx context.Context, t *task.Task, w mpiRank, args []string) error {
	if w.alone {
		return fmt.Errorf("rank %d was started again alone, and no other rank of its MPI world waits for it; start all again, as restart_scope: group does", w.Rank)
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a socket for the program: %w", err)
	}
	// Close ends a read of what does not block: something that the program has left behind may
	// have the other end.
	if err := unix.SetNonblock(ends[0], true); err != nil {
		return fmt.Errorf("make a socket for the program: %w", err)
	}
	here, there := os.NewFile(uintptr(ends[0]), "pmi"), os.NewFile(uintptr(ends[1]), "pmi")
	defer here.Close()
	// Signals are for the program: it is in our group, and gets them itself.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals)
	cmd := exec.Command(args[0], args[1:]...)
	if errors.Is(cmd.Err, exec.ErrDot) {
		cmd.Err = nil
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{there}
	cmd.Env = mpiEnviron(os.Environ(), w)
	if err := cmd.Start(); err != nil {
		return cannotExecute(args[0], err)
	}
	_ = there.Close()
	go passOn(signals, cmd.Process)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- servePMI(ctx, t, w, here, cmd.Process) }()
	_ = cmd.Wait()
	cancel()
	_ = here.Close()
	var abort *pmi.AbortError
	if errors.As(<-served, &abort) {
		return &exitError{code: cmp.Or(abort.Code&0xff, 1)}
	}
	return endAs(cmd.ProcessState)
}

// lateSignals is how long after its start a program may be given signals that it had already.
const lateSignals = 100 * time.Millisecond

// passOn gives a program the signals that came before it was there, also those that the Go
// runtime has not handed on yet.
func passOn(signals <-chan os.Signal, p *os.Process) {
	over := time.After(lateSignals)
	for {
		select {
		case s := <-signals:
			if s != unix.SIGCHLD && s != unix.SIGURG {
				_ = p.Signal(s)
			}
		case <-over:
			return
		}
	}
}

// endAs ends this process as the program has ended.
func endAs(state *os.ProcessState) error {
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		dieOf(status.Signal())
	}
	if code := status.ExitStatus(); code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// dieOf ends this process by a signal. Go's runtime takes back what it does on some of them
// itself only in this way.
func dieOf(s syscall.Signal) {
	var byDefault [4]uint64 // struct sigaction, with SIG_DFL

	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0) //nolint:gosec // the call has no other form
	_ = unix.Kill(os.Getpid(), s)
	select {}
}

// mpiEnviron returns the environment of a rank. What another launcher of MPI has told this
// process of its place is not for the program.
func mpiEnviron(base []string, w mpiRank) []string {
	env := slices.DeleteFunc(slices.Clone(base), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "PMI_") || strings.HasPrefix(name, "PMIX_") || strings.HasPrefix(name, "MPI_LOCAL")
	})
	for _, v := range []struct {
		name  string
		value int
	}{
		{"PMI_FD", pmiFD}, {"PMI_RANK", w.Rank}, {"PMI_SIZE", w.Size},
		{"MPI_LOCALRANKID", w.localRank}, {"MPI_LOCALNRANKS", w.localSize},
	} {
		env = append(env, v.name+"="+strconv.Itoa(v.value))
	}
	return env
}

// What shells exit with for a program that is not there, or cannot be executed.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

func cannotExecute(program string, err error) error {
	code := exitNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		code = exitNotFound
	}
	var in *exec.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	return &exitError{code: code, cause: fmt.Errorf("%s: %w", program, err)}
}

// mpiBarrier is the name of the barrier by which ranks meet.
const mpiBarrier = "MPI"

// reportPatience is how long the host may take to note why a rank fails.
const reportPatience = 5 * time.Second

// servePMI answers the program until it has closed the connection. One that does not get
// its answer fails by itself; one that aborts waits to be killed.
func servePMI(ctx context.Context, t *task.Task, w mpiRank, conn *os.File, program *os.Process) error {
	defer conn.Close()
	members, err := t.Cluster(ctx)
	if err != nil {
		return err
	}
	w.World = placed(w.World, members)
	err = pmi.Serve(ctx, conn, pmi.NewSession(w.World), func(ctx context.Context, brings string) ([]string, error) {
		options := []task.Option{task.Value(brings)}
		if w.localSize == w.Size {
			options = append(options, task.Local())
		}
		r, err := t.Barrier(ctx, mpiBarrier, options...)
		return r.Values, err
	})
	if err == nil || ctx.Err() != nil {
		return nil
	}
	report := task.Report{Kind: "MPI", Message: err.Error()}
	var abort *pmi.AbortError
	if errors.As(err, &abort) {
		report.Kind = "MPI_Abort"
		defer func() { _ = program.Kill() }()
	} else {
		fmt.Fprintf(os.Stderr, "clusterrun: MPI: %v\n", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	_ = t.Report(ctx, report)
	return err
}

// placed adds what the cluster says of all.
func placed(w pmi.World, members []task.Member) pmi.World {
	hosts, types := make([]string, len(members)), []string{}
	for i, m := range members {
		hosts[i] = m.Host
		if !slices.Contains(types, m.Type) {
			types = append(types, m.Type)
		}
		if m.Rank == w.Rank {
			w.App = slices.Index(types, m.Type)
		}
	}
	w.Mapping = pmi.Mapping(hosts)
	return w
}
