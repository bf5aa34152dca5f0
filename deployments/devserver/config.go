package devserver

import (
	"net"
	"strconv"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
)

// clusterName is stored in the database, but not visible anywhere.
const clusterName = "active"

// storeName only ties two parts of the configuration together.
const storeName = "sqlite"

// serverConfig is Temporal's static configuration: one shard, everything in one SQLite database, no
// archive, no profiler.
func serverConfig(o Options, p ports, db *config.SQL, k key) *config.Config {
	frontend := address(o.IP, p.frontend)
	service := func(port int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: o.IP}}
	}
	return &config.Config{
		Global: config.Global{
			Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: o.IP},
			TLS:        k.server(),
			Metrics:    metricsConfig(o.Metrics),
		},
		Persistence: config.Persistence{
			DefaultStore:     storeName,
			VisibilityStore:  storeName,
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{storeName: {SQL: db}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			string(primitives.FrontendService): service(p.frontend),
			string(primitives.HistoryService):  service(p.history),
			string(primitives.MatchingService): service(p.matching),
			string(primitives.WorkerService):   service(p.worker),
		},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchival{State: config.ArchivalDisabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: config.ArchivalDisabled},
		}},
		PublicClient: config.PublicClient{HostPort: frontend},
	}
}

// staticHosts lists the services' addresses, so that they need not search for each other.
func staticHosts(o Options, p ports) map[primitives.ServiceName]static.Hosts {
	return map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(address(o.IP, p.frontend)),
		primitives.HistoryService:  static.SingleLocalHost(address(o.IP, p.history)),
		primitives.MatchingService: static.SingleLocalHost(address(o.IP, p.matching)),
		primitives.WorkerService:   static.SingleLocalHost(address(o.IP, p.worker)),
	}
}

func address(ip string, port int) string {
	return net.JoinHostPort(ip, strconv.Itoa(port))
}
