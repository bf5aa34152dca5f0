package workers

// Role selects which of its queue's work a host worker does. By default it does all work.
type Role string

const (
	// RoleHost executes tasks but does not serve workflows. Its permissions on the server can be
	// limited to its host's queues.
	RoleHost Role = "host"
	// RoleController serves workflows but does not execute tasks.
	RoleController Role = "controller"
	// RoleBoth does both.
	RoleBoth Role = "both"
)

// servesWorkflows reports whether the role includes the queue's workflows.
func (r Role) servesWorkflows() bool { return r != RoleHost }

// servesTasks reports whether the role includes executing tasks.
func (r Role) servesTasks() bool { return r != RoleController }
