package spec_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestMostHosts(t *testing.T) {
	var addresses []string
	for i := range spec.MaxHosts {
		addresses = append(addresses, fmt.Sprint("h", i))
	}
	validate := func() error {
		return (&spec.RunSpec{Command: []string{"true"}, Tasks: []spec.TaskGroup{{Type: "worker", Addresses: addresses}}}).WithDefaults().Validate()
	}
	require.NoError(t, validate())
	addresses = append(addresses, "another")
	require.EqualError(t, validate(), "invalid run spec: tasks: addresses name 1901 hosts, and a run has at most 1900; use fewer hosts")
}
