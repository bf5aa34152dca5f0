package resources

// Inventory lists the GPUs and CPUs of this host for tasks.
type Inventory struct {
	GPUs GPUs
	// CPUs are in topology order: a core's CPUs are adjacent, and so are a NUMA node's cores.
	CPUs []CPU
}

// Read takes stock of this host for the children of process pid, which has the environment env. 0
// stands for this process.
func Read(env []string, pid int) (Inventory, error) {
	allowed, err := allowedCPUs(pid)
	if err != nil {
		return Inventory{}, err
	}
	return Inventory{GPUs: readGPUs("/", env), CPUs: readCPUs("/", allowed)}, nil
}

// ReadGPUs returns the GPUs of [Read].
func ReadGPUs(env []string) GPUs { return readGPUs("/", env) }
