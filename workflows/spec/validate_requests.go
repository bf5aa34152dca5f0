package spec

import "fmt"

// Requests come from people in the middle of an incident, often through
// `temporal workflow update`, which accepts a misspelt field silently. So what
// is missing is refused, and nothing is taken for granted.

// Validate checks the request by itself. Whether its tasks exist is for the
// run to say. The error is an [*InvalidRequestError] with all problems.
func (r TaskRequest) Validate() error {
	c := &checker{}
	c.checkTaskNames(r.Tasks)
	if r.Signal != "" {
		c.checkSignal("signal", r.Signal)
	}
	c.checkDuration("grace", r.Grace, orZero)
	return c.requestError()
}

// Validate checks the request. The error is an [*InvalidRequestError].
func (r TerminateAllRequest) Validate() error {
	c := &checker{}
	if r.Signal != "" {
		c.checkSignal("signal", r.Signal)
	}
	c.checkDuration("grace", r.Grace, orZero)
	return c.requestError()
}

// Validate checks the request by itself. Whether its tasks exist is for the
// run to say. The error is an [*InvalidRequestError] with all problems.
func (r SignalRequest) Validate() error {
	c := &checker{}
	c.checkTaskNames(r.Tasks)
	if r.Signal == "" {
		c.add("signal", "missing", `give a signal by name, such as "SIGUSR1"`)
	} else {
		c.checkSignal("signal", r.Signal)
	}
	return c.requestError()
}

// Validate checks the request by itself. Whether the task may be started now is
// for the run to say. The error is an [*InvalidRequestError] with all problems.
func (r StartTaskRequest) Validate() error {
	c := &checker{}
	c.checkTaskName("task", r.Task)
	c.checkCommand("command", r.Command)
	c.checkArgs("args", r.Args)
	c.checkDir("dir", r.Dir)
	c.checkEnv("env", r.Env)
	c.checkExecBytes("", stringsBytes(r.Command)+stringsBytes(r.Args)+envBytes(r.Env))
	return c.requestError()
}

// Validate checks the request by itself. The error is an [*InvalidRequestError] with all problems.
func (r SilentRequest) Validate() error {
	c := &checker{}
	c.checkTaskNames(r.Tasks)
	return c.requestError()
}

// Validate checks the request by itself. Whether its tasks exist is for the
// run to say. The error is an [*InvalidRequestError] with all problems.
func (r StacksRequest) Validate() error {
	c := &checker{}
	for i, name := range r.Tasks {
		c.checkTaskName(indexPath("tasks", i), name)
	}
	return c.requestError()
}

func (c *checker) checkTaskNames(tasks []string) {
	if len(tasks) == 0 {
		c.add("tasks", "missing", `name the tasks, such as ["worker-1"]`)
	}
	for i, name := range tasks {
		c.checkTaskName(indexPath("tasks", i), name)
	}
}

func (c *checker) checkTaskName(path, name string) {
	_, _, err := ParseTaskName(name)
	c.addError(path, err)
}

// Validate accepts every request: a reason is a text like any other.
func (r StopRequest) Validate() error { return nil }

// maxTogetherKey bounds the key of a request to stop, in bytes.
const maxTogetherKey = 200

// Validate checks the request by itself. Whether its task exists is for the run to
// say. The error is an [*InvalidRequestError] with all problems.
func (r TogetherRequest) Validate() error {
	c := &checker{}
	c.checkAsker(r.Task, r.Generation)
	if len(r.Key) > maxTogetherKey {
		c.add("key", fmt.Sprintf("has %d bytes; a key has up to %d", len(r.Key), maxTogetherKey), "make it shorter")
	}
	if e := r.Error; e != nil && e.Kind == "" && e.Message == "" {
		c.add("error", "says nothing", `give its kind or its message, such as {"kind": "ValueError", "message": "bad batch"}`)
	}
	return c.requestError()
}

// Validate checks the request by itself. The error is an [*InvalidRequestError].
func (r ClearStopRequest) Validate() error {
	c := &checker{}
	c.checkAsker(r.Task, r.Generation)
	return c.requestError()
}

// checkAsker checks the task that asks; none is an operator.
func (c *checker) checkAsker(task string, generation int) {
	if task != "" {
		c.checkTaskName("task", task)
	}
	if generation < 0 {
		c.add("generation", fmt.Sprintf("must be at least 0, is %d", generation), "leave it out for the first")
	}
}
