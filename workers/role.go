package workers

// Role selects which work of its queue a host worker does. By default it does all.
type Role string

const (
	// RoleHost executes tasks and serves no workflow. Its permissions on the server can be
	// limited to the queues of its host.
	RoleHost Role = "host"
	// RoleController serves workflows, and executes nothing.
	RoleController Role = "controller"
	// RoleBoth does both.
	RoleBoth Role = "both"
)

// servesWorkflows reports whether the workflows of the queue are served here.
func (r Role) servesWorkflows() bool { return r != RoleHost }

// servesTasks reports whether tasks are executed here.
func (r Role) servesTasks() bool { return r != RoleController }
