package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestWaitingForWhatIsShipped(t *testing.T) {
	w := starter.Waiting{Queue: "clusterrun", Fetching: &spec.Fetching{Host: "gpu-1", Bytes: 60 << 20, Size: 120 << 20}}
	assert.Equal(t, "host gpu-1, which fetches what the run ships: 60 MiB of 120 MiB", WaitingLine(w, time.Now()))
	w.Fetching.Unpacking = true
	assert.Equal(t, "host gpu-1, which unpacks what the run ships: 60 MiB of 120 MiB", WaitingLine(w, time.Now()))
}
