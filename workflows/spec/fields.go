package spec

// fields lists a run spec's fields, in the order used by the reference and the flags. It is the
// source of the JSON Schema, the flags (their help and the fields they set), the defaults, the
// checks of single values, the remedies, and the reference. To add a field, add it here and to its
// Go type, and write the code that uses it. A test compares the table with the types.
var fields = []field{
	{
		of: "RunSpec.name", syntax: nameSyntax,
		doc:     "The first part of the run IDs of this spec.",
		example: "name: iris",
		flag:    "name", usage: "start the run ID with `NAME`",
	},
	{
		of: "RunSpec.command", filled: true, syntax: commandSyntax,
		doc:     "The argv of every task without its own command. No shell is involved.",
		example: commandExample,
	},
	{
		of: "RunSpec.tasks", required: true, filled: true,
		doc:        "The cluster's task groups. Their order determines the ranks.",
		example:    "tasks: [{type: worker, count: 2}]",
		remedy:     "for example, tasks: [{type: worker, count: 2}]",
		otherFlags: []string{"--task", "-n", "--nproc-per-node", "-H", "--hostfile"},
	},
	{of: "RunSpec.tasks[]", remedy: "for example, {type: worker, count: 2}"},

	{
		of: "TaskGroup.type", required: true, syntax: typeSyntax,
		doc:     "The task type, such as chief, worker, ps or evaluator.",
		example: "type: worker", remedy: "for example, type: worker",
	},
	{
		of: "TaskGroup.count", syntax: elsewhere,
		doc:     "The number of tasks. By default, they are placed on as few hosts as possible; hosts changes that. Default 1. Cannot be combined with addresses.",
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
		doc:     "Arguments appended to the command.",
		example: `args: ["--epochs=3"]`,
	},
	{
		of: "TaskGroup.dir", syntax: elsewhere,
		doc:     "Replaces the run's working directory.",
		example: "dir: /srv/ps",
	},
	{
		of:      "TaskGroup.env",
		doc:     "Environment variables. They override the run's.",
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
		doc:     `Like logs.redirects, but by index within the group: "3", or "0:3,1-7:1".`,
		example: `redirects: "3"`,
	},
	{
		of: "GroupLogs.tee", syntax: stdSyntax,
		doc:     "Like redirects.",
		example: `tee: "3"`,
	},
	{
		of: "TaskGroup.devices", syntax: devicesSyntax,
		doc:     "Replaces the run's devices for these tasks and is divided among them. An empty list means none.",
		example: "devices: []", remedy: resourcesRemedy,
	},
	{
		of: "TaskGroup.gpus_per_task", least: new(1), most: new(maxResources),
		doc:     "Replaces the run's gpus_per_task and devices.",
		example: "gpus_per_task: 2",
	},
	{
		of: "TaskGroup.cpus", syntax: cpusSyntax,
		doc:     "Replaces the run's cpus. An empty list means that tasks are not bound.",
		example: "cpus: [0, 1]", remedy: cpusRemedy,
	},
	{
		of:      "TaskGroup.limits",
		doc:     "Overrides fields of the run's limits.",
		example: "limits: {memory: 64GiB}",
	},
	{
		of:      "TaskGroup.overrides",
		doc:     `Changes to individual tasks, by index ("0", "1", …).`,
		example: `overrides: {"1": {args: ["--debug"]}}`,
		remedy:  `write the index and the change: {"1": {args: ["--debug"]}}`,
	},
	{of: "TaskGroup.overrides.*", remedy: `write the change: {args: ["--debug"]}`},
	{
		of: "Override.command", filled: true, syntax: commandSyntax,
		doc:     "Replaces the group's command.",
		example: "command: [./debug]",
	},
	{
		of: "Override.args", syntax: argsSyntax,
		doc:     "Replaces the group's args. An empty list means none.",
		example: `args: ["--debug"]`,
	},
	{
		of: "Override.dir", syntax: elsewhere,
		doc:     "Replaces the group's working directory.",
		example: "dir: /srv/debug",
	},
	{
		of:      "Override.env",
		doc:     "Environment variables. They override the group's.",
		example: `env: {DEBUG: "1"}`, remedy: envRemedy,
	},

	{
		of: "RunSpec.dir", syntax: elsewhere,
		doc:     "The processes' absolute working directory. It must exist on each host. Default: the host worker's directory. With ship, it can be a directory within the shipped one, such as src; the default is the shipped directory itself.",
		example: "dir: /srv/job",
		flag:    "dir", usage: "run in `DIRECTORY` (default: this one, or the shipped one; with submit to another server, the host worker's)",
	},
	{
		of:      "RunSpec.ship",
		doc:     "The directory that the run ships. Its files are packed when the run starts, and each host unpacks them into a private directory, in which the tasks run. A plain string is dir. .git and files that .gitignore matches are not shipped.",
		example: "ship: {dir: /home/ann/job, exclude: [\"*.ckpt\"]}", remedy: "write a directory or, for example, {dir: ., exclude: [data]}",
	},
	{
		of:      "Ship.dir",
		doc:     "The directory to ship, as it is when the run starts. Symbolic links that point outside it are refused.",
		example: "dir: /home/ann/job",
		flag:    "ship", usage: "run in a copy of `DIRECTORY` on each host, without files that .gitignore matches",
	},
	{
		of: "Ship.exclude", filled: true,
		doc:     "Further files to exclude, in .gitignore syntax. A pattern that starts with ! includes files that .gitignore matches.",
		example: `exclude: ["*.ckpt", /data]`,
		flag:    "exclude", repeated: true, usage: "with --ship: exclude files that match `PATTERN`, as in .gitignore",
	},
	{of: "Ship.exclude[]", syntax: excludeSyntax},
	{
		of: "Ship.limit", syntax: sizeSyntax,
		doc:     "The maximum size of the shipped files. Default: " + DefaultShipLimit + ".",
		example: "limit: 2GiB",
	},
	{
		of:      "Ship.archive",
		doc:     "The directory's archive, written by run and submit.",
		example: "archive: {size: 10240, files: 3}",
	},
	{
		of: "Archive.digest", syntax: matching(`^[0-9a-f]{64}$`, "SHA-256 in hex", "do not set ship.archive; `run` and `submit` set it"),
		doc:     "The archive's SHA-256 digest, in hex.",
		example: "digest: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	},
	{of: "Archive.size", doc: "The archive's size in bytes.", example: "size: 10240", least: new(0)},
	{of: "Archive.files", doc: "The number of files in the archive.", example: "files: 3", least: new(0)},
	{
		of:      "Ship.from",
		doc:     "The host that keeps the archive until the run has ended, written by run and submit.",
		example: `from: {host: gpu1, address: "10.0.0.7:41000"}`,
	},
	{
		of:      "Ship.sweep",
		doc:     "The sweep whose trials share the directory on each host. Sweeps set it.",
		example: "sweep: {id: hp, execution: 01a0b1c2}", remedy: "leave it out; sweeps set it for their trials",
	},
	{of: "ShipSweep.id", required: true, doc: "The sweep's ID.", example: "id: hp"},
	{of: "ShipSweep.execution", required: true, doc: "The first execution of the sweep's workflow.", example: "execution: 01a0b1c2"},
	{of: "HostService.host", doc: "The host's name.", example: "host: gpu1"},
	{of: "HostService.address", doc: "The address from which hosts fetch the archive.", example: `address: "10.0.0.7:41000"`},
	{of: "HostService.fingerprint", doc: "The SHA-256 digest of the host's certificate, in hex.", example: "fingerprint: 9f86d081884c7d65"},
	{of: "HostService.token", doc: "The token that permits reading the archive.", example: "token: eyJydW4i"},
	{
		of:      "RunSpec.env",
		doc:     "Environment variables, in addition to the host worker's cleaned environment.",
		example: `env: {LOG_LEVEL: "info", TOKEN: {from_env: HF_TOKEN}}`, remedy: envRemedy,
		otherFlags: []string{"--env", "-x", "--secret"},
	},
	{
		of: "Source.from_env", syntax: elsewhere,
		doc:     "Instead of a value: the name of a variable in the environment of the task's host worker. The host reads it each time a process starts. The value is not stored anywhere else; the history contains only the name.",
		example: "from_env: HF_TOKEN",
	},
	{
		of: "Source.from_file", syntax: elsewhere,
		doc:     "Instead of a value: the absolute path of a file on the task's host. A newline at the file's end is removed.",
		example: "from_file: /run/secrets/token",
	},
	{
		of:      "RunSpec.unset_env",
		doc:     "Variables of the host worker that the processes do not inherit: names, or prefixes of names followed by *. Variables in env are not affected.",
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
		doc:     "The sets of environment variables that processes receive. Default: tensorflow, torch and jax. An empty list means none. With mpi, the processes are ranks of MPICH, Intel MPI or MVAPICH.",
		example: "env_profiles: [torch]",
	},
	{of: "RunSpec.env_profiles[]", enum: append(names(envProfiles), string(EnvMPI))},

	{
		of: "RunSpec.on_failure", def: DefaultOnFailure,
		doc:     "What a task's final failure does to the other tasks: stop them, or let them continue.",
		example: "on_failure: continue", enum: names(onFailures),
		flag: "on-failure", usage: "after a final failure, `stop|continue` the other tasks",
	},
	{
		of: "RunSpec.auto_restart", def: false,
		doc:     "Whether tasks restart if they failed, were terminated or were stopped because they were silent. If a host is lost, a run on several hosts is also placed again without it, unless on_failure is continue.",
		example: "auto_restart: true",
		flag:    "auto-restart", usage: "restart failed tasks",
	},
	{
		of: "RunSpec.max_restarts", bounds: "omit it to set no limit",
		doc:     "The maximum number of restarts after failures, of each task (scope task) or of the group (scope group). Default: no limit. Requires auto_restart, restart_scope: group, or a requeue_on with timeout or host-lost; in that case, it also limits how often the run returns to the queue.",
		example: "max_restarts: 3", least: new(0),
		flag: "max-restarts", usage: "restart each task, or the group, at most `N` times",
	},
	{
		of: "RunSpec.give_up_on_same_error", def: DefaultSameErrors, bounds: "0 means that they never end the run",
		doc:     "The number of consecutive failures with the same error after which the task or the group is not restarted. A step beyond the latest one resets the count. In a group, the failures must be of the same task, or of several tasks together. Errors are the same if the program printed or reported them at the same place in the code, with messages that differ only in numbers. Errors about a lost peer do not count, nor do failures of processes that report no steps and have lived for a minute. 0 disables this.",
		example: "give_up_on_same_error: 5", least: new(0),
	},
	{
		of: "RunSpec.on_oom", enum: names(onOOMs),
		doc:     "How a task is judged if it exits with 0 although the kernel killed one of its processes to free memory: report mentions it in the report; fail makes it a failure, with the cause oom. If a task does not have its own version 2 cgroup with a memory controller, the kills in the host worker's cgroup count, or else all those on its host. Default: report.",
		example: "on_oom: fail",
	},
	{
		of: "RunSpec.restart_scope", def: DefaultRestartScope,
		doc:     "What restarts after a failure: the task, or the whole group. group implies auto_restart.",
		example: "restart_scope: task", enum: names(restartScopes),
		flag: "restart-scope", usage: "restart the failed `task|group` (default task; group with --nproc-per-node)",
	},
	{
		of: "RunSpec.dependence_on_chief", def: true,
		doc:     "Whether the chief's final exit ends the run. Without a chief, it has no effect.",
		example: "dependence_on_chief: false",
	},
	{
		of: "RunSpec.chief_grace", def: DefaultChiefGrace,
		doc:     "How long the other tasks, together, may take to exit after the chief has exited.",
		example: `chief_grace: 3s`,
	},
	{
		of:      "RunSpec.timeout",
		doc:     "The time after which the run is stopped. Tasks get the stop signal first, so that programs can still report. 0s stops the run immediately. Default: no limit.",
		example: "timeout: 90m",
		flag:    "timeout", usage: "stop the run after `TIME`",
	},
	{
		of: "RunSpec.max_run_time", from: positive,
		doc:     "The time after which the run is killed, including everything left of it. It counts from the start, without time in the queue. Default: no limit.",
		example: "max_run_time: 12h",
	},
	{
		of: "RunSpec.placement_timeout", def: DefaultPlacementTimeout, from: positive,
		doc:     "How long the run waits for hosts before it fails with a PlacementError. By default, a submitted run waits without limit.",
		example: "placement_timeout: 1m",
	},
	{
		of: "RunSpec.priority", def: DefaultPriority,
		doc:     "The priority among pending runs, from 1, the highest, to 5. Runs of equal priority are served in the order in which they entered the queue.",
		example: "priority: 3", least: new(FirstPriority), most: new(LastPriority),
		flag: "priority", usage: "priority `N`, from 1 (highest) to 5",
	},
	{
		of: "RunSpec.notice_signal", syntax: signalSyntax,
		doc:     "The signal that the tasks get with every notice, from a draining host or a person. Default: none; they can ask for the notice.",
		example: "notice_signal: SIGUSR1", remedy: "use its name, such as SIGUSR1",
	},
	{
		of: "RunSpec.requeue_on", def: DefaultRequeueOn,
		doc:     "What makes the run pending again, with its age: preemption, by a draining host; timeout, by timeout or max_run_time; host-lost. max_restarts bounds the last two. With an empty list the run finishes.",
		example: "requeue_on: [preemption, timeout]",
	},
	{of: "RunSpec.requeue_on[]", enum: names(requeueOns)},
	{
		of:      "RunSpec.hosts",
		doc:     "On which hosts, and on how many, the tasks are placed. A plain number is the count. Default: any hosts with enough free capacity, and as few as possible.",
		example: "hosts: {count: 3, per_host: 3}", remedy: "write a number or, for example, {count: 4, per_host: 8}",
	},
	{
		of:      "Hosts.count",
		doc:     `The number of hosts, among which the tasks are divided evenly if capacity permits; or a range such as "2:4" for an elastic run, which gets as many hosts as are available, here between two and four, with the same number of tasks on each. The spec states the number of tasks on the maximum number of hosts; with fewer hosts, the last type has fewer tasks. A range requires restart_scope: group.`,
		example: "count: 4", remedy: hostCountRemedy,
		flag: "hosts", usage: "use `N` hosts, or MIN:MAX (default: as few as possible)",
	},
	{
		of:      "Hosts.per_host",
		doc:     "The number of tasks on each host, with consecutive ranks. The last host runs the remaining tasks.",
		example: "per_host: 8", least: new(1), most: new(MaxTasks),
	},
	{
		of: "Hosts.select", filled: true,
		doc:     "The hosts that may run tasks: names, or patterns with *, ? and [a-z]. A host must match one of them.",
		example: `select: ["gpu-[1-9]"]`,
		flag:    "select", repeated: true, usage: "only hosts whose names match `PATTERN`, such as 'gpu-*'",
	},
	{of: "Hosts.select[]", syntax: hostPatternSyntax},
	{
		of: "Hosts.strategy", def: DefaultStrategy, enum: names(strategies),
		doc:     "Whether to fill hosts one after the other, or to spread the tasks over as many hosts as possible.",
		example: "strategy: spread",
	},
	{
		of: "Hosts.exclusive", def: false,
		doc:     "Whether other runs are kept off these hosts while the run uses them.",
		example: "exclusive: true",
	},
	{
		of:      "RunSpec.elastic",
		doc:     "How an elastic run, with a range as hosts.count, gets its hosts.",
		example: "elastic: {join_wait: 30s, grow: next-generation}",
	},
	{
		of: "Elastic.join_wait", def: DefaultJoinWait,
		doc:     "How long a run that has enough hosts to start waits for more, at its start and after it had too few.",
		example: "join_wait: 30s",
	},
	{
		of: "Elastic.grow", def: DefaultGrow, enum: names(grows),
		doc:     "Whether a run that lost hosts, or started with fewer than its maximum, gets more hosts in its next generation. No task is stopped for that. With never, the run stays on its hosts as long as there are enough of them.",
		example: "grow: next-generation",
	},
	{
		of: "RunSpec.barriers", def: DefaultBarriers,
		doc:     "What releases the tasks' barriers: the Temporal server, for tasks on any hosts, or with local their host, in microseconds. local requires all tasks on one host.",
		example: "barriers: local", enum: names(barrierWays),
	},
	{
		of:      "RunSpec.on_disconnect",
		doc:     "What a host does with its processes when it cannot reach the Temporal server: keep lets them continue, and no host is ever given up; {stop_after: TIME} stops them after that time, so that they can restart elsewhere. With {stop_after: TIME, outage: TIME}, a host asks the run's other hosts: it stops its processes after stop_after if it reaches none of them, and after outage if none of them reaches the server. Hosts reach each other if their workers serve output (--listen). Default: keep on one host, {stop_after: 15s, outage: 10m} on hosts that reach each other (more than 15s with over 120 tasks), {stop_after: 2m} on others, and on one host if requeue_on includes host-lost.",
		example: "on_disconnect: {stop_after: 2m}", remedy: disconnectRemedy,
		flag: "on-disconnect", usage: "if a host loses the server, stop its tasks after `TIME`, or keep them",
	},
	{
		of: "RunSpec.silence", syntax: silenceSyntax,
		doc:     "The time without output, progress and processor time after which a task is reported as silent. At least 30s; with auto, 5 times its process's longest pause so far, and at least 10m. Only output that goes to files counts, and using less than a hundredth of a processor counts as not working. Default: 10m for several tasks; silence is not watched in a run of one task, or with never.",
		example: "silence: 10m", remedy: silenceRemedy,
		flag: "silence", usage: "report tasks without output and progress for `TIME`, or auto",
	},
	{
		of:      "RunSpec.silence_ignores_cpu",
		doc:     "Whether only output and progress count as signs of work, and not processor time. Processes that wait for NCCL or poll for messages in MPI use a whole processor. Set it for programs that regularly print or report progress.",
		example: "silence_ignores_cpu: true",
	},
	{
		of: "RunSpec.on_silence", enum: names(onSilences),
		doc:     "What happens when all of the run's tasks on a host are silent: report saves the stacks of all tasks and shows which ranks differ; stop does so and ends the silent tasks as failures with the cause silence, which restart like others. Default: report for several tasks; a single task's silence is only shown.",
		example: "on_silence: report",
		flag:    "on-silence", usage: "then `ACTION`: report or stop",
	},
	{
		of: "RunSpec.python_stacks", def: true,
		doc:     "Whether stacks show the lines of Python programs. If so, PYTHONPATH starts with a directory with a sitecustomize module that registers faulthandler for a real-time signal, and then runs the program's own sitecustomize.",
		example: "python_stacks: false",
	},
	{
		of:      "RunSpec.notify",
		doc:     "The webhook to notify when the run has ended, and when on_silence finds silent tasks. See `clusterrun help monitoring`.",
		example: "notify: {webhook: {from_file: /run/secrets/hook}}", remedy: notificationRemedy,
	},
	{
		of: "Notification.webhook", syntax: elsewhere,
		doc:     "The address to which the notification is posted as JSON: a string, or {from_env: NAME} or {from_file: PATH} on the host that sends it, since the addresses of many services are secrets.",
		example: `webhook: "https://example.com/hook"`, remedy: `write an address such as "https://example.com/hook", or {from_file: PATH}`,
		flag: "notify", usage: "notify `URL` when the run ends or hangs",
	},
	{
		of:      "Notification.secret",
		doc:     "The secret that signs the notification with HMAC-SHA256, as defined by Standard Webhooks.",
		example: "secret: {from_file: /run/secrets/hook-key}", remedy: sourceRemedy,
	},

	{
		of:      "RunSpec.after",
		doc:     "The IDs of the runs that must end before this run starts. The run waits for the latest run with each ID at the time it is started. It is skipped if one of them ends in another way.",
		example: "after: [{run: prepare-x2k4}, {run: train-k4x2, when: any}]", remedy: "for example, after: [{run: prepare-x2k4}]",
		flag: "after", repeated: true, usage: "start after `RUN` has ended, or RUN:ok, RUN:failed or RUN:any (default: ok)",
	},
	{of: "RunSpec.after[]", remedy: "for example, {run: prepare-x2k4}"},
	{
		of: "After.run", required: true, filled: true,
		doc:     "The earlier run's ID.",
		example: "run: prepare-x2k4",
	},
	{
		of: "After.when", enum: names(afterWhens), def: AfterOK,
		doc:     "How the earlier run must end: ok, successfully; failed, in another way, but not skipped; any.",
		example: "when: any",
	},

	{
		of: "RunSpec.record_source", def: true,
		doc:     "Whether starting the run records the git work tree in which it is started: the commit, the branch, and the names and digests of modified files. show and diff print them.",
		example: "record_source: false",
	},

	{
		of:      "RunSpec.stop",
		doc:     "How processes are stopped, and how much time they get.",
		example: "stop: {signal: SIGTERM, grace: 30s}",
	},
	{
		of: "Stop.signal", def: DefaultStopSignal, syntax: signalSyntax,
		doc:     "The signal that the program receives first.",
		example: "signal: SIGINT", remedy: "use its name, such as SIGTERM",
	},
	{
		of: "Stop.grace", def: DefaultStopGrace,
		doc:     "The time between the signal and SIGKILL.",
		example: "grace: 30s",
		flag:    "grace", usage: "wait `TIME` between the stop signal and SIGKILL",
	},
	{
		of: "Stop.scope", def: StopScopeProgram, enum: names(stopScopes),
		doc:     "Who receives the signal first: program, only the task's program (its helpers receive it once the program has exited, or in the last tenth of the grace); group, its whole process group. Saving a checkpoint may require helpers such as loader processes.",
		example: "scope: group",
	},
	{
		of: "Stop.error_grace", def: DefaultErrorGrace,
		doc:     "How long a process that has printed or reported an error may take to exit before it receives the signal. It is part of grace. After the first loss of a peer, a run waits as long for the task that caused it.",
		example: "error_grace: 2s",
	},

	{
		of:      "RunSpec.stop_together",
		doc:     "How the tasks stop themselves gracefully when a task or an operator requests it.",
		example: "stop_together: {grace: 2m}",
	},
	{
		of: "StopTogether.grace", def: DefaultTogetherGrace,
		doc:     "How long the tasks may take to exit after the request. Remaining tasks are then stopped.",
		example: "grace: 2m",
	},
	{
		of: "StopTogether.clean_errors", def: DefaultCleanErrors,
		doc:     "The kinds of errors that do not make a requested stop a failure. EOF also matches io.EOF. A list replaces the default. With an empty list, every error is a failure.",
		example: "clean_errors: [OutOfRangeError]",
	},
	{of: "StopTogether.clean_errors[]", syntax: errorKindSyntax},
	{
		of: "StopTogether.ignore_live_tasks", def: false,
		doc:     "Whether the run succeeds even if tasks had to be stopped at the end of the grace.",
		example: "ignore_live_tasks: true",
	},

	{
		of:      "RunSpec.closures",
		doc:     "The settings of the run's closure queue.",
		example: "closures: {queue_size: 1000}",
	},
	{
		of: "Closures.queue_size", def: DefaultQueueSize, bounds: "0 means that only bytes are limited",
		doc:     "How many closures may be queued, without those being executed; schedule waits while the queue is full. 0 means no limit except 1.5 MiB for arguments and names.",
		example: "queue_size: 1000", least: new(0), most: new(MaxQueueSize),
	},
	{
		of: "Closures.transient_failures", bounds: "0 means that the first failure counts",
		doc:     "How many reports that the same other task, such as a parameter server, does not respond are an error. Before that, the closure is called again. With 0 or 1, the first report is an error. Default: the variable " + EnvTransientFailures + ", or else 3.",
		example: "transient_failures: 3", least: new(0),
	},

	{
		of:      "RunSpec.logs",
		doc:     "Where the processes' output goes.",
		example: "logs: {dir: /var/log/job}",
	},
	{
		of: "Logs.dir", syntax: pathSyntax,
		doc:     "The root of the log directories on each host, created if missing. Default: in the host worker's state directory. /dev/null: no files at all, not even results and error files.",
		example: "dir: /var/log/job",
		flag:    "log-dir", usage: "write output files in `DIRECTORY` (default: in the state directory)",
	},
	{
		of: "Logs.group", syntax: nameSyntax,
		doc:     "A Unix group on each host that may also read the output files. The user must be a member. Default: only the processes' user can read them.",
		example: "group: ml",
	},
	{
		of: "Logs.redirects", def: DefaultStdMask, syntax: stdSyntax,
		doc:     `Which streams go to files: "0" none, "1" stdout, "2" stderr, "3" both; or by rank, "0:3,1-7:1". A stream that goes neither to files nor to tee is written directly to the console, without a prefix, and only its last 64 KiB are kept in its file, for reports.`,
		example: `redirects: "3"`,
	},
	{
		of: "Logs.tee", def: DefaultStdMask, syntax: stdSyntax,
		doc:     "Which streams go both to files and to the console, with the same syntax as redirects.",
		example: `tee: "3"`,
		flag:    "tee", usage: "show these streams, by `MASK`: 0 none, 1 stdout, 2 stderr, 3 both, or by rank 0:3,1:0",
	},
	{
		of:      "Logs.local_ranks_filter",
		doc:     "Limits the console to these local ranks. Empty means all.",
		example: "local_ranks_filter: [0]",
	},
	{of: "Logs.local_ranks_filter[]", syntax: elsewhere, least: new(0), most: new(MaxTasks - 1)},
	{
		of:      "Logs.filter",
		doc:     "Limits the console to these tasks and types. Empty means all.",
		example: "filter: [worker-0, worker]",
		flag:    "filter", usage: "show only the output of `TASKS`, such as worker-0,ps",
	},
	{of: "Logs.filter[]", syntax: elsewhere},
	{
		of:      "Logs.duplicate_stdout_filters",
		doc:     "Lines of stdout that contain one of these strings are copied to filtered_stdout.log on each host when the run ends.",
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
		doc:     "How much the run's tasks may write to their output files on each host, in total and across restarts. Default: no limit.",
		example: "quota: 10GiB",
	},
	{
		of: "Logs.on_full", enum: names(onFulls),
		doc:     "What happens at the quota: fail kills the task that has written most, with the cause log-quota, which fails the run; drop discards further output, and records that in the file and in the result. Default: fail.",
		example: "on_full: drop",
	},
	{
		of: "Logs.timestamps", def: false,
		doc:     "Whether console lines start with the time of day.",
		example: "timestamps: true",
	},
	{
		of: "Logs.prefix", def: DefaultPrefix, syntax: prefixSyntax,
		doc:     "The template for the start of each console line. It may contain {{.Type}}, {{.Index}}, {{.Rank}}, {{.LocalRank}}, {{.Attempt}} and {{.Host}}, or ${role_name}, ${rank} and ${local_rank}. The default is padded to 14 columns and followed by a space. An empty string means no prefix.",
		example: `prefix: "[{{.Type}}-{{.Index}}]:"`,
		flag:    "log-prefix", usage: "start lines with `TEMPLATE` (default \"" + DefaultPrefix + "\")",
	},

	{
		of: "RunSpec.devices", syntax: devicesSyntax,
		doc:     "The GPUs of each host to divide among its tasks, in CUDA_VISIBLE_DEVICES: auto for all, or a list. Default: every task sees all of them.",
		example: "devices: auto", remedy: resourcesRemedy,
		flag: "devices", usage: "divide these `GPUS` among the tasks: auto, or 0,1,2,3 (default: each sees all)",
	},
	{
		of: "RunSpec.gpus_per_task", least: new(1), most: new(maxResources),
		doc:     "How many GPUs each task gets for itself, in CUDA_VISIBLE_DEVICES; it replaces devices. Runs that share a host get different GPUs.",
		example: "gpus_per_task: 1",
		flag:    "gpus-per-task", usage: "give each task its own `N` GPUs",
	},
	{
		of: "RunSpec.cpus", syntax: cpusSyntax,
		doc:     "The CPUs of each host to divide among its tasks, in blocks: auto for all, or a list. Default: tasks are not bound.",
		example: "cpus: auto", remedy: cpusRemedy,
		flag: "cpus", usage: "divide these `CPUS` among the tasks and bind the tasks to them: auto, or 0-7,16",
	},
	{
		of:      "RunSpec.limits",
		doc:     "Limits what each task, including all its processes, uses on its host. A host that cannot enforce a limit refuses the run before anything starts.",
		example: "limits: {memory: 8GiB, pids: 500}",
	},
	{
		of: "Limits.memory", syntax: memorySyntax,
		doc:     "The maximum memory. A task that exceeds it is killed, with the cause oom. Requires a version 2 cgroup that is delegated to the host worker.",
		example: "memory: 8GiB",
		flag:    "limit-memory", usage: "kill a task that uses more memory than `SIZE`",
	},
	{
		of: "Limits.cpus", least: new(1), most: new(maxResources),
		doc:     "The maximum processor time, in processors. A task that reaches it is throttled. Requires a delegated version 2 cgroup. To bind tasks to processors, use cpus outside limits.",
		example: "cpus: 4",
	},
	{
		of: "Limits.pids", least: new(1), most: new(1 << 22),
		doc:     "The maximum number of processes and threads. A task that reaches it cannot fork. Requires a delegated version 2 cgroup, because setrlimit(2) counts all of a user's processes.",
		example: "pids: 500",
	},
	{
		of: "Limits.nofile", least: new(8), most: new(1 << 30),
		doc:     "The maximum number of open files of each process (ulimit -n), up to the host worker's limit.",
		example: "nofile: 65536",
	},
	{
		of: "Limits.core", syntax: coreSyntax,
		doc:     "The maximum size of core dumps (ulimit -c): none, unlimited, or a size, up to the host worker's limit. The kernel decides where they are written (kernel.core_pattern). Default: the host worker's limit.",
		example: "core: none",
	},
	{
		of: "RunSpec.clean_shm", def: false,
		doc:     "Whether files in /dev/shm left by the run's earlier processes are removed before a process restarts. Only files that its user has created there since its first process started, and that no process has open, are removed, and only while no task of any run is alive on the host. Leave it off if the run keeps checkpoints there.",
		example: "clean_shm: true",
	},
	{
		of: "RunSpec.return_output", def: false,
		doc:     "Whether the result includes the last lines of output.",
		example: "return_output: true",
	},

	{
		of:      "RunSpec.signature",
		doc:     "The signature for hosts with a policy, written by run and submit.",
		example: "signature: {expires: 2026-11-23T08:00:00Z}", remedy: "leave it out; signing a request sets it",
	},
	{
		of: "Signature.expires", syntax: expirySyntax,
		doc:     "The time after which hosts no longer accept the run for the first time.",
		example: `expires: "2026-11-23T08:00:00Z"`,
	},
	{of: "Signature.size", doc: "The number of tasks that were signed. An elastic run may have fewer.", example: "size: 16", least: new(0), most: new(MaxTasks)},
	{of: "Signature.ssh", doc: "The signature, in ssh-keygen's format.", example: `ssh: "-----BEGIN SSH SIGNATURE-----"`},
}
