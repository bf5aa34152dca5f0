package taskenv

import (
	"cmp"
	"encoding/json"
	"net"
	"strconv"
	"sync"

	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// tensorFlow sets TF_CONFIG unless it is too long.
func tensorFlow(env map[string]string, p Process, m hostapi.Member) error {
	config, err := tfConfig(p.Cluster, m)
	if err == nil && len("TF_CONFIG=")+len(config) < maxVariable {
		env["TF_CONFIG"] = config
	}
	return err
}

func tfConfig(c *hostapi.Cluster, m hostapi.Member) (string, error) {
	cluster, err := tfClusters.of(c.Members)
	if err != nil {
		return "", err
	}
	type task struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}
	own, err := json.Marshal(struct {
		Task     task   `json:"task"`
		RPCLayer string `json:"rpc_layer"`
	}{task{m.Type, m.Index}, cmp.Or(c.RPCLayer, "grpc")})
	if err != nil {
		return "", err
	}
	return `{"cluster":` + cluster + "," + string(own[1:]), nil
}

// tfClusters caches the part of TF_CONFIG that all tasks of the last cluster share, because a host
// often starts many tasks of the same cluster in succession.
var tfClusters lastTFCluster

type lastTFCluster struct {
	mu      sync.Mutex
	members hostapi.Members // never changed in place
	text    string
}

func (l *lastTFCluster) of(members hostapi.Members) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(members) > 0 && len(members) == len(l.members) && &members[0] == &l.members[0] {
		return l.text, nil
	}
	text, err := json.Marshal(tfCluster(members))
	if err != nil {
		return "", err
	}
	l.members, l.text = members, string(text)
	return l.text, nil
}

// tfCluster lists each type's addresses by index or, if there are gaps in the indices, maps indices
// to addresses, because a list would misnumber later tasks.
func tfCluster(members []hostapi.Member) map[string]any {
	byType := map[string]map[int]string{}
	for _, m := range members {
		if byType[m.Type] == nil {
			byType[m.Type] = map[int]string{}
		}
		byType[m.Type][m.Index] = m.Address
	}
	out := map[string]any{}
	for typ, addresses := range byType {
		out[typ] = addresses
		list := make([]string, 0, len(addresses))
		for i := range len(addresses) {
			if a, ok := addresses[i]; ok {
				list = append(list, a)
			}
		}
		if len(list) == len(addresses) {
			out[typ] = list
		}
	}
	return out
}

// torch sets the variables that torchrun sets.
func torch(env map[string]string, p Process, m hostapi.Member) {
	roleRank, roleSize := role(p.Cluster, m)
	env["RANK"] = strconv.Itoa(m.Rank)
	env["WORLD_SIZE"] = strconv.Itoa(len(p.Cluster.Members))
	env["LOCAL_RANK"] = strconv.Itoa(m.LocalRank)
	env["LOCAL_WORLD_SIZE"] = strconv.Itoa(m.LocalWorldSize)
	env["GROUP_RANK"] = strconv.Itoa(m.HostIndex)
	env["GROUP_WORLD_SIZE"] = strconv.Itoa(p.Cluster.Hosts)
	env["ROLE_NAME"] = m.Type
	env["ROLE_RANK"] = strconv.Itoa(roleRank)
	env["ROLE_WORLD_SIZE"] = strconv.Itoa(roleSize)
	env["MASTER_ADDR"] = p.Cluster.MasterAddr
	env["MASTER_PORT"] = strconv.Itoa(p.Cluster.MasterPort)
	env["TORCHELASTIC_RUN_ID"] = p.WorkflowID
	env["TORCHELASTIC_RESTART_COUNT"] = strconv.Itoa(p.Restart)
	env["TORCHELASTIC_MAX_RESTARTS"] = strconv.Itoa(p.MaxRestarts)
	// If it were True, even rank 0 would connect to a store, and wait forever, since there is none.
	env["TORCHELASTIC_USE_AGENT_STORE"] = "False"
	if p.ErrorFile != "" {
		env["TORCHELASTIC_ERROR_FILE"] = p.ErrorFile
	}
	setDefault(env, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")
	traces(env, p)
	if m.LocalWorldSize > 1 {
		// Otherwise each process uses all cores, and the processes slow each other down.
		setDefault(env, "OMP_NUM_THREADS", "1")
	}
}

// jax sets the coordinator's address, and the values that programs themselves pass to
// jax.distributed.initialize.
func jax(env map[string]string, p Process, m hostapi.Member) {
	env["JAX_COORDINATOR_ADDRESS"] = net.JoinHostPort(p.Cluster.MasterAddr, strconv.Itoa(p.Cluster.JAXPort))
	env["JAX_NUM_PROCESSES"] = strconv.Itoa(len(p.Cluster.Members))
	env["JAX_PROCESS_ID"] = strconv.Itoa(m.Rank)
}

// role returns m's rank among the tasks of its type, and their number.
func role(c *hostapi.Cluster, m hostapi.Member) (rank, size int) {
	for _, other := range c.Members {
		if other.Type != m.Type {
			continue
		}
		size++
		if other.Rank < m.Rank {
			rank++
		}
	}
	return rank, size
}
