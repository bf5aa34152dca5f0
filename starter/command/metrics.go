package command

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/workers"
)

// meteredAt is the flag of commands that can serve metrics.
type meteredAt string

func (m *meteredAt) register(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(m), metricsFlag, "", "`ADDRESS` at which metrics are served for Prometheus, to anyone who can reach it: PORT for this machine only, "+
		"HOST:PORT, or :PORT for all addresses (see help metrics)")
}

// registerServers registers the flag for those of the embedded server.
func (m *meteredAt) registerServers(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(m), serverMetricsFlag, "", "`ADDRESS` at which the metrics of the server are served, as with --"+metricsFlag)
}

const metricsFlag, serverMetricsFlag = "metrics", "server-metrics"

// address returns where they are served; empty: they are not.
func (m meteredAt) address(flag string) (string, error) {
	if m == "" {
		return "", nil
	}
	address, err := workers.MetricsAddress(flag, string(m))
	if err != nil {
		return "", usagef("%s", err)
	}
	return address, nil
}
