package spec

import (
	"slices"
	"strconv"
)

// MasterPort returns the variable MASTER_PORT of rank 0, where the spec has it.
func (s *RunSpec) MasterPort() (v Variable, given bool) {
	tasks := s.TaskList()
	if len(tasks) == 0 {
		return Variable{}, false
	}
	v, given = tasks[0].Env[masterPort]
	return v, given
}

const masterPort = "MASTER_PORT"

// checkStore refuses a store that processes are not told of, or that no host can serve.
func (c *checker) checkStore(s *RunSpec) {
	if !s.AgentStore {
		return
	}
	if s.EnvProfiles != nil && !slices.Contains(s.EnvProfiles, EnvTorch) {
		c.add("agent_store", "the store is for torch, and env_profiles leaves torch out", "leave out agent_store, or add torch to env_profiles")
	}
	v, given := s.MasterPort()
	if n, err := strconv.ParseUint(v.Value, 10, 16); given && (err != nil || n == 0) {
		c.add("agent_store", "MASTER_PORT in env is no port from 1 to 65535, at which the store could be served", "leave out MASTER_PORT, or agent_store")
	}
}
