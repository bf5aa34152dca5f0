package worker

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/system/metrics"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
)

// MeteredAt is a flag for the metrics address.
type MeteredAt struct{ Flag, given string }

// Register adds the flag to a command with a host worker.
func (m *MeteredAt) Register(cmd *cobra.Command) {
	m.Flag = workers.MetricsFlag
	cmd.Flags().StringVar(&m.given, m.Flag, "", "`ADDRESS` at which metrics are served for Prometheus, to anyone who can reach it: PORT for this machine only, "+
		"HOST:PORT, or :PORT for all addresses (see help monitoring)")
}

// RegisterServer adds the flag to a command with an embedded server.
func (m *MeteredAt) RegisterServer(cmd *cobra.Command) {
	m.Flag = ServerMetricsFlag
	cmd.Flags().StringVar(&m.given, m.Flag, "", "`ADDRESS` at which the server's metrics are served, in the same form as --"+workers.MetricsFlag)
}

const ServerMetricsFlag = "server-metrics"

// Address returns the metrics address, or "" if metrics are not served.
func (m MeteredAt) Address() (string, error) {
	if m.given == "" {
		return "", nil
	}
	address, err := metrics.Address(m.Flag, m.given)
	if err != nil {
		return "", cli.Usagef("%s", err)
	}
	return address, nil
}
