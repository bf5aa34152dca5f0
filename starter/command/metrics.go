package command

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/workers"
)

// meteredAt is a flag with an address at which metrics are served.
type meteredAt struct{ flag, given string }

// register adds the flag of commands with a host worker.
func (m *meteredAt) register(cmd *cobra.Command) {
	m.flag = workers.MetricsFlag
	cmd.Flags().StringVar(&m.given, m.flag, "", "`ADDRESS` at which metrics are served for Prometheus, to anyone who can reach it: PORT for this machine only, "+
		"HOST:PORT, or :PORT for all addresses (see help metrics)")
}

// registerServer adds the flag of commands with an embedded server.
func (m *meteredAt) registerServer(cmd *cobra.Command) {
	m.flag = serverMetricsFlag
	cmd.Flags().StringVar(&m.given, m.flag, "", "`ADDRESS` at which the metrics of the server are served, as with --"+workers.MetricsFlag)
}

const serverMetricsFlag = "server-metrics"

// address returns where they are served; empty: they are not.
func (m meteredAt) address() (string, error) {
	if m.given == "" {
		return "", nil
	}
	address, err := workers.MetricsAddress(m.flag, m.given)
	if err != nil {
		return "", usagef("%s", err)
	}
	return address, nil
}
