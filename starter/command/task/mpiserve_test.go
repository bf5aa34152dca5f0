package task

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/tests/must"
)

// A rank on a host that does not name the other ranks fails with a reason, which it reports. MPI
// itself reports only that its initialization failed.
func TestNoClusterForMPI(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "task")
	listener := must.Get(net.Listen("unix", socket))(t)
	reports := make(chan string, 1)
	host := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			report, _ := io.ReadAll(r.Body)
			reports <- string(report)
			return
		}
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, `{"error":{"code":"gone","message":"the process is over"}}`)
	}))
	host.Listener = listener
	host.Start()
	t.Cleanup(host.Close)
	t.Setenv("CLUSTERRUN_SOCKET", socket)
	rank := must.Get(task.Current())(t)
	here, there, err := os.Pipe()
	require.NoError(t, err)
	defer there.Close()

	require.ErrorContains(t, servePMI(t.Context(), rank, mpiRank{}, here, nil), "the process is over")
	require.Len(t, reports, 1)
	report := <-reports
	assert.Contains(t, report, `"MPI"`)
	assert.Contains(t, report, "the process is over")
	_, err = here.Read(nil)
	require.ErrorIs(t, err, os.ErrClosed, "so that the program sees it")
}

func TestParseAmount(t *testing.T) {
	for _, text := range []string{"nan", "inf", "-inf", "1e400", "-1", "-0.1", "x", ""} {
		_, err := parseAmount("TOTAL", text)
		assert.ErrorContains(t, err, "is not a number from 0", text)
	}
	n, err := parseAmount("CURRENT", "1e308")
	assert.NoError(t, err)
	assert.InEpsilon(t, 1e308, n, 0)
}
