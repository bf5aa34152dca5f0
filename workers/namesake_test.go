package workers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/fleet"
)

// A name is taken if another host worker is in the fleet under it. One that is about to
// start has the instance of its state directory.
func TestCheckName(t *testing.T) {
	o := Options{StateDir: t.TempDir(), Host: "host-a", Queue: "q"}
	require.NoError(t, os.WriteFile(filepath.Join(o.StateDir, "instance"), []byte("mine\n"), 0o600))
	status := func(name, instance string, state fleet.HostState) fleet.HostStatus {
		return fleet.HostStatus{Host: fleet.Host{Name: name, Instance: instance}, State: state}
	}
	for name, c := range map[string]struct {
		hosts []fleet.HostStatus
		taken bool
	}{
		"there is no fleet":      {nil, false},
		"nobody is there":        {[]fleet.HostStatus{}, false},
		"it is there itself":     {[]fleet.HostStatus{status("host-a", "mine", fleet.HostReady)}, false},
		"another of its name":    {[]fleet.HostStatus{status("host-a", "other", fleet.HostReady)}, true},
		"another that drains":    {[]fleet.HostStatus{status("host-a", "other", fleet.HostDraining)}, true},
		"another that is silent": {[]fleet.HostStatus{status("host-a", "other", fleet.HostSilent)}, false},
		"others":                 {[]fleet.HostStatus{status("host-b", "other", fleet.HostReady)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := o.CheckName(t.Context(), &fakeServer{t: t, hosts: c.hosts})
			if !c.taken {
				require.NoError(t, err)
				return
			}
			var taken *NamesakeError
			require.ErrorAs(t, err, &taken)
			require.Equal(t, NamesakeError{Host: "host-a", Instance: "other", Queue: "q"}, *taken)
			require.ErrorContains(t, err, "--host-name")
		})
	}
	require.EqualError(t, Options{}.CheckName(t.Context(), &fakeServer{t: t}), "a host worker needs a state directory")
}
