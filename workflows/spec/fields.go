package spec

// fields lists a run spec's fields, in the order used by the reference and the flags. The JSON
// Schema, the flags with their help and what they set, the defaults, the checks of single values,
// the remedies and the reference all come from it. To add a field, add it here and to its Go type,
// and write the code that uses it. A test compares the table with the types.
var fields = []field{
	{
		of: "RunSpec.name", syntax: nameSyntax,
		doc:     "The first part of the IDs of runs of this spec.",
		example: "name: iris",
		flag:    "name", usage: "begin the run ID with `NAME`",
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
		doc:     "The number of tasks. They are placed on any hosts with room, on as few hosts as possible, unless hosts changes that. Default 1. Cannot be combined with addresses.",
		example: "count: 2", least: new(1), most: new(MaxTasks),
	},
	{
		of: "TaskGroup.addresses", filled: true,
		doc:     `Pins one task to each "host:port" or "host". The host is the name of a host worker; localhost, 127.0.0.1 and [::1] mean the host on which the run is started.`,
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
		of:      "TaskGroup.env",
		doc:     "Environment variables, which override the run's.",
		example: `env: {OMP_NUM_THREADS: "1"}`, remedy: envRemedy,
	},
	{
		of:      "TaskGroup.stop",
		doc:     "Overrides fields of the run's stop.",
		example: "stop: {signal: SIGINT, grace: 5s}",
	},
	{
		of:      "TaskGroup.logs",
		doc:     "Overrides fields of the run's logs.",
		example: `logs: {tee: "0"}`,
	},
	{
		of: "GroupLogs.redirects", syntax: stdSyntax,
		doc:     `As in logs, but by index in the group: "3", or "0:3,1-7:1".`,
		example: `redirects: "3"`,
	},
	{
		of: "GroupLogs.tee", syntax: stdSyntax,
		doc:     "As redirects.",
		example: `tee: "3"`,
	},
	{
		of: "TaskGroup.devices", syntax: devicesSyntax,
		doc:     "Replaces the run's devices; they are divided among these tasks. An empty list: none.",
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
		doc:     "Overrides fields of the run's limits.",
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
		of:      "Override.env",
		doc:     "Environment variables, which override the group's.",
		example: `env: {DEBUG: "1"}`, remedy: envRemedy,
	},

	{
		of: "RunSpec.dir", syntax: elsewhere,
		doc:     "Absolute working directory of the processes; it must exist on each host. Default: the directory of the host worker. With ship it may be a directory below the shipped one, such as src; the default is the shipped directory.",
		example: "dir: /srv/job",
		flag:    "dir", usage: "run in `DIRECTORY` (default: this one, or the shipped one; with submit to another server: the host worker's)",
	},
	{
		of:      "RunSpec.ship",
		doc:     "The directory that the run ships: its files are packed when the run starts, and each host unpacks them into a private directory, in which the tasks run. A plain text is dir. .git and what .gitignore names are left out.",
		example: "ship: {dir: /home/ann/job, exclude: [\"*.ckpt\"]}", remedy: "write a directory, or for example {dir: ., exclude: [data]}",
	},
	{
		of:      "Ship.dir",
		doc:     "The directory, as it is when the run starts. A symbolic link that leaves it is refused.",
		example: "dir: /home/ann/job",
		flag:    "ship", usage: "run in a copy of `DIRECTORY` on each host, without what .gitignore names",
	},
	{
		of: "Ship.exclude", filled: true,
		doc:     "What else is left out, in the syntax of .gitignore. A pattern that begins with ! includes what .gitignore names.",
		example: `exclude: ["*.ckpt", /data]`,
		flag:    "exclude", repeated: true, usage: "with --ship: leave out what matches `PATTERN`, as in .gitignore",
	},
	{of: "Ship.exclude[]", syntax: excludeSyntax},
	{
		of: "Ship.limit", syntax: sizeSyntax,
		doc:     "The most that may be shipped. Default: " + DefaultShipLimit + ".",
		example: "limit: 2GiB",
	},
	{
		of:      "Ship.archive",
		doc:     "The archive of the directory, written by run and submit.",
		example: "archive: {size: 10240, files: 3}",
	},
	{
		of: "Archive.digest", syntax: matching(`^[0-9a-f]{64}$`, "SHA-256 in hex", "do not set ship.archive: `run` and `submit` do"),
		doc:     "The SHA-256 of the archive, in hex.",
		example: "digest: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	},
	{of: "Archive.size", doc: "The size of the archive in bytes.", example: "size: 10240", least: new(0)},
	{of: "Archive.files", doc: "The number of files in the archive.", example: "files: 3", least: new(0)},
	{
		of:      "Ship.from",
		doc:     "The host that keeps the archive until the run has ended, written by run and submit.",
		example: `from: {host: gpu1, address: "10.0.0.7:41000"}`,
	},
	{
		of:      "Ship.sweep",
		doc:     "The sweep whose trials share the directory on each host; a sweep writes it.",
		example: "sweep: {id: hp, execution: 01a0b1c2}", remedy: "leave it out; sweeps set it for their trials",
	},
	{of: "ShipSweep.id", required: true, doc: "The ID of the sweep.", example: "id: hp"},
	{of: "ShipSweep.execution", required: true, doc: "The first execution of its workflow.", example: "execution: 01a0b1c2"},
	{of: "HostService.host", doc: "The name of the host.", example: "host: gpu1"},
	{of: "HostService.address", doc: "The address at which it serves the archive.", example: `address: "10.0.0.7:41000"`},
	{of: "HostService.fingerprint", doc: "The SHA-256 of its certificate, in hex.", example: "fingerprint: 9f86d081884c7d65"},
	{of: "HostService.token", doc: "The token with which the archive can be read.", example: "token: eyJydW4i"},
	{
		of:      "RunSpec.env",
		doc:     "Environment variables, in addition to the cleaned environment of the host worker.",
		example: `env: {LOG_LEVEL: "info", TOKEN: {from_env: HF_TOKEN}}`, remedy: envRemedy,
		otherFlags: []string{"--env", "-x", "--secret"},
	},
	{
		of: "Source.from_env", syntax: elsewhere,
		doc:     "Instead of a value: the variable of the task's host worker that has it. The host reads it each time a process starts. The value is kept nowhere else; the history has only the name.",
		example: "from_env: HF_TOKEN",
	},
	{
		of: "Source.from_file", syntax: elsewhere,
		doc:     "Instead of a value: the absolute path of a file on the task's host that has it. A newline at its end is removed.",
		example: "from_file: /run/secrets/token",
	},
	{
		of:      "RunSpec.unset_env",
		doc:     "Variables of the host worker that the processes do not get: names, or the beginning of names followed by *. Variables in env are not affected.",
		example: `unset_env: [LD_PRELOAD, "NCCL_*"]`,
	},
	{of: "RunSpec.unset_env[]", syntax: unsetSyntax},
	{
		of: "RunSpec.rpc_layer", def: DefaultRPCLayer,
		doc:     "The RPC layer in TF_CONFIG.",
		example: "rpc_layer: grpc",
	},
	{
		of: "RunSpec.env_profiles", def: envProfiles,
		doc:     "The sets of environment variables that processes get. Default: tensorflow, torch and jax. An empty list: none. With mpi, the processes are ranks of MPICH, Intel MPI or MVAPICH.",
		example: "env_profiles: [torch]",
	},
	{of: "RunSpec.env_profiles[]", enum: append(names(envProfiles), string(EnvMPI))},

	{
		of: "RunSpec.on_failure", def: DefaultOnFailure,
		doc:     "The effect of the final failure of a task on the others: stop them, or let them continue.",
		example: "on_failure: continue", enum: names(onFailures),
		flag: "on-failure", usage: "after a final failure, `stop|continue` the other tasks",
	},
	{
		of: "RunSpec.auto_restart", def: false,
		doc:     "Whether tasks that failed, were terminated or were stopped for their silence restart. A run on several hosts is also placed again without a host that is lost, unless on_failure is continue.",
		example: "auto_restart: true",
		flag:    "auto-restart", usage: "restart failed tasks",
	},
	{
		of: "RunSpec.max_restarts", bounds: "leave it out for no limit",
		doc:     "The most restarts after failures, of each task (scope task) or of the group (scope group). Default: no limit. Needs auto_restart, restart_scope: group, or a requeue_on with timeout or host-lost, whose returns to the queue it bounds as well.",
		example: "max_restarts: 3", least: new(0),
		flag: "max-restarts", usage: "restart each task, or the group, at most `N` times",
	},
	{
		of: "RunSpec.give_up_on_same_error", def: DefaultSameErrors, bounds: "0 means that they never end it",
		doc:     "The number of failures in a row with the same error, after which the task or the group is not restarted, unless a further step was reported in between. In a group they must be of the same task, or of several at once. Errors are the same if the program printed or reported them at the same place, with the same text except for numbers. Errors about a lost peer do not count, nor do failures of processes that report no steps and have lived for a minute. With 0 they never end it.",
		example: "give_up_on_same_error: 5", least: new(0),
	},
	{
		of: "RunSpec.on_oom", enum: names(onOOMs),
		doc:     "How a task ends that exits with 0 although the kernel has killed one of its processes to free memory: report says so in the report; fail makes it a failure, with the cause oom. If a task has no version 2 cgroup with a memory controller, all processes in the cgroup of its host worker count, or all on its host. Default: report.",
		example: "on_oom: fail",
	},
	{
		of: "RunSpec.restart_scope", def: DefaultRestartScope,
		doc:     "What restarts after a failure: the task, or the whole group. group implies auto_restart.",
		example: "restart_scope: task", enum: names(restartScopes),
		flag: "restart-scope", usage: "restart what failed or all: `task|group` (default task; group with --nproc-per-node)",
	},
	{
		of: "RunSpec.dependence_on_chief", def: true,
		doc:     "Whether the final exit of the chief ends the run. Without a chief it has no effect.",
		example: "dependence_on_chief: false",
	},
	{
		of: "RunSpec.chief_grace", def: DefaultChiefGrace,
		doc:     "How long the other tasks, together, may take to end by themselves after the chief has ended.",
		example: `chief_grace: 3s`,
	},
	{
		of:      "RunSpec.timeout",
		doc:     "The time after which the run is stopped, with the stop signal first, so that programs can still report. 0s: at once. Default: no limit.",
		example: "timeout: 90m",
		flag:    "timeout", usage: "stop the run after `TIME`",
	},
	{
		of: "RunSpec.max_run_time", from: positive,
		doc:     "The time after which everything that is left of the run is killed, from its start and without the time in the queue. Default: no limit.",
		example: "max_run_time: 12h",
	},
	{
		of: "RunSpec.placement_timeout", def: DefaultPlacementTimeout, from: positive,
		doc:     "How long the run waits for hosts before it fails with a PlacementError. If it is not given, a submitted run waits without limit.",
		example: "placement_timeout: 1m",
	},
	{
		of: "RunSpec.priority", def: DefaultPriority,
		doc:     "The priority among the runs that wait for room, from 1, the highest, to 5. Runs of one priority are served in the order in which they began to wait.",
		example: "priority: 3", least: new(FirstPriority), most: new(LastPriority),
		flag: "priority", usage: "priority `N`: 1, the highest, to 5",
	},
	{
		of: "RunSpec.notice_signal", syntax: signalSyntax,
		doc:     "The signal that the tasks get with every notice, from a draining host or a person. Default: none; they can ask for the notice.",
		example: "notice_signal: SIGUSR1", remedy: "write its name, such as SIGUSR1",
	},
	{
		of: "RunSpec.requeue_on", def: DefaultRequeueOn,
		doc:     "What makes the run pending again, with its age: preemption, by a draining host; timeout, by timeout or max_run_time; host-lost. max_restarts bounds the last two. With an empty list the run finishes.",
		example: "requeue_on: [preemption, timeout]",
	},
	{of: "RunSpec.requeue_on[]", enum: names(requeueOns)},
	{
		of:      "RunSpec.hosts",
		doc:     "On which hosts, and on how many, the tasks are placed; a plain number is the count. Default: any hosts with room, on as few hosts as possible.",
		example: "hosts: {count: 3, per_host: 3}", remedy: "write a number, or for example {count: 4, per_host: 8}",
	},
	{
		of:      "Hosts.count",
		doc:     `The number of hosts, among which the tasks are divided evenly if there is room for that; or a range such as "2:4" for an elastic run, which gets as many hosts as there is room on, here at least two and at most four, and the same number of tasks on each. The spec has the number of tasks for the most hosts; with fewer hosts the last type has fewer tasks. A range needs restart_scope: group.`,
		example: "count: 4", remedy: hostCountRemedy,
		flag: "hosts", usage: "use `N` hosts, or MIN:MAX (default: as few as fit)",
	},
	{
		of:      "Hosts.per_host",
		doc:     "The number of tasks on each host, with consecutive ranks; the last host has the rest.",
		example: "per_host: 8", least: new(1), most: new(MaxTasks),
	},
	{
		of: "Hosts.select", filled: true,
		doc:     "The hosts that may have tasks: names, or patterns with *, ? and [a-z], one of which has to match.",
		example: `select: ["gpu-[1-9]"]`,
	},
	{of: "Hosts.select[]", syntax: hostPatternSyntax},
	{
		of: "Hosts.constraints", filled: true,
		doc:     `What each host has to meet, as KEY OP VALUE. The keys are name, gpu.model, gpu.count, gpu.memory, memory, cpus, slots and the labels of hosts; the operators are == != >= <= > <. Sizes are written like 512GiB.`,
		example: `constraints: ["gpu.model == H100", "memory >= 512GiB", "rack == r7"]`,
		flag:    "constraint", repeated: true, usage: "only hosts with `EXPR`, such as 'memory >= 512GiB'",
	},
	{of: "Hosts.constraints[]", syntax: constraintSyntax},
	{
		of: "Hosts.strategy", def: DefaultStrategy, enum: names(strategies),
		doc:     "Whether the hosts are filled one after the other, or the tasks are spread one by one over as many hosts as possible.",
		example: "strategy: spread",
	},
	{
		of: "Hosts.exclusive", def: false,
		doc:     "Whether no other run may have tasks on these hosts at the same time.",
		example: "exclusive: true",
	},
	{
		of:      "RunSpec.elastic",
		doc:     "How an elastic run, whose hosts.count is a range, gets its hosts.",
		example: "elastic: {join_wait: 30s, grow: next-generation}",
	},
	{
		of: "Elastic.join_wait", def: DefaultJoinWait,
		doc:     "How long the run waits for more hosts when it has enough to begin, at its start and after it had too few.",
		example: "join_wait: 30s",
	},
	{
		of: "Elastic.grow", def: DefaultGrow, enum: names(grows),
		doc:     "Whether a run that lost hosts, or started with fewer than its maximum, gets more hosts in its next generation. No task is stopped for that. With never, the run stays on its hosts as long as there are enough of them.",
		example: "grow: next-generation",
	},
	{
		of: "RunSpec.barriers", def: DefaultBarriers,
		doc:     "What releases the barriers of the tasks: the Temporal server, for tasks on any hosts, or with local their host, in microseconds. local needs all tasks on one host.",
		example: "barriers: local", enum: names(barrierWays),
	},
	{
		of:      "RunSpec.on_disconnect",
		doc:     "The treatment of processes by a host that cannot reach the Temporal server: keep lets them continue, and no host is ever given up; {stop_after: TIME} stops them after that time, so that they can restart elsewhere. With {stop_after: TIME, outage: TIME} a host asks the other hosts of the run: it stops its processes after stop_after if it reaches none of them, and after outage if none of them reaches the server. Hosts reach each other if their workers serve output (--listen). Default: keep on one host, {stop_after: 15s, outage: 10m} on hosts that reach each other (more than 15s above 120 tasks), {stop_after: 2m} on others, and on one host if requeue_on has host-lost.",
		example: "on_disconnect: {stop_after: 2m}", remedy: disconnectRemedy,
		flag: "on-disconnect", usage: "a host without the server stops its tasks after `TIME`, or keep",
	},
	{
		of: "RunSpec.silence", syntax: silenceSyntax,
		doc:     "The time without output, progress and processor time after which a task is shown as silent. At least 30s; with auto, 5 times the longest pause of its process so far, and at least 10m. Only output in files counts, and less than a hundredth of a processor counts as none. Default: 10m for several tasks; a run of one task, and one with never, does not watch silence.",
		example: "silence: 10m", remedy: silenceRemedy,
		flag: "silence", usage: "report tasks without output and progress for `TIME`, or auto",
	},
	{
		of:      "RunSpec.silence_ignores_cpu",
		doc:     "Whether only output and progress are signs of being at work, and processor time is not: processes that wait for NCCL, or poll for messages in MPI, use all of a processor. Set it for programs that print or report progress regularly.",
		example: "silence_ignores_cpu: true",
	},
	{
		of: "RunSpec.on_silence", enum: names(onSilences),
		doc:     "The reaction to the silence of all tasks of the run on a host: report saves the stacks of all tasks and shows which ranks differ; restart does so and restarts all tasks, up to max_restarts times; stop does so and ends the silent tasks as failures with the cause silence, which restart like others. Default: report for several tasks; the silence of one task is only shown.",
		example: "on_silence: report",
		flag:    "on-silence", usage: "then do `ACTION`: report, restart or stop",
	},
	{
		of: "RunSpec.python_stacks", def: true,
		doc:     "Whether stacks show the lines of Python programs. For that, PYTHONPATH begins with a directory whose sitecustomize registers a handler of a real-time signal with faulthandler, and then executes the program's own sitecustomize.",
		example: "python_stacks: false",
	},
	{
		of:      "RunSpec.notify",
		doc:     "The webhook to notify when the run has ended, and when on_silence finds silent tasks. See `clusterrun help monitoring`.",
		example: "notify: {webhook: {from_file: /run/secrets/hook}}", remedy: notificationRemedy,
	},
	{
		of: "Notification.webhook", syntax: elsewhere,
		doc:     "The address that gets the notice as JSON, by POST: a text, or {from_env: NAME} or {from_file: PATH} of the host that sends it, since the addresses of many services are secrets.",
		example: `webhook: "https://example.com/hook"`, remedy: `write an address, such as "https://example.com/hook", or {from_file: PATH}`,
		flag: "notify", usage: "send a notice to `URL` when the run ends or hangs",
	},
	{
		of:      "Notification.secret",
		doc:     "The secret that signs the notice with HMAC-SHA256, as Standard Webhooks do.",
		example: "secret: {from_file: /run/secrets/hook-key}", remedy: sourceRemedy,
	},

	{
		of:      "RunSpec.after",
		doc:     "The runs that must have ended before this run begins, by their IDs. A run waits for the latest run with the ID at the time of its own start. It is skipped if one of them has ended in another way.",
		example: "after: [{run: prepare-x2k4}, {run: train-k4x2, when: any}]", remedy: "write a list, such as after: [{run: prepare-x2k4}]",
		flag: "after", repeated: true, usage: "start after the end of `RUN`, or of RUN:ok, RUN:failed or RUN:any (default: ok)",
	},
	{of: "RunSpec.after[]", remedy: "write for example {run: prepare-x2k4}"},
	{
		of: "After.run", required: true, filled: true,
		doc:     "The ID of the earlier run.",
		example: "run: prepare-x2k4",
	},
	{
		of: "After.when", enum: names(afterWhens), def: AfterOK,
		doc:     "How the earlier run must have ended: ok, with success; failed, otherwise, but not as skipped; any.",
		example: "when: any",
	},

	{
		of: "RunSpec.record_source", def: true,
		doc:     "Whether the start of the run records the git work tree that it is started from: the commit, the branch, and the names and digests of the files that differ from it. show and diff have them.",
		example: "record_source: false",
	},

	{
		of:      "RunSpec.stop",
		doc:     "How processes are asked to end, and how long they have.",
		example: "stop: {signal: SIGTERM, grace: 30s}",
	},
	{
		of: "Stop.signal", def: DefaultStopSignal, syntax: signalSyntax,
		doc:     "The signal that the program gets first.",
		example: "signal: SIGINT", remedy: "write its name, such as SIGTERM",
	},
	{
		of: "Stop.grace", def: DefaultStopGrace,
		doc:     "The time from the signal to SIGKILL.",
		example: "grace: 30s",
		flag:    "grace", usage: "wait `TIME` from the stop signal to SIGKILL",
	},
	{
		of: "Stop.scope", def: StopScopeProgram, enum: names(stopScopes),
		doc:     "Who gets the signal at once: program, only the program of the task, and its helpers once it has ended or the last tenth of the grace begins; or group, all of its process group. Helpers such as loader processes may be needed to save a checkpoint.",
		example: "scope: group",
	},
	{
		of: "Stop.error_grace", def: DefaultErrorGrace,
		doc:     "How long a process that has printed or reported an error may take to end by itself before it gets the signal. It is part of grace. After the first loss of a peer, a run waits as long for the task that caused it.",
		example: "error_grace: 2s",
	},

	{
		of:      "RunSpec.stop_together",
		doc:     "How the tasks stop gracefully, each by itself, when one of them or a person asks for it.",
		example: "stop_together: {grace: 2m}",
	},
	{
		of: "StopTogether.grace", def: DefaultTogetherGrace,
		doc:     "How long the tasks have to end by themselves after the request; then those left are stopped.",
		example: "grace: 2m",
	},
	{
		of: "StopTogether.clean_errors", def: DefaultCleanErrors,
		doc:     "The kinds of errors with which a request to stop is not a failure. EOF also stands for io.EOF. A list replaces the default; an empty list: every error is a failure.",
		example: "clean_errors: [OutOfRangeError]",
	},
	{of: "StopTogether.clean_errors[]", syntax: errorKindSyntax},
	{
		of: "StopTogether.ignore_live_tasks", def: false,
		doc:     "Whether the run succeeds although tasks had to be stopped at the end of the grace.",
		example: "ignore_live_tasks: true",
	},

	{
		of:      "RunSpec.closures",
		doc:     "The settings of the run's closure queue.",
		example: "closures: {queue_size: 1000}",
	},
	{
		of: "Closures.queue_size", def: DefaultQueueSize, bounds: "0 means no limit but that of bytes",
		doc:     "How many closures may wait to be called, those being called not counted; schedule waits while it is full. 0: no limit but 1.5 MiB for arguments and names.",
		example: "queue_size: 1000", least: new(0), most: new(MaxQueueSize),
	},
	{
		of: "Closures.transient_failures", bounds: "0 means that the first failure counts",
		doc:     "How many reports that the same other task, such as a parameter server, does not answer make an error; before, the closure is called again. 0 and 1: the first one does. Default: the variable " + EnvTransientFailures + ", else 3.",
		example: "transient_failures: 3", least: new(0),
	},

	{
		of:      "RunSpec.logs",
		doc:     "The destination of the output of the processes.",
		example: "logs: {dir: /var/log/job}",
	},
	{
		of: "Logs.dir", syntax: pathSyntax,
		doc:     "The root of the log directories on each host, created if missing. Default: below the host worker's state directory. /dev/null: no files at all, not even results and error files.",
		example: "dir: /var/log/job",
		flag:    "log-dir", usage: "write output files in `DIRECTORY` (default: in the state directory)",
	},
	{
		of: "Logs.group", syntax: nameSyntax,
		doc:     "A Unix group on each host that may also read the output files. The user must be in it. Default: only the user of the processes can read them.",
		example: "group: ml",
	},
	{
		of: "Logs.redirects", def: DefaultStdMask, syntax: stdSyntax,
		doc:     `Which streams go to files: "0" none, "1" stdout, "2" stderr, "3" both; or by rank, "0:3,1-7:1". A stream that neither goes to files nor is teed goes straight to the console, without a prefix, and only its last 64 KiB are kept in its file, for reports.`,
		example: `redirects: "3"`,
	},
	{
		of: "Logs.tee", def: DefaultStdMask, syntax: stdSyntax,
		doc:     "Which streams go to files and to the console, written as for redirects.",
		example: `tee: "3"`,
		flag:    "tee", usage: "streams to show, by `MASK`: 0 none, 1 stdout, 2 stderr, 3 both, or by rank 0:3,1:0",
	},
	{
		of:      "Logs.local_ranks_filter",
		doc:     "Limits the console to these local ranks. Empty: all.",
		example: "local_ranks_filter: [0]",
	},
	{of: "Logs.local_ranks_filter[]", syntax: elsewhere, least: new(0), most: new(MaxTasks - 1)},
	{
		of:      "Logs.filter",
		doc:     "Limits the console to these tasks and types. Empty: all.",
		example: "filter: [worker-0, worker]",
		flag:    "filter", usage: "show only the output of `TASKS`, such as worker-0,ps",
	},
	{of: "Logs.filter[]", syntax: elsewhere},
	{
		of:      "Logs.duplicate_stdout_filters",
		doc:     "Lines of stdout that contain one of these texts are collected in filtered_stdout.log on each host.",
		example: `duplicate_stdout_filters: [loss]`,
	},
	{of: "Logs.duplicate_stdout_filters[]", syntax: lineFilterSyntax},
	{
		of:      "Logs.duplicate_stderr_filters",
		doc:     "The same for stderr, in filtered_stderr.log.",
		example: `duplicate_stderr_filters: [Error]`,
	},
	{of: "Logs.duplicate_stderr_filters[]", syntax: lineFilterSyntax},
	{
		of: "Logs.quota", syntax: quotaSyntax,
		doc:     "How much the tasks of the run may write to their output files on each host, in all and over all restarts. Default: no limit.",
		example: "quota: 10GiB",
	},
	{
		of: "Logs.on_full", enum: names(onFulls),
		doc:     "What happens at the quota: fail ends the task that has written most, with the cause log-quota, and thereby the run; drop leaves out further output, and says so in the file and in the result. Default: fail.",
		example: "on_full: drop",
	},
	{
		of: "Logs.timestamps", def: false,
		doc:     "Whether console lines begin with the time of day.",
		example: "timestamps: true",
	},
	{
		of: "Logs.prefix", def: DefaultPrefix, syntax: prefixSyntax,
		doc:     "The template for the start of each console line, made of text and {{.Type}}, {{.Index}}, {{.Rank}}, {{.LocalRank}}, {{.Attempt}} and {{.Host}}, or ${role_name}, ${rank} and ${local_rank}. The default is padded to 14 columns and followed by a space. An empty text: no prefix.",
		example: `prefix: "[{{.Type}}-{{.Index}}]:"`,
		flag:    "log-prefix", usage: "start lines with `TEMPLATE` (default \"" + DefaultPrefix + "\")",
	},

	{
		of: "RunSpec.devices", syntax: devicesSyntax,
		doc:     "The GPUs of each host that are divided among its tasks, in CUDA_VISIBLE_DEVICES: auto for all, or a list. Default: every task sees all.",
		example: "devices: auto", remedy: resourcesRemedy,
		flag: "devices", usage: "divide these `GPUS` among the tasks: auto, or 0,1,2,3 (default: each sees all)",
	},
	{
		of: "RunSpec.gpus_per_task", least: new(1), most: new(maxResources),
		doc:     "How many GPUs each task has for itself, in CUDA_VISIBLE_DEVICES, instead of devices. Runs that share a host get different ones.",
		example: "gpus_per_task: 1",
		flag:    "gpus-per-task", usage: "give each task `N` GPUs of its own",
	},
	{
		of: "RunSpec.cpus", syntax: cpusSyntax,
		doc:     "The CPUs of each host that are divided among its tasks, in blocks: auto for all, or a list. Default: no binding.",
		example: "cpus: auto", remedy: cpusRemedy,
		flag: "cpus", usage: "divide these `CPUS` among the tasks, and bind them: auto, or 0-7,16",
	},
	{
		of:      "RunSpec.limits",
		doc:     "Bounds for what each task, with all its processes, uses of its host. A host that cannot enforce a limit refuses the run before anything starts.",
		example: "limits: {memory: 8GiB, pids: 500}",
	},
	{
		of: "Limits.memory", syntax: memorySyntax,
		doc:     "The memory; a task that needs more is killed, with the cause oom. Needs a version 2 cgroup that is delegated to the host worker.",
		example: "memory: 8GiB",
		flag:    "limit-memory", usage: "kill a task that uses more memory than `SIZE`",
	},
	{
		of: "Limits.cpus", least: new(1), most: new(maxResources),
		doc:     "The processor time, in processors; a task that needs more waits. Needs such a cgroup, too. To bind tasks to processors, use cpus outside of limits.",
		example: "cpus: 4",
	},
	{
		of: "Limits.pids", least: new(1), most: new(1 << 22),
		doc:     "The number of processes and threads; a task that has that many cannot fork. Needs such a cgroup, too, because setrlimit(2) counts all processes of a user.",
		example: "pids: 500",
	},
	{
		of: "Limits.nofile", least: new(8), most: new(1 << 30),
		doc:     "The number of files that each process may have open (ulimit -n), up to that of the host worker.",
		example: "nofile: 65536",
	},
	{
		of: "Limits.core", syntax: coreSyntax,
		doc:     "The size of core dumps (ulimit -c): none, unlimited, or a size, up to that of the host worker. The kernel decides where they go (kernel.core_pattern). Default: that of the host worker.",
		example: "core: none",
	},
	{
		of: "RunSpec.clean_shm", def: false,
		doc:     "Whether files in /dev/shm that earlier processes of the run have left are removed before a process is started again: those that its user has created there since its first process, and that no process has open. While a task of any run lives on the host, nothing is removed. Leave it off if the run keeps checkpoints there.",
		example: "clean_shm: true",
	},
	{
		of: "RunSpec.return_output", def: false,
		doc:     "Whether the result includes the last lines of the output.",
		example: "return_output: true",
	},

	{
		of:      "RunSpec.signature",
		doc:     "The signature for hosts with a policy, written by run and submit.",
		example: "signature: {expires: 2026-11-23T08:00:00Z}", remedy: "leave it out; signing a request sets it",
	},
	{
		of: "Signature.expires", syntax: expirySyntax,
		doc:     "The time after which no host accepts the run for the first time.",
		example: `expires: "2026-11-23T08:00:00Z"`,
	},
	{of: "Signature.size", doc: "The number of tasks that were signed; an elastic run may have fewer.", example: "size: 16", least: new(0), most: new(MaxTasks)},
	{of: "Signature.ssh", doc: "The signature as ssh-keygen writes it.", example: `ssh: "-----BEGIN SSH SIGNATURE-----"`},
}
