package devserver

import (
	"net"

	"go.temporal.io/server/common/metrics"
)

// metricsConfig makes Temporal serve its metrics for Prometheus, under its usual names. Task queues
// are not labels, since each run on one host has a separate queue.
func metricsConfig(address string) *metrics.Config {
	if address == "" {
		return nil
	}
	return &metrics.Config{
		ClientConfig: metrics.ClientConfig{ExcludeTags: map[string][]string{"taskqueue": nil}},
		Prometheus:   &metrics.PrometheusConfig{ListenAddress: address},
	}
}

// checkMetrics returns an error if metrics cannot be served at an address. Temporal itself would
// only log it.
func checkMetrics(address string) error {
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return portError("--metrics", address, "choose another port", err)
	}
	return l.Close()
}
