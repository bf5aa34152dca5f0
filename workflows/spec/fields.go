package spec

import (
	"reflect"
	"strconv"
	"strings"
)

// field is what there is to say about a field beside its type: to people who
// got it wrong, and in the JSON Schema.
type field struct {
	doc string
	// example shows the field in YAML.
	example string
	// remedy replaces what would be said about a value of the wrong type.
	remedy string
	// def is the default as JSON; empty where there is none.
	def string
	// enum, pattern, least and most are rules a schema can express.
	enum    []string
	pattern string
	least   *int
	most    *int
}

// fields describes every field of a spec, by the name of its Go type and its
// JSON name; "[]" stands for the items of a list and ".*" for the values of a
// map. A test holds it against the types.
var fields = map[string]field{
	"RunSpec.name": {
		doc:     "First part of a run ID made for this spec.",
		example: "name: iris", pattern: namePattern,
	},
	"RunSpec.command": {
		doc:     "The argv of every task that has no command of its own. No shell is involved.",
		example: "command: [python3, train.py]",
	},
	"RunSpec.tasks": {
		doc:     "The groups of tasks of the cluster. Their order is rank order.",
		example: "tasks: [{type: worker, count: 2}]",
		remedy:  "write a list, such as tasks: [{type: worker, count: 2}]",
	},
	"RunSpec.tasks[]": {
		remedy: "write for example {type: worker, count: 2}",
	},
	"RunSpec.dir": {
		doc:     "Absolute working directory of the processes; it must exist on each host. Default: the host worker's own.",
		example: "dir: /srv/job", pattern: absolutePattern,
	},
	"RunSpec.env": {
		doc:     "Environment variables, over the host worker's own, cleaned environment.",
		example: `env: {LOG_LEVEL: "info"}`, remedy: envRemedy,
	},
	"RunSpec.rpc_layer": {
		doc:     "The RPC layer that TF_CONFIG names.",
		example: "rpc_layer: grpc", def: `"` + DefaultRPCLayer + `"`,
	},
	"RunSpec.dependence_on_chief": {
		doc:     "Whether the chief's final exit ends the run. Without effect where there is no chief.",
		example: "dependence_on_chief: false", def: "true",
	},
	"RunSpec.chief_grace": {
		doc:     "How long the other tasks have, together, to end by themselves after the chief has.",
		example: `chief_grace: 3s`, def: `"3s"`, pattern: durationPattern,
	},
	"RunSpec.on_failure": {
		doc:     "What a task's final failure does to the others: stop them, or let them end by themselves.",
		example: "on_failure: continue", def: `"stop"`, enum: names(onFailures),
	},
	"RunSpec.auto_restart": {
		doc:     "Whether a failed or terminated task is started again.",
		example: "auto_restart: true", def: "false",
	},
	"RunSpec.restart_scope": {
		doc:     "What is started again: the task, or the whole group. group implies auto_restart.",
		example: "restart_scope: task", def: `"task"`, enum: names(restartScopes),
	},
	"RunSpec.max_restarts": {
		doc:     "Bounds the restarts of one task (scope task) or of the group (scope group) that failures cause. Default: no limit. Needs auto_restart, or restart_scope: group.",
		example: "max_restarts: 3", least: new(0),
	},
	"RunSpec.max_run_time": {
		doc:     "Hard limit on the whole run, from its start, queueing excluded: everything left is killed. Default: no limit.",
		example: "max_run_time: 12h", pattern: durationPattern,
	},
	"RunSpec.timeout": {
		doc:     "Stops the run with the stop signal first, so that programs can still say where they were. 0s: at once. Default: no limit.",
		example: "timeout: 90m", pattern: durationPattern,
	},
	"RunSpec.placement_timeout": {
		doc:     "How long a host may take to accept its tasks before the run fails with a PlacementError.",
		example: "placement_timeout: 1m", def: `"1m"`, pattern: durationPattern,
	},
	"RunSpec.barriers": {
		doc:     "Who releases the barriers at which the tasks meet: the Temporal server, wherever they are, or with local their host alone, in microseconds. local needs all tasks on one host.",
		example: "barriers: local", def: `"server"`, enum: names(barrierWays),
	},
	"RunSpec.stop": {
		doc:     "How a process is asked to end, and for how long.",
		example: "stop: {signal: SIGTERM, grace: 30s}",
	},
	"RunSpec.stop_together": {
		doc:     "How the tasks stop together, each by itself, when one of them or an operator asks for that.",
		example: "stop_together: {grace: 2m}",
	},
	"RunSpec.on_disconnect": {
		doc:     "What a host does with the processes while it hears nothing of the Temporal server: keep lets them go on, and then no host is ever given up; {stop_after: TIME} stops them after that time, so that they can be started elsewhere. Default: keep on one host, {stop_after: 2m} on several.",
		example: "on_disconnect: {stop_after: 2m}", remedy: disconnectRemedy,
	},
	"RunSpec.closures": {
		doc:     "The settings of the queue of the run's closures.",
		example: "closures: {queue_size: 1000}",
	},
	"RunSpec.logs": {
		doc:     "Where the output of the processes goes.",
		example: "logs: {dir: /var/log/job}",
	},
	"RunSpec.return_output": {
		doc:     "Whether the last lines of the output are put into the result.",
		example: "return_output: true", def: "false",
	},
	"RunSpec.env_profiles": {
		doc:     "The sets of environment variables that processes get. Default: all. An empty list: none.",
		example: "env_profiles: [torch]", def: `["tensorflow","torch","jax"]`,
	},
	"RunSpec.env_profiles[]": {enum: names(envProfiles)},
	"RunSpec.devices": {
		doc:     "The GPUs of each host that its tasks share out among themselves, in CUDA_VISIBLE_DEVICES: auto for all there are, or a list. Default: every task sees all.",
		example: "devices: auto", remedy: resourcesRemedy, pattern: devicesPattern,
	},
	"RunSpec.cpus": {
		doc:     "The CPUs of each host that its tasks share out among themselves, in blocks: auto for all there are, or a list. Default: nothing is bound.",
		example: "cpus: auto", remedy: cpusRemedy, pattern: cpusPattern,
	},

	"GroupLogs.redirects": {
		doc:     `As in logs, by index in the group: "3", or "0:3,1-7:1".`,
		example: `redirects: "3"`, pattern: stdPattern,
	},
	"GroupLogs.tee": {
		doc:     "Same syntax as redirects.",
		example: `tee: "3"`, pattern: stdPattern,
	},

	"TaskGroup.type": {
		doc:     "The task type, such as chief, worker, ps or evaluator.",
		example: "type: worker", remedy: "write for example type: worker", pattern: typePattern,
	},
	"TaskGroup.count": {
		doc:     "The number of tasks. They are placed together on one host. Default 1. Not together with addresses.",
		example: "count: 2", least: new(1), most: new(MaxTasks),
	},
	"TaskGroup.addresses": {
		doc:     `Pins one task to each "host:port" or "host". The host names a host worker; localhost, 127.0.0.1 and [::1] mean the host the run is started on.`,
		example: `addresses: ["10.0.0.7:2222"]`,
	},
	"TaskGroup.command": {
		doc:     "Replaces the run's command for this type.",
		example: "command: [./ps]",
	},
	"TaskGroup.args": {
		doc:     "Appended to the command.",
		example: `args: ["--epochs=3"]`,
	},
	"TaskGroup.dir": {
		doc:     "Replaces the run's working directory. Absolute.",
		example: "dir: /srv/ps", pattern: absolutePattern,
	},
	"TaskGroup.env": {
		doc:     "Environment variables, over the run's.",
		example: `env: {OMP_NUM_THREADS: "1"}`, remedy: envRemedy,
	},
	"TaskGroup.stop": {
		doc:     "Replaces what it has of the run's stop.",
		example: "stop: {signal: SIGINT, grace: 5s}",
	},
	"TaskGroup.logs": {
		doc:     "Replaces what it has of the run's logs.",
		example: `logs: {tee: "0"}`,
	},
	"TaskGroup.devices": {
		doc:     "Replaces the run's devices: these tasks share them out among themselves. An empty list: none.",
		example: "devices: []", remedy: resourcesRemedy,
	},
	"TaskGroup.cpus": {
		doc:     "Replaces the run's cpus. An empty list: not bound.",
		example: "cpus: [0, 1]", remedy: cpusRemedy,
	},
	"TaskGroup.overrides": {
		doc:     `Changes to single tasks, by index ("0", "1", …).`,
		example: `overrides: {"1": {args: ["--debug"]}}`,
		remedy:  `write the index and what changes: {"1": {args: ["--debug"]}}`,
	},

	"TaskGroup.overrides.*": {
		remedy: `write what changes: {args: ["--debug"]}`,
	},

	"Override.command": {
		doc:     "Replaces the group's command.",
		example: "command: [./debug]",
	},
	"Override.args": {
		doc:     "Replaces the group's args; an empty list: none.",
		example: `args: ["--debug"]`,
	},
	"Override.dir": {
		doc:     "Replaces the group's working directory. Absolute.",
		example: "dir: /srv/debug", pattern: absolutePattern,
	},
	"Override.env": {
		doc:     "Environment variables, over the group's.",
		example: `env: {DEBUG: "1"}`, remedy: envRemedy,
	},

	"Stop.signal": {
		doc:     "The signal that the process group gets first.",
		example: "signal: SIGINT", remedy: "write its name, such as SIGTERM",
		def: `"` + DefaultStopSignal + `"`, pattern: signalPattern,
	},
	"Stop.grace": {
		doc:     "The time from the signal to SIGKILL.",
		example: "grace: 30s", def: `"30s"`, pattern: durationPattern,
	},

	"StopTogether.grace": {
		doc:     "How long the tasks have, from the stop on, to end by themselves; then those left are stopped.",
		example: "grace: 2m", def: `"2m"`, pattern: durationPattern,
	},
	"StopTogether.clean_errors": {
		doc:     "Kinds of errors that make a clean stop: a stop that is asked for with one of them is no failure. EOF stands for io.EOF, too. A list replaces the default; an empty one: every error is a failure.",
		example: "clean_errors: [OutOfRangeError]", def: `["OutOfRangeError","StopIteration","EOFError","EOF"]`,
	},
	"StopTogether.clean_errors[]": {pattern: `^[^\x00]+$`},
	"StopTogether.ignore_live_tasks": {
		doc:     "Whether tasks that have not ended when the grace is over are stopped without that being a failure.",
		example: "ignore_live_tasks: true", def: "false",
	},

	"Closures.queue_size": {
		doc:     "How many closures may wait in the queue; a full one makes schedule wait. 0: no limit but that of bytes, of which there are 1.5 MiB for arguments and names.",
		example: "queue_size: 1000", def: strconv.Itoa(DefaultQueueSize), least: new(0), most: new(MaxQueueSize),
	},
	"Closures.transient_failures": {
		doc:     "Which report that the same other task, such as a parameter server, does not answer is the error of the closure; before it the closure is called again. 0 and 1: the first. Default: the variable " + EnvTransientFailures + ", else 3.",
		example: "transient_failures: 3", least: new(0),
	},

	"Logs.dir": {
		doc:     "Root of the log directories on each host. It is made when missing. Default: below the host worker's state directory. /dev/null: no files at all, neither results nor error files.",
		example: "dir: /var/log/job", pattern: absolutePattern,
	},
	"Logs.redirects": {
		doc:     `Which streams go to files: "0" none, "1" stdout, "2" stderr, "3" both; or by rank, "0:3,1-7:1". What neither goes to files nor is teed goes straight to the console, without a prefix.`,
		example: `redirects: "3"`, def: `"` + DefaultStdMask + `"`, pattern: stdPattern,
	},
	"Logs.tee": {
		doc:     "Which streams go to files and to the console. Same syntax as redirects.",
		example: `tee: "3"`, def: `"` + DefaultStdMask + `"`, pattern: stdPattern,
	},
	"Logs.local_ranks_filter": {
		doc:     "Limits the console to these local ranks. Empty: all.",
		example: "local_ranks_filter: [0]",
	},
	"Logs.local_ranks_filter[]": {least: new(0), most: new(MaxTasks - 1)},
	"Logs.filter": {
		doc:     "Limits the console to these tasks and types. Empty: all.",
		example: "filter: [worker-0, worker]",
	},
	"Logs.timestamps": {
		doc:     "Whether console lines begin with the time of day.",
		example: "timestamps: true", def: "false",
	},
	"Logs.duplicate_stdout_filters": {
		doc:     "Lines of stdout that contain one of these texts are collected in filtered_stdout.log on each host.",
		example: `duplicate_stdout_filters: [loss]`,
	},
	"Logs.duplicate_stderr_filters": {
		doc:     "The same for stderr, in filtered_stderr.log.",
		example: `duplicate_stderr_filters: [Error]`,
	},
	"Logs.prefix": {
		doc:     "Template of the start of each console line, made of text and of {{.Type}}, {{.Index}}, {{.Rank}}, {{.LocalRank}}, {{.Attempt}} and {{.Host}}, or ${role_name}, ${rank} and ${local_rank}. The default is padded to 14 columns and followed by a space.",
		example: `prefix: "[{{.Type}}-{{.Index}}]:"`, def: `"` + DefaultPrefix + `"`,
	},
}

const (
	envRemedy        = `write names and values: {A: "1"}`
	resourcesRemedy  = "write auto, or a list such as [0, 1, 2, 3]"
	cpusRemedy       = `write auto, or a list such as [0, 1, 2, 3] or "0-3,8"`
	disconnectRemedy = "write keep, or {stop_after: 2m}"
	durationRemedy   = `write it like "3s", "90m" or "1h30m"`
)

// structTitle names a type of the spec in a sentence.
func structTitle(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[RunSpec]():
		return "a run spec"
	case reflect.TypeFor[TaskGroup]():
		return "a task group"
	case reflect.TypeFor[Override]():
		return "an override"
	case reflect.TypeFor[GroupLogs]():
		return "logs of a task group"
	case reflect.TypeFor[StopTogether]():
		return "stop_together"
	default:
		return strings.ToLower(t.Name())
	}
}

// fieldKey is the key of a field in [fields].
func fieldKey(t reflect.Type, name string) string { return t.Name() + "." + name }

// jsonName is the name a field has in JSON.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func fieldNamed(t reflect.Type, name string) (index int, ok bool) {
	for i := range t.NumField() {
		if jsonName(t.Field(i)) == name {
			return i, true
		}
	}
	return 0, false
}

func fieldNames(t reflect.Type) []string {
	var list []string
	for i := range t.NumField() {
		list = append(list, jsonName(t.Field(i)))
	}
	return list
}

// placeOf says where in a spec a field of that name is, such as "stop.grace",
// for those who wrote it elsewhere.
func placeOf(name string) string { return placeIn(reflect.TypeFor[RunSpec](), "", name) }

func placeIn(t reflect.Type, path, name string) string {
	if _, ok := fieldNamed(t, name); ok {
		return path + name
	}
	for i := range t.NumField() {
		f := t.Field(i)
		step, inner := path+jsonName(f), f.Type
		switch inner.Kind() {
		case reflect.Slice:
			step, inner = step+"[]", inner.Elem()
		case reflect.Map:
			step, inner = step+".N", inner.Elem()
		}
		if inner.Kind() != reflect.Struct {
			continue
		}
		if place := placeIn(inner, step+".", name); place != "" {
			return place
		}
	}
	return ""
}

// names turns the values of an enumeration into texts.
func names[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}
