package spec

import "strconv"

// fields is the table of a run spec's fields, in the order of the reference and of the
// flags. The JSON Schema, the flags with their help and what they set, the defaults, the
// checks of single values, the remedies and the reference all come from it. A field needs
// an entry here, one in its Go type, and the code that uses it. A test holds the table
// against the types.
var fields = []field{
	{
		of: "RunSpec.name", syntax: nameSyntax,
		doc:     "First part of a run ID made for this spec.",
		example: "name: iris",
		flag:    "name", usage: "first part of the run ID (`NAME`)",
	},
	{
		of: "RunSpec.command", filled: true, syntax: commandSyntax,
		doc:     "The argv of every task that has no command of its own. No shell is involved.",
		example: commandExample,
	},
	{
		of: "RunSpec.tasks", required: true, filled: true,
		doc:        "The groups of tasks of the cluster. Their order is rank order.",
		example:    "tasks: [{type: worker, count: 2}]",
		remedy:     "write a list, such as tasks: [{type: worker, count: 2}]",
		otherFlags: []string{"--task", "-n", "--nproc-per-node", "-H", "--hostfile"},
	},
	{of: "RunSpec.tasks[]", remedy: "write for example {type: worker, count: 2}"},

	{
		of: "TaskGroup.type", required: true, syntax: typeSyntax,
		doc:     "The task type, such as chief, worker, ps or evaluator.",
		example: "type: worker", remedy: "write for example type: worker",
	},
	{
		of: "TaskGroup.count", syntax: elsewhere,
		doc:     "The number of tasks. They go wherever there is room, on as few hosts as possible, unless hosts says otherwise. Default 1. Not together with addresses.",
		example: "count: 2", least: new(1), most: new(MaxTasks),
	},
	{
		of: "TaskGroup.addresses", filled: true,
		doc:     `Pins one task to each "host:port" or "host". The host names a host worker; localhost, 127.0.0.1 and [::1] mean the host the run is started on.`,
		example: `addresses: ["10.0.0.7:2222"]`,
	},
	{of: "TaskGroup.addresses[]", syntax: elsewhere},
	{
		of: "TaskGroup.command", filled: true, syntax: commandSyntax,
		doc:     "Replaces the run's command for this type.",
		example: "command: [./ps]",
	},
	{
		of: "TaskGroup.args", syntax: argsSyntax,
		doc:     "Appended to the command.",
		example: `args: ["--epochs=3"]`,
	},
	{
		of: "TaskGroup.dir", syntax: elsewhere,
		doc:     "Replaces the run's working directory.",
		example: "dir: /srv/ps",
	},
	{
		of: "TaskGroup.env", syntax: envSyntax,
		doc:     "Environment variables, over the run's.",
		example: `env: {OMP_NUM_THREADS: "1"}`, remedy: envRemedy,
	},
	{
		of:      "TaskGroup.stop",
		doc:     "Replaces what it has of the run's stop.",
		example: "stop: {signal: SIGINT, grace: 5s}",
	},
	{
		of:      "TaskGroup.logs",
		doc:     "Replaces what it has of the run's logs.",
		example: `logs: {tee: "0"}`,
	},
	{
		of: "GroupLogs.redirects", syntax: stdSyntax,
		doc:     `As in logs, by index in the group: "3", or "0:3,1-7:1".`,
		example: `redirects: "3"`,
	},
	{
		of: "GroupLogs.tee", syntax: stdSyntax,
		doc:     "Same syntax as redirects.",
		example: `tee: "3"`,
	},
	{
		of: "TaskGroup.devices", syntax: devicesSyntax,
		doc:     "Replaces the run's devices: these tasks share them out among themselves. An empty list: none.",
		example: "devices: []", remedy: resourcesRemedy,
	},
	{
		of: "TaskGroup.gpus_per_task", least: new(1), most: new(maxResources),
		doc:     "Replaces the run's gpus_per_task, and its devices.",
		example: "gpus_per_task: 2",
	},
	{
		of: "TaskGroup.cpus", syntax: cpusSyntax,
		doc:     "Replaces the run's cpus. An empty list: not bound.",
		example: "cpus: [0, 1]", remedy: cpusRemedy,
	},
	{
		of:      "TaskGroup.limits",
		doc:     "Replaces what it has of the run's limits.",
		example: "limits: {memory: 64GiB}",
	},
	{
		of:      "TaskGroup.overrides",
		doc:     `Changes to single tasks, by index ("0", "1", …).`,
		example: `overrides: {"1": {args: ["--debug"]}}`,
		remedy:  `write the index and what changes: {"1": {args: ["--debug"]}}`,
	},
	{of: "TaskGroup.overrides.*", remedy: `write what changes: {args: ["--debug"]}`},
	{
		of: "Override.command", filled: true, syntax: commandSyntax,
		doc:     "Replaces the group's command.",
		example: "command: [./debug]",
	},
	{
		of: "Override.args", syntax: argsSyntax,
		doc:     "Replaces the group's args; an empty list: none.",
		example: `args: ["--debug"]`,
	},
	{
		of: "Override.dir", syntax: elsewhere,
		doc:     "Replaces the group's working directory.",
		example: "dir: /srv/debug",
	},
	{
		of: "Override.env", syntax: envSyntax,
		doc:     "Environment variables, over the group's.",
		example: `env: {DEBUG: "1"}`, remedy: envRemedy,
	},

	{
		of: "RunSpec.dir", syntax: elsewhere,
		doc:     "Absolute working directory of the processes; it must exist on each host. Default: the host worker's own. With ship it may be a directory in what is shipped, such as src, and is by default all of it.",
		example: "dir: /srv/job",
		flag:    "dir", usage: "working `DIRECTORY` of the processes; default: the current one, for submit and --remote with a server of others that of the host worker, and with --ship the copy of it",
	},
	{
		of:      "RunSpec.ship",
		doc:     "The directory that the run takes along: its files are packed when it is started, and each host unpacks them into a private directory, in which the tasks run. A text alone is dir. What .gitignore names stays behind, and so does .git.",
		example: "ship: {dir: /home/ann/job, exclude: [\"*.ckpt\"]}", remedy: "write a directory, or for example {dir: ., exclude: [data]}",
	},
	{
		of:      "Ship.dir",
		doc:     "The directory. What it has is as it is when the run is started. A symbolic link that leaves it is refused.",
		example: "dir: /home/ann/job",
		flag:    "ship", usage: "take this `DIRECTORY` along: each host gets a copy of its files, without what .gitignore names, and the processes run there",
	},
	{
		of: "Ship.exclude", filled: true,
		doc:     "What else stays behind, in the syntax of .gitignore. A pattern that begins with ! takes along what .gitignore names.",
		example: `exclude: ["*.ckpt", /data]`,
		flag:    "exclude", repeated: true, usage: "with --ship: leave out what matches this `PATTERN`, written as in .gitignore; may be repeated",
	},
	{of: "Ship.exclude[]", syntax: excludeSyntax},
	{
		of: "Ship.limit", syntax: sizeSyntax,
		doc:     "How much may be shipped. Default: " + DefaultShipLimit + ".",
		example: "limit: 2GiB",
		flag:    "ship-limit", usage: "with --ship: refuse more than this `SIZE` (default " + DefaultShipLimit + ")",
	},
	{
		of:      "Ship.archive",
		doc:     "What the directory was packed into, written by run and submit.",
		example: "archive: {size: 10240, files: 3}",
	},
	{
		of: "Archive.digest", syntax: matching(`^[0-9a-f]{64}$`, "SHA-256 in hex", "leave ship.archive to run and submit"),
		doc:     "The SHA-256 of the archive, in hex.",
		example: "digest: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	},
	{of: "Archive.size", doc: "The size of the archive in bytes.", example: "size: 10240", least: new(0)},
	{of: "Archive.files", doc: "The number of files in it.", example: "files: 3", least: new(0)},
	{
		of:      "Ship.from",
		doc:     "The host that has the archive until the run has ended, written by run and submit.",
		example: `from: {host: gpu1, address: "10.0.0.7:41000"}`,
	},
	{of: "HostService.host", doc: "The name of the host.", example: "host: gpu1"},
	{of: "HostService.address", doc: "Where it serves the archive.", example: `address: "10.0.0.7:41000"`},
	{of: "HostService.fingerprint", doc: "The SHA-256 of its certificate, in hex.", example: "fingerprint: 9f86d081884c7d65"},
	{of: "HostService.token", doc: "Allows to read the archive there.", example: "token: eyJydW4i"},
	{
		of: "RunSpec.env", syntax: envSyntax,
		doc:     "Environment variables, over the host worker's own, cleaned environment.",
		example: `env: {LOG_LEVEL: "info", TOKEN: {from_env: HF_TOKEN}}`, remedy: envRemedy,
		otherFlags: []string{"--env", "-x", "--env-from-shell", "--secret"},
	},
	{
		of: "Source.from_env", syntax: elsewhere,
		doc:     "In place of a value: the variable of the task's host worker that has it. The host looks at each start of a process; nothing else of the run has the value, and the history has the name only.",
		example: "from_env: HF_TOKEN",
	},
	{
		of: "Source.from_file", syntax: elsewhere,
		doc:     "In place of a value: the absolute path of a file on the task's host, which has it. A newline at its end is left out.",
		example: "from_file: /run/secrets/token",
	},
	{
		of:      "RunSpec.unset_env",
		doc:     "Variables of the host worker that the processes do not get, by name, or by the start of their names and a *. What env sets stays.",
		example: `unset_env: [LD_PRELOAD, "NCCL_*"]`,
		flag:    "unset-env", repeated: true, usage: "a variable that the processes do not get from this shell, or from their host worker, as `NAME` or START*; may be repeated",
	},
	{of: "RunSpec.unset_env[]", syntax: unsetSyntax},
	{
		of: "RunSpec.rpc_layer", def: DefaultRPCLayer,
		doc:     "The RPC layer that TF_CONFIG names.",
		example: "rpc_layer: grpc",
		flag:    "rpc-layer", usage: "`LAYER` in TF_CONFIG",
	},
	{
		of: "RunSpec.env_profiles", def: envProfiles,
		doc:     "The sets of environment variables that processes get. Default: tensorflow, torch and jax. An empty list: none. With mpi the processes are ranks of MPICH, Intel MPI or MVAPICH.",
		example: "env_profiles: [torch]",
		flag:    "env-profile", usage: "sets of variables the processes get: `tensorflow,torch,jax,mpi` (default the first three; mpi too where the program is linked with MPICH)",
	},
	{of: "RunSpec.env_profiles[]", enum: append(names(envProfiles), string(EnvMPI))},
	{
		of: "RunSpec.agent_store", def: false,
		doc:     "Whether the host worker of rank 0 serves torch's store at MASTER_PORT, as torchrun's agent does, so that any rank may end before the others. A program that listens there itself cannot have it.",
		example: "agent_store: true",
		flag:    "agent-store", usage: "the host worker of rank 0 serves torch's store, as torchrun's agent does, so that any rank may end before the others",
	},

	{
		of: "RunSpec.on_failure", def: DefaultOnFailure,
		doc:     "What a task's final failure does to the others: stop them, or let them end by themselves.",
		example: "on_failure: continue", enum: names(onFailures),
		flag: "on-failure", usage: "what a task's final failure does to the others: `stop|continue`",
	},
	{
		of: "RunSpec.auto_restart", def: false,
		doc:     "Whether a failed or terminated task is started again.",
		example: "auto_restart: true",
		flag:    "auto-restart", usage: "start failed tasks again",
	},
	{
		of: "RunSpec.max_restarts", bounds: "leave it out for no limit",
		doc:     "Bounds the restarts of one task (scope task) or of the group (scope group) that failures cause. Default: no limit. Needs auto_restart, or restart_scope: group.",
		example: "max_restarts: 3", least: new(0),
		flag: "max-restarts", usage: "most restarts (`NUMBER`) of a task, or of the group; implies --auto-restart where above 0",
	},
	{
		of: "RunSpec.restart_scope", def: DefaultRestartScope,
		doc:     "What is started again: the task, or the whole group. group implies auto_restart.",
		example: "restart_scope: task", enum: names(restartScopes),
		flag: "restart-scope", usage: "what a restart starts again: `task|group` (default task, and with torchrun's --nproc-per-node group). group alone means restarts without limit",
	},
	{
		of: "RunSpec.dependence_on_chief", def: true,
		doc:     "Whether the chief's final exit ends the run. Without effect where there is no chief.",
		example: "dependence_on_chief: false",
		flag:    "dependence-on-chief", usage: "the chief's end ends the run", otherFlags: []string{"--no-dependence-on-chief"},
	},
	{
		of: "RunSpec.chief_grace", def: DefaultChiefGrace,
		doc:     "How long the other tasks have, together, to end by themselves after the chief has.",
		example: `chief_grace: 3s`,
		flag:    "chief-grace", usage: "`TIME` for the others to end by themselves after the chief",
	},
	{
		of:      "RunSpec.timeout",
		doc:     "Stops the run with the stop signal first, so that programs can still say where they were. 0s: at once. Default: no limit.",
		example: "timeout: 90m",
		flag:    "timeout", usage: "stop the run after this `TIME`, with the stop signal first",
	},
	{
		of: "RunSpec.max_run_time", from: positive,
		doc:     "Hard limit on the whole run, from its start, queueing excluded: everything left is killed. Default: no limit.",
		example: "max_run_time: 12h",
		flag:    "max-run-time", usage: "kill the run after this `TIME`",
	},
	{
		of: "RunSpec.placement_timeout", def: DefaultPlacementTimeout, from: positive,
		doc:     "How long the run waits for hosts before it fails with a PlacementError. A run that was submitted to a queue waits without limit where this is not given.",
		example: "placement_timeout: 1m",
		flag:    "placement-timeout", usage: "`TIME` to wait for hosts; default with submit: without limit",
	},
	{
		of: "RunSpec.priority", def: DefaultPriority,
		doc:     "Which of the runs that wait for room comes first: from 1, the first, to 5. Those of one priority come in the order in which they began to wait.",
		example: "priority: 3", least: new(FirstPriority), most: new(LastPriority),
		flag: "priority", usage: "`NUMBER` from 1, which comes first, to 5, among the runs that wait for room",
	},
	{
		of:      "RunSpec.hosts",
		doc:     "On which hosts the tasks are, and on how many; a number alone is the count. Default: wherever there is room, on as few hosts as possible.",
		example: "hosts: {count: 3, per_host: 3}", remedy: "write a number, or for example {count: 4, per_host: 8}",
	},
	{
		of: "Hosts.count", syntax: hostCountSyntax,
		doc:     `The number of hosts, among which the tasks are shared out evenly where there is room for that; or a range such as "2:4", for an elastic run: it has at most four hosts and at least two, as many as there is room on, and the same number of tasks on each. The number of tasks is that on the most hosts; with fewer the last type has fewer tasks. Needs restart_scope: group.`,
		example: "count: 4", remedy: hostCountRemedy,
		flag: "hosts", usage: "`NUMBER` of hosts of the tasks, or MIN:MAX for an elastic run (default: as few as there is room on)",
	},
	{
		of:      "Hosts.per_host",
		doc:     "The number of tasks on each host, with neighbouring ranks; the last one has what is left.",
		example: "per_host: 8", least: new(1), most: new(MaxTasks),
		flag: "per-host", usage: "`NUMBER` of tasks on each host",
	},
	{
		of: "Hosts.select", filled: true,
		doc:     "The names of the hosts that may have tasks, or patterns with *, ? and [a-z]: one of them has to match.",
		example: `select: ["gpu-[1-9]"]`,
		flag:    "select", usage: "only hosts with these `NAMES`, which may have *, ? and [a-z]",
	},
	{of: "Hosts.select[]", syntax: hostPatternSyntax},
	{
		of: "Hosts.constraints", filled: true,
		doc:     `What each host has to meet, as KEY OP VALUE: the keys are name, gpu.model, gpu.count, gpu.memory, memory, cpus, slots and the labels of hosts, and the operators == != >= <= > <. Sizes are like 512GiB.`,
		example: `constraints: ["gpu.model == H100", "memory >= 512GiB", "rack == r7"]`,
		flag:    "constraint", repeated: true, usage: "only hosts that meet this `CONSTRAINT`, such as \"gpu.model == H100\", \"memory >= 512GiB\" or \"rack == r7\"; may be repeated",
	},
	{of: "Hosts.constraints[]", syntax: constraintSyntax},
	{
		of: "Hosts.strategy", def: DefaultStrategy, enum: names(strategies),
		doc:     "Whether one host is filled after the other, or the tasks are dealt out one by one over as many hosts as possible.",
		example: "strategy: spread",
		flag:    "strategy", usage: "fill one host after the other, or deal the tasks out over many: `pack|spread`",
	},
	{
		of: "Hosts.exclusive", def: false,
		doc:     "Whether nobody else has tasks on the hosts meanwhile.",
		example: "exclusive: true",
		flag:    "exclusive", usage: "nobody else has tasks on the hosts meanwhile",
	},
	{
		of:      "RunSpec.elastic",
		doc:     "How an elastic run, whose hosts.count is a range, comes to its hosts.",
		example: "elastic: {join_wait: 30s, grow: next-generation}",
	},
	{
		of: "Elastic.join_wait", def: DefaultJoinWait,
		doc:     "How long a run that has room on enough hosts waits for room on more, at its start and when it has too few hosts left.",
		example: "join_wait: 30s",
		flag:    "join-wait", usage: "`TIME` for which an elastic run that has room on enough hosts waits for more",
	},
	{
		of: "Elastic.grow", def: DefaultGrow, enum: names(grows),
		doc:     "Whether a run that has lost hosts, or began with fewer than it may have, gets others with the next generation. Nothing is stopped for that. With never it goes on with those that are left while they are enough.",
		example: "grow: next-generation",
		flag:    "grow", usage: "whether an elastic run gets more hosts when its group starts again: `never|next-generation`",
	},
	{
		of: "RunSpec.barriers", def: DefaultBarriers,
		doc:     "Who releases the barriers at which the tasks meet: the Temporal server, wherever they are, or with local their host alone, in microseconds. local needs all tasks on one host.",
		example: "barriers: local", enum: names(barrierWays),
		flag: "barriers", usage: "who releases the barriers of the tasks: `server|local`; local is their host alone, in microseconds",
	},
	{
		of: "RunSpec.on_disconnect", syntax: disconnectSyntax,
		doc:     "What a host does with the processes while it hears nothing of the Temporal server: keep lets them go on, and then no host is ever given up; {stop_after: TIME} stops them after that time, so that they can be started elsewhere. Default: keep on one host, {stop_after: 2m} on several.",
		example: "on_disconnect: {stop_after: 2m}", remedy: disconnectRemedy,
		flag: "on-disconnect", usage: "what a host does while it hears nothing of the server: `keep|TIME` (of 5s or more) after which it stops its processes (default keep on one host, 2m on several)",
	},
	{
		of: "RunSpec.silence", from: positive,
		doc:     "After what time without output, progress and processor time, of all tasks of the run on a host, they are shown as silent. At least 30s. Less than a hundredth of a processor is none, and output is what is in files. Default: nobody looks.",
		example: "silence: 10m",
		flag:    "silence", usage: "`TIME` after which tasks without output, progress and processor time are shown as silent (30s or more)",
	},
	{
		of: "RunSpec.on_silence", enum: names(onSilences),
		doc:     "What a host does once its tasks are silent: stacks writes down what they are doing, and stop does so and ends them as failures with the cause silence. Needs silence. Default: they are only shown.",
		example: "on_silence: stacks",
		flag:    "on-silence", usage: "what a host does with silent tasks: `stacks|stop` (default: they are only shown)",
	},

	{
		of:      "RunSpec.stop",
		doc:     "How a process is asked to end, and for how long.",
		example: "stop: {signal: SIGTERM, grace: 30s}",
	},
	{
		of: "Stop.signal", def: DefaultStopSignal, syntax: signalSyntax,
		doc:     "The signal that the process group gets first.",
		example: "signal: SIGINT", remedy: "write its name, such as SIGTERM",
		flag: "stop-signal", usage: "`SIGNAL` that asks a process to end",
	},
	{
		of: "Stop.grace", def: DefaultStopGrace,
		doc:     "The time from the signal to SIGKILL.",
		example: "grace: 30s",
		flag:    "stop-grace", usage: "`TIME` from that signal to SIGKILL",
	},

	{
		of:      "RunSpec.stop_together",
		doc:     "How the tasks stop together, each by itself, when one of them or an operator asks for that.",
		example: "stop_together: {grace: 2m}",
	},
	{
		of: "StopTogether.grace", def: DefaultTogetherGrace,
		doc:     "How long the tasks have, from the stop on, to end by themselves; then those left are stopped.",
		example: "grace: 2m",
		flag:    "stop-together-grace", usage: "`TIME` for the tasks to end by themselves once one of them asked all to stop",
	},
	{
		of: "StopTogether.clean_errors", def: DefaultCleanErrors,
		doc:     "Kinds of errors that make a clean stop: a stop that is asked for with one of them is no failure. EOF stands for io.EOF, too. A list replaces the default; an empty one: every error is a failure.",
		example: "clean_errors: [OutOfRangeError]",
		flag:    "clean-errors", usage: "`KINDS` of errors with which such a stop is no failure; '' for none",
	},
	{of: "StopTogether.clean_errors[]", syntax: errorKindSyntax},
	{
		of: "StopTogether.ignore_live_tasks", def: false,
		doc:     "Whether tasks that have not ended when the grace is over are stopped without that being a failure.",
		example: "ignore_live_tasks: true",
		flag:    "ignore-live-tasks", usage: "tasks that do not end within that time are stopped without that being a failure",
	},

	{
		of:      "RunSpec.closures",
		doc:     "The settings of the queue of the run's closures.",
		example: "closures: {queue_size: 1000}",
	},
	{
		of: "Closures.queue_size", def: DefaultQueueSize, bounds: "0 means no limit but that of bytes",
		doc:     "How many closures may wait in the queue; a full one makes schedule wait. 0: no limit but that of bytes, of which there are 1.5 MiB for arguments and names.",
		example: "queue_size: 1000", least: new(0), most: new(MaxQueueSize),
		flag: "closures-queue-size", usage: "`NUMBER` of closures that may wait in the run's queue before schedule waits; 0 for no limit but that of bytes",
	},
	{
		of: "Closures.transient_failures", bounds: "0 means that the first failure counts",
		doc:     "Which report that the same other task, such as a parameter server, does not answer is the error of the closure; before it the closure is called again. 0 and 1: the first. Default: the variable " + EnvTransientFailures + ", else 3.",
		example: "transient_failures: 3", least: new(0),
		flag: "closures-transient-failures", usage: "which report (`NUMBER`) that the same task, such as a parameter server, does not answer is an error of the closure; the variable " + EnvTransientFailures + " has another default (default " + strconv.Itoa(DefaultTransientFailures) + ")",
	},

	{
		of:      "RunSpec.logs",
		doc:     "Where the output of the processes goes.",
		example: "logs: {dir: /var/log/job}",
	},
	{
		of: "Logs.dir", syntax: pathSyntax,
		doc:     "Root of the log directories on each host. It is made when missing. Default: below the host worker's state directory. /dev/null: no files at all, neither results nor error files.",
		example: "dir: /var/log/job",
		flag:    "log-dir", usage: "`DIRECTORY` for output files; default: logs, below the state directory",
	},
	{
		of: "Logs.group", syntax: nameSyntax,
		doc:     "Unix group on each host that may read the output files, too. Default: only the user whose processes they are of. The user must be in it.",
		example: "group: ml",
		flag:    "log-group", usage: "Unix `GROUP` that may read the output files, too",
	},
	{
		of: "Logs.redirects", def: DefaultStdMask, syntax: stdSyntax,
		doc:     `Which streams go to files: "0" none, "1" stdout, "2" stderr, "3" both; or by rank, "0:3,1-7:1". What neither goes to files nor is teed goes straight to the console, without a prefix.`,
		example: `redirects: "3"`,
		flag:    "redirects", usage: "streams that go to files, by `MASK`: 0 none, 1 stdout, 2 stderr, 3 both, or by rank 0:3,1:0",
	},
	{
		of: "Logs.tee", def: DefaultStdMask, syntax: stdSyntax,
		doc:     "Which streams go to files and to the console. Same syntax as redirects.",
		example: `tee: "3"`,
		flag:    "tee", usage: "streams that also go to the console, by `MASK`",
	},
	{
		of:      "Logs.local_ranks_filter",
		doc:     "Limits the console to these local ranks. Empty: all.",
		example: "local_ranks_filter: [0]",
		flag:    "local-ranks-filter", usage: "only these local `RANKS` go to the console",
	},
	{of: "Logs.local_ranks_filter[]", syntax: elsewhere, least: new(0), most: new(MaxTasks - 1)},
	{
		of:      "Logs.filter",
		doc:     "Limits the console to these tasks and types. Empty: all.",
		example: "filter: [worker-0, worker]",
		flag:    "filter", usage: "only these `TASKS` and types go to the console, such as worker-0,ps",
	},
	{of: "Logs.filter[]", syntax: elsewhere},
	{
		of:      "Logs.duplicate_stdout_filters",
		doc:     "Lines of stdout that contain one of these texts are collected in filtered_stdout.log on each host.",
		example: `duplicate_stdout_filters: [loss]`,
		flag:    "duplicate-stdout-filters", repeated: true, usage: "collect lines of stdout that contain `TEXT` in one file more; may be repeated",
	},
	{of: "Logs.duplicate_stdout_filters[]", syntax: lineFilterSyntax},
	{
		of:      "Logs.duplicate_stderr_filters",
		doc:     "The same for stderr, in filtered_stderr.log.",
		example: `duplicate_stderr_filters: [Error]`,
		flag:    "duplicate-stderr-filters", repeated: true, usage: "the same for stderr (`TEXT`)",
	},
	{of: "Logs.duplicate_stderr_filters[]", syntax: lineFilterSyntax},
	{
		of: "Logs.quota", syntax: quotaSyntax,
		doc:     "How much the tasks of the run may write to their output files on each host, together and over all restarts. Default: no limit.",
		example: "quota: 10GiB",
		flag:    "log-quota", usage: "`SIZE` of the output of all tasks on each host",
	},
	{
		of: "Logs.on_full", enum: names(onFulls),
		doc:     "What happens at the quota: fail ends the task that has written most, with the cause log-quota, and so the run; drop leaves out what is too much and says so in the file and in the result. Default: fail.",
		example: "on_full: drop",
		flag:    "log-on-full", usage: "what happens at the log quota: `fail|drop` (default fail)",
	},
	{
		of: "Logs.timestamps", def: false,
		doc:     "Whether console lines begin with the time of day.",
		example: "timestamps: true",
		flag:    "timestamps", usage: "put the time of day in front of console lines",
	},
	{
		of: "Logs.prefix", def: DefaultPrefix, syntax: prefixSyntax,
		doc:     "Template of the start of each console line, made of text and of {{.Type}}, {{.Index}}, {{.Rank}}, {{.LocalRank}}, {{.Attempt}} and {{.Host}}, or ${role_name}, ${rank} and ${local_rank}. The default is padded to 14 columns and followed by a space. An empty text: no prefix.",
		example: `prefix: "[{{.Type}}-{{.Index}}]:"`,
		flag:    "log-prefix", usage: "`TEMPLATE` for the start of console lines; '' for none (default \"" + DefaultPrefix + "\")",
	},

	{
		of: "RunSpec.devices", syntax: devicesSyntax,
		doc:     "The GPUs of each host that its tasks share out among themselves, in CUDA_VISIBLE_DEVICES: auto for all there are, or a list. Default: every task sees all.",
		example: "devices: auto", remedy: resourcesRemedy,
		flag: "devices", usage: "`GPUS` that the tasks share out, in CUDA_VISIBLE_DEVICES: auto, or like 0,1,2,3 (default: each task sees all)",
	},
	{
		of: "RunSpec.gpus_per_task", least: new(1), most: new(maxResources),
		doc:     "How many GPUs each task has for itself, in CUDA_VISIBLE_DEVICES, in place of devices. Runs that share a host get different ones of it.",
		example: "gpus_per_task: 1",
		flag:    "gpus-per-task", usage: "`NUMBER` of GPUs that each task has for itself, in CUDA_VISIBLE_DEVICES",
	},
	{
		of: "RunSpec.cpus", syntax: cpusSyntax,
		doc:     "The CPUs of each host that its tasks share out among themselves, in blocks: auto for all there are, or a list. Default: nothing is bound.",
		example: "cpus: auto", remedy: cpusRemedy,
		flag: "cpus", usage: "`CPUS` that the tasks share out and are bound to: auto, or like 0-7,16 (default: not bound)",
	},
	{
		of:      "RunSpec.limits",
		doc:     "What each task may use of its host, with all of its processes together. A host that cannot enforce a limit refuses the run before anything starts.",
		example: "limits: {memory: 8GiB, pids: 500}",
	},
	{
		of: "Limits.memory", syntax: memorySyntax,
		doc:     "The memory; a task that needs more is killed, which is the cause oom. Needs a cgroup of version 2 that is delegated to the host worker.",
		example: "memory: 8GiB",
		flag:    "limit-memory", usage: "`SIZE` of the memory of each task; one that needs more is killed",
	},
	{
		of: "Limits.cpus", least: new(1), most: new(maxResources),
		doc:     "The processor time, in processors; a task that needs more waits. Needs such a cgroup, too. To bind tasks to processors use cpus outside of limits.",
		example: "cpus: 4",
		flag:    "limit-cpus", usage: "`NUMBER` of processors whose time each task may use",
	},
	{
		of: "Limits.pids", least: new(1), most: new(1 << 22),
		doc:     "The number of processes and threads; a task that has as many cannot fork. Needs such a cgroup, too: the limit of setrlimit(2) counts all processes of a user.",
		example: "pids: 500",
		flag:    "limit-pids", usage: "`NUMBER` of processes and threads of each task",
	},
	{
		of: "Limits.nofile", least: new(8), most: new(1 << 30),
		doc:     "The number of files that each process may have open (ulimit -n), up to that of the host worker.",
		example: "nofile: 65536",
		flag:    "limit-nofile", usage: "`NUMBER` of files that each process may have open",
	},
	{
		of: "Limits.core", syntax: coreSyntax,
		doc:     "The size of core dumps (ulimit -c): none, unlimited, or a size, up to that of the host worker. Where they go is the kernel's setting (kernel.core_pattern). Default: as the host worker has it.",
		example: "core: none",
		flag:    "limit-core", usage: "`SIZE` of core dumps, or none or unlimited (default: as the host worker has it)",
	},
	{
		of: "RunSpec.return_output", def: false,
		doc:     "Whether the last lines of the output are put into the result.",
		example: "return_output: true",
		flag:    "return-output", usage: "put the last lines of the output into the result",
	},

	{
		of:      "RunSpec.signature",
		doc:     "The signature for hosts with a policy, written by run and submit.",
		example: "signature: {expires: 2026-11-23T08:00:00Z}", remedy: "leave it to submit --sign",
	},
	{
		of: "Signature.expires", syntax: expirySyntax,
		doc:     "When no host takes the run for the first time any more.",
		example: `expires: "2026-11-23T08:00:00Z"`,
	},
	{of: "Signature.size", doc: "How many tasks were signed, of which an elastic run may have fewer.", example: "size: 16", least: new(0), most: new(MaxTasks)},
	{of: "Signature.ssh", doc: "The signature as ssh-keygen writes it.", example: `ssh: "-----BEGIN SSH SIGNATURE-----"`},
}
