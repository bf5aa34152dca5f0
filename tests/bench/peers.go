package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Peer is a launcher that may be installed.
type Peer struct {
	Name string
	// Debian is the launcher's Debian package, or empty.
	Debian string
	// Find returns the launcher, or nil if it is not installed.
	Find func() *Launcher
}

// peers lists the launchers to compare.
var peers = []Peer{
	{"Open MPI", "openmpi-bin", func() *Launcher { return mpirun("Open MPI", "mpirun.openmpi", openMPI) }},
	{"MPICH", "mpich", func() *Launcher { return mpirun("HYDRA", "mpirun.mpich", mpich) }},
	{"torchrun", "python3-torch", torchrun},
	{"GNU parallel", "parallel", gnuParallel},
	{"supervisord", "supervisor", supervisord},
	{"process-compose", "", processCompose},
}

// mpirun finds an MPI family's mpirun: by its own name, or by the output of --version.
func mpirun(family, name string, of func(path string) *Launcher) *Launcher {
	for _, name := range []string{name, "mpirun", "mpiexec"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if out, err := exec.Command(path, "--version").Output(); err == nil && strings.Contains(string(out), family) {
			return of(path)
		}
	}
	return nil
}

// line is a command line, including the number of copies.
func line(before []string, after ...string) Start {
	return func(_ string, n int, argv []string) ([]string, error) {
		return slices.Concat(before, []string{strconv.Itoa(n)}, after, argv), nil
	}
}

func openMPI(path string) *Launcher {
	start := []string{path, "--allow-run-as-root", "--oversubscribe", "-n"}
	return &Launcher{Launch: line(start), End: line(start), Tee: line(start, "--tag-output")}
}

// mpich does not set End, because it leaves processes running if one fails without having called
// MPI.
func mpich(path string) *Launcher {
	return &Launcher{Launch: line([]string{path, "-n"}), Tee: line([]string{path, "-prepend-rank", "-n"})}
}

// torchrun starts torchrun with its own Python. It may be a script for a different Python than
// the first on PATH.
func torchrun() *Launcher {
	path, err := exec.LookPath("torchrun")
	if err != nil {
		return nil
	}
	pythons := []string{"/usr/bin/python3", "python3"}
	i := slices.IndexFunc(pythons, func(python string) bool {
		return exec.Command(python, "-c", "import torch.distributed.run").Run() == nil
	})
	if i < 0 {
		return nil
	}
	// With Python 3.11, Debian's torch 1.13 accepts only streams 1 and 2, not even its own
	// default of 0.
	start := func(stream, restarts string) Start {
		return func(dir string, n int, argv []string) ([]string, error) {
			argv = slices.Clone(argv)
			for j, arg := range argv {
				argv[j] = strings.ReplaceAll(arg, "$", "$$") // it has macros such as $local_rank
			}
			return slices.Concat([]string{
				pythons[i], path, "--standalone", "--redirects", stream, "--tee", stream, "--log_dir", filepath.Join(dir, "torchrun"),
				"--max_restarts", restarts, "--nproc_per_node", strconv.Itoa(n), "--no_python",
			}, argv), nil
		}
	}
	return &Launcher{Launch: start("2", "0"), End: start("2", "0"), Restart: start("2", "1"), Tee: start("1", "0")}
}

func gnuParallel() *Launcher {
	path, err := exec.LookPath("parallel")
	if err != nil {
		return nil
	}
	if out, err := exec.Command(path, "--version").Output(); err != nil || !strings.HasPrefix(string(out), "GNU parallel") {
		return nil // it is moreutils' parallel
	}
	start := func(flags ...string) Start {
		return func(_ string, n int, argv []string) ([]string, error) {
			all := slices.Concat([]string{path, "--will-cite", "-q", "-N0", "-j", strconv.Itoa(n)}, flags, argv, []string{":::"})
			for i := range n {
				all = append(all, strconv.Itoa(i))
			}
			return all, nil
		}
	}
	return &Launcher{Launch: start(), Restart: start("--retries", "2"), End: start("--halt", "now,fail=1"), Tee: start("--tagstring", "[{#}]", "--line-buffer")}
}

func supervisord() *Launcher {
	path, err := exec.LookPath("supervisord")
	if err != nil {
		return nil
	}
	start := func(restart string) Start {
		return func(dir string, n int, argv []string) ([]string, error) {
			config := filepath.Join(dir, "supervisord.conf")
			text := fmt.Sprintf(`[supervisord]
nodaemon=true
logfile=/dev/null
logfile_maxbytes=0
pidfile=%s/supervisord.pid
minfds=4096

[program:copy]
command=%s
numprocs=%d
process_name=copy%%(process_num)d
startsecs=0
autorestart=%s
stdout_logfile=NONE
stderr_logfile=NONE
`, dir, strings.ReplaceAll(quoted(argv), "%", "%%"), n, restart)
			return []string{path, "-c", config}, os.WriteFile(config, []byte(text), 0o600)
		}
	}
	return &Launcher{Launch: start("false"), Restart: start("unexpected"), Stays: true}
}

func processCompose() *Launcher {
	path, err := exec.LookPath("process-compose")
	if err != nil {
		return nil
	}
	start := func(restart string) Start {
		return func(dir string, n int, argv []string) ([]string, error) {
			config := filepath.Join(dir, "process-compose.yaml")
			text := fmt.Sprintf("version: \"0.5\"\nprocesses:\n  copy:\n    command: %q\n    replicas: %d\n    availability:\n      restart: %q\n      max_restarts: 1\n",
				strings.ReplaceAll(quoted(argv), "$", "$$"), n, restart)
			return []string{
				path, "-f", config, "-t=false", "--no-server", "--log-file", filepath.Join(dir, "process-compose.log"), "up",
			}, os.WriteFile(config, []byte(text), 0o600)
		}
	}
	return &Launcher{Launch: start("no"), Restart: start("on_failure"), End: start("exit_on_failure"), Tee: start("no")}
}

// quoted quotes a command line for a shell.
func quoted(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
	}
	return strings.Join(words, " ")
}
