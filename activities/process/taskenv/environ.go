package taskenv

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/activities/process/stacks"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// ownPrefix starts the names of the variables that only clusterrun sets.
const ownPrefix = "CLUSTERRUN_"

// maxVariable is Linux's limit for one "name=value", including the final zero (MAX_ARG_STRLEN). If
// a variable is longer, exec fails with an error that does not name the variable.
const maxVariable = 128 << 10

// Process holds the inputs for a task process's environment.
type Process struct {
	Cluster *hostapi.Cluster
	// Task is the name of the task, such as "worker-3".
	Task string
	// WorkflowID is the run ID; RunID is Temporal's ID of this execution.
	WorkflowID, RunID string
	// Restart is the number of the task's earlier processes. MaxRestarts is the limit on restarts,
	// or 0 if there is no limit or tasks are not restarted.
	Restart, MaxRestarts int
	Generation           int
	// ResultFile, ErrorFile and LogDir are paths on the host. If a path is empty, its variable is
	// not set.
	ResultFile, ErrorFile, LogDir string
	// TraceFile is the path prefix of files that torch's Flight Recorder writes. If empty, no
	// variable is set.
	TraceFile string
	// Socket is the path of the host's socket.
	Socket string
	// PythonHook is the first directory in PYTHONPATH, or empty for none.
	PythonHook string
	// Devices are variables that select the visible GPUs, such as CUDA_VISIBLE_DEVICES. If empty,
	// the process sees the host worker's GPUs.
	Devices map[string]string
	// CPUs is the number of CPUs that the process is bound to, or 0 if unbound.
	CPUs int
	// Unset lists variables of the host worker that the process does not get. A name that ends with
	// a * matches by prefix.
	Unset []string
	// Dir is the directory that the process starts in. It sets PWD unless empty.
	Dir string
	// Env holds the task's variables from the spec.
	Env map[string]string
}

// Environ returns a process's environment, sorted and with each name once. base is the host
// worker's environment.
func Environ(base []string, p Process) ([]string, error) {
	m, err := p.Cluster.Member(p.Task)
	if err != nil {
		return nil, err
	}
	env := fromList(Clean(base))
	if p.Dir != "" {
		env["PWD"] = p.Dir
		delete(env, "OLDPWD") // the process does not have a previous directory
	}
	maps.DeleteFunc(env, func(name, _ string) bool { return p.unsets(name) })
	forgetTraces(env, fromList(base))
	setDefault(env, "PYTHONUNBUFFERED", "1")
	if p.PythonHook != "" {
		setDefault(env, "PYTHONFAULTHANDLER", "1")
	}
	resources(env, p)
	for _, profile := range p.Cluster.Profiles {
		switch profile {
		case spec.EnvTensorFlow:
			err = tensorFlow(env, p, m)
		case spec.EnvTorch:
			torch(env, p, m)
		case spec.EnvJAX:
			jax(env, p, m)
		case spec.EnvMPI: // `clusterrun task mpi` sets these variables
		default:
			err = fmt.Errorf("env_profiles: unknown profile %q", profile)
		}
		if err != nil {
			return nil, err
		}
	}
	for name, value := range p.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("env: %q cannot be a variable: the name must not be empty or contain =, and neither name nor value may contain a zero byte", name)
		}
		if !strings.HasPrefix(name, ownPrefix) || spec.IsTrialVariable(name) {
			env[name] = value
		}
	}
	own(env, p, m)
	return toList(env)
}

func (p Process) unsets(name string) bool {
	return slices.ContainsFunc(p.Unset, func(pattern string) bool {
		start, some := strings.CutSuffix(pattern, "*")
		return name == pattern || some && strings.HasPrefix(name, start)
	})
}

// own sets the variables that do not depend on the profiles.
func own(env map[string]string, p Process, m hostapi.Member) {
	for name, value := range map[string]string{
		"RUN_ID":           p.WorkflowID,
		"TEMPORAL_RUN_ID":  p.RunID,
		"TASK":             p.Task,
		"TASK_TYPE":        m.Type,
		"TASK_INDEX":       strconv.Itoa(m.Index),
		"RANK":             strconv.Itoa(m.Rank),
		"WORLD_SIZE":       strconv.Itoa(len(p.Cluster.Members)),
		"LOCAL_RANK":       strconv.Itoa(m.LocalRank),
		"LOCAL_WORLD_SIZE": strconv.Itoa(m.LocalWorldSize),
		"RESTART_COUNT":    strconv.Itoa(p.Restart),
		"GENERATION":       strconv.Itoa(p.Generation),
		"HOST":             m.Host,
		"ADDRESS":          m.Address,
		"RESULT_FILE":      p.ResultFile,
		"ERROR_FILE":       p.ErrorFile,
		"LOG_DIR":          p.LogDir,
		"SOCKET":           p.Socket,
	} {
		if value != "" {
			env[ownPrefix+name] = value
		}
	}
	env[ownPrefix+"STACK_SIGNAL"] = strconv.Itoa(stacks.Signal)
	if p.LogDir != "" {
		env[ownPrefix+"STACK_FILE"] = stacks.AnswerBase(p.LogDir)
	}
	pythonHook(env, p.PythonHook)
}

func setDefault(env map[string]string, name, value string) {
	if _, ok := env[name]; !ok {
		env[name] = value
	}
}

func fromList(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, kv := range list {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return env
}

func toList(env map[string]string) ([]string, error) {
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		kv := name + "=" + env[name]
		if len(kv) >= maxVariable {
			return nil, fmt.Errorf("the variable %s has %d bytes, but Linux allows at most %d", name, len(kv), maxVariable-1)
		}
		list = append(list, kv)
	}
	return list, nil
}
