package hostapi

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Member is a task in a cluster, and where it runs.
type Member struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
	Rank  int    `json:"rank"`
	// Host is the host worker's name.
	Host string `json:"host"`
	// Address is the "host:port" where other tasks reach this task.
	Address string `json:"address"`
	// LocalRank is the task's rank among the tasks on its host, and LocalWorldSize the number of
	// those tasks.
	LocalRank      int `json:"local_rank"`
	LocalWorldSize int `json:"local_world_size"`
	// HostIndex is the host's index in the run, from 0.
	HostIndex int `json:"host_index"`
}

// Name returns the task's name, such as "worker-3".
func (m Member) Name() string { return spec.TaskName(m.Type, m.Index) }

// Cluster describes the run to its processes. Every host of the run stores it.
type Cluster struct {
	// Members are in rank order.
	Members Members `json:"members"`
	// RPCLayer is written to TF_CONFIG.
	RPCLayer string `json:"rpc_layer,omitempty"`
	// MasterAddr is the address of rank 0's host, without a port. MasterPort and JAXPort are leased
	// on that host, for torch's store and JAX's coordinator.
	MasterAddr string `json:"master_addr,omitempty"`
	MasterPort int    `json:"master_port,omitempty"`
	JAXPort    int    `json:"jax_port,omitempty"`
	// Hosts is the number of hosts.
	Hosts int `json:"hosts"`
	// Profiles lists the sets of variables that processes receive.
	Profiles []spec.EnvProfile `json:"profiles,omitempty"`
}

// Member returns the task with the given name.
func (c *Cluster) Member(task string) (Member, error) {
	typ, index, err := spec.ParseTaskName(task)
	i := slices.IndexFunc(c.Members, func(m Member) bool { return m.Index == index && m.Type == typ })
	if err != nil || i < 0 {
		return Member{}, fmt.Errorf("task %s is not in the cluster", task)
	}
	return c.Members[i], nil
}
