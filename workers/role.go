package workers

// Role is what a host worker does for the runs of its queue. By default it does both.
type Role string

const (
	// RoleHost executes tasks, and serves no workflow: what it may do on the server is
	// bounded by the queues of its host.
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
