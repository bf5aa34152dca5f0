package resources

// Inventory lists the GPUs and CPUs of this host for tasks.
type Inventory struct {
	GPUs GPUs
	// CPUs are in topology order: the CPUs of a core are adjacent, and so are the cores of a
	// NUMA node.
	CPUs []CPU
}

// Read takes stock of this host. env is the environment of the host worker.
func Read(env []string) (Inventory, error) {
	allowed, err := allowedCPUs()
	if err != nil {
		return Inventory{}, err
	}
	return Inventory{GPUs: readGPUs("/", env), CPUs: readCPUs("/", allowed)}, nil
}

// ReadGPUs returns the GPUs of [Read].
func ReadGPUs(env []string) GPUs { return readGPUs("/", env) }
