package drill

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

// checkEvery is the time between the checks of a host without tasks, and noticedWithin bounds the time
// until the fleet knows their results.
const checkEvery, noticedWithin = time.Second, 20 * time.Second

// sickness is a file: the check of its host fails while it is there.
func (h *host) sickness() string { return filepath.Join(h.dir, "sick") }

func (h *host) check() string {
	return "drill=if [ -e '" + h.sickness() + "' ]; then echo 'it feels sick'; exit 1; fi"
}

// sicken makes a host without tasks fail its check. It returns the fault, if the fleet gives no
// reason for that.
func (s *stage) sicken(t *testing.T, h *host) []string {
	require.NoError(t, os.WriteFile(h.sickness(), nil, 0o600))
	var last string
	for deadline := time.Now().Add(noticedWithin); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		hosts, err := starter.GetFleet(s.client, "").Hosts(t.Context())
		i := slices.IndexFunc(hosts, func(o fleet.HostStatus) bool { return o.Name == h.name })
		if err != nil || i < 0 {
			last = fmt.Sprintf("not there: %v", err)
			continue
		}
		o := hosts[i]
		last = fmt.Sprintf("%s, because of %q: %q", o.State, o.CordonedBy, o.Failing)
		if o.State == fleet.HostCordoned && len(o.Failing) == 1 && strings.Contains(o.Failing[0].Reason, "it feels sick") {
			s.sick = append(s.sick, span{host: h.name, from: bootNanos()})
			return nil
		}
	}
	return []string{fmt.Sprintf("%s fails its check, and is %s", h.name, last)}
}

// recover makes the check of a host succeed again.
func (s *stage) recover(h *host) {
	for i := range s.sick {
		if s.sick[i].host == h.name && s.sick[i].until == 0 {
			s.sick[i].until = bootNanos()
		}
	}
	_ = os.Remove(h.sickness())
}

func TestAStartOnASickHostIsFound(t *testing.T) {
	sick := []span{{host: "host-a", from: 10, until: 20}, {host: "host-b", from: 10}}
	at := func(host string, started int64) string {
		return strings.Join(checkSick([]page{{pid: 1, task: "a-0", host: host, started: started}}, sick), "; ")
	}
	assert.Equal(t, "process 1 of a-0 was started on host-a, whose check failed", at("host-a", 15))
	assert.NotEmpty(t, at("host-b", 30))
	assert.Empty(t, at("host-a", 5))
	assert.Empty(t, at("host-a", 25))
	assert.Empty(t, at("host-c", 15))
}
