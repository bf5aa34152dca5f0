package resources

// Inventory lists the GPUs and CPUs of this host for tasks.
type Inventory struct {
	GPUs GPUs
	// CPUs are in topology order: the CPUs of a core are adjacent, and so are the cores of a
	// NUMA node.
	CPUs []CPU
}

// Read takes stock of this host for what a process starts, which has the environment env. A pid of
// 0 stands for this process.
func Read(env []string, pid int) (Inventory, error) {
	allowed, err := allowedCPUs(pid)
	if err != nil {
		return Inventory{}, err
	}
	return Inventory{GPUs: readGPUs("/", env), CPUs: readCPUs("/", allowed)}, nil
}

// ReadGPUs returns the GPUs of [Read].
func ReadGPUs(env []string) GPUs { return readGPUs("/", env) }
