package harness

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// temporalPorts are the ports of Temporal's services, by variable name.
var temporalPorts = []string{
	"FRONTEND_GRPC_PORT", "FRONTEND_HTTP_PORT", "FRONTEND_MEMBERSHIP_PORT", "MATCHING_GRPC_PORT", "MATCHING_MEMBERSHIP_PORT",
	"HISTORY_GRPC_PORT", "HISTORY_MEMBERSHIP_PORT", "WORKER_GRPC_PORT", "WORKER_MEMBERSHIP_PORT",
}

// StartTemporal starts Temporal's own server on a PostgreSQL database, as described in
// `clusterrun help postgresql`. It skips the test without the programs. NUM_HISTORY_SHARDS,
// SQL_MAX_CONNS and DYNAMIC_CONFIG_FILE_PATH may be set in the test's environment.
func StartTemporal(t testing.TB) *Server {
	t.Helper()
	program, sql := tool(t, "temporal-server", "make postgresql"), tool(t, "temporal-sql-tool", "make postgresql")
	TemporalCLI(t)
	d := StartPostgreSQL(t)
	s := &Server{t: t, dir: t.TempDir(), Database: d}
	port := d.port
	for database, schema := range map[string]string{"temporal": "temporal", "temporal_visibility": "visibility"} {
		for _, args := range [][]string{{"create"}, {"setup-schema", "--version", "0.0"}, {"update-schema", "--schema-name", "postgresql/v12/" + schema}} {
			p := Start(t, s.dir, Env(s.dir, "SQL_PLUGIN=postgres12", "SQL_HOST=127.0.0.1", "SQL_PORT="+port, "SQL_USER="+temporalUser),
				append([]string{sql, "--database", database}, args...)...)
			require.Zero(t, p.ExitCode(), p.Stdout()+p.Stderr())
		}
	}
	env := Env(s.dir, "DB=postgres12", "POSTGRES_SEEDS=127.0.0.1", "DB_PORT="+port, "POSTGRES_USER="+temporalUser, "BIND_ON_IP=127.0.0.1", "LOG_LEVEL=error",
		"NUM_HISTORY_SHARDS="+cmp.Or(os.Getenv("NUM_HISTORY_SHARDS"), "512"), "SQL_MAX_CONNS="+cmp.Or(os.Getenv("SQL_MAX_CONNS"), "20"),
		"DYNAMIC_CONFIG_FILE_PATH="+cmp.Or(os.Getenv("DYNAMIC_CONFIG_FILE_PATH"), filepath.Join(Root(), "deployments/temporal/dynamicconfig.yaml")))
	for _, variable := range temporalPorts {
		port := lowPort(t)
		env = append(env, fmt.Sprint(variable, "=", port))
		if variable == "FRONTEND_GRPC_PORT" {
			s.Address = fmt.Sprint("127.0.0.1:", port)
		}
	}
	s.start = func() {
		s.process = Start(t, s.dir, env, program, "start")
		s.awaitHealth()
	}
	s.start()
	s.registerNamespace()
	return s
}

// lowPort returns a free port that fits PostgreSQL's smallint, as used in Temporal's table of
// services.
func lowPort(t testing.TB) (port int) {
	t.Helper()
	Eventually(t, "a low port is free", func() bool {
		port = 10000 + rand.IntN(10000) //nolint:gosec // no secret
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			return false
		}
		defer l.Close()
		return true
	})
	return port
}

// registerNamespace creates the namespace and the search attributes of runs.
func (s *Server) registerNamespace() {
	s.t.Helper()
	Eventually(s.t, "the server has a namespace", func() bool {
		code, _, _ := s.Temporal(s.t, "operator", "namespace", "create", "--namespace", "default", "--retention", "90d")
		return code == 0
	})
	register := strings.Fields(spec.RegisterAttributes())
	Eventually(s.t, "the server knows the search attributes", func() bool {
		code, _, _ := s.Temporal(s.t, register[1:]...)
		return code == 0
	})
}
