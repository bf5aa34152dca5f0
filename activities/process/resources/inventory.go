package resources

// Inventory lists this host's GPUs and CPUs that tasks may use.
type Inventory struct {
	GPUs GPUs
	// CPUs are in topology order: a core's CPUs are adjacent, and so are a NUMA node's cores.
	CPUs []CPU
}

// Read returns the inventory for children of process pid, whose environment is env. A pid of 0
// stands for this process.
func Read(env []string, pid int) (Inventory, error) {
	allowed, err := allowedCPUs(pid)
	if err != nil {
		return Inventory{}, err
	}
	return Inventory{GPUs: readGPUs("/", env), CPUs: readCPUs("/", allowed)}, nil
}

// ReadGPUs returns the same GPUs as [Read].
func ReadGPUs(env []string) GPUs { return readGPUs("/", env) }
