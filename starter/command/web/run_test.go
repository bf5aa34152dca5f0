package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// slowServer answers nothing.
type slowServer struct{ client.Client }

func (slowServer) DescribeWorkflowExecution(ctx context.Context, _, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The page of a run does not wait for a slow server. Once the server has not answered in time, it
// says so.
func TestAPageOfASlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Options: Options{App: &cli.App{}, Client: slowServer{}}}
		get := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			s.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/runs/iris", nil))
			return w
		}
		began := time.Now()
		w := get()
		assert.Equal(t, patience, time.Since(began))
		assert.Equal(t, http.StatusOK, w.Code)
		assert.Contains(t, w.Body.String(), "It takes longer than usual")
		assert.Contains(t, w.Body.String(), `data-refresh="500"`)
		time.Sleep(askedFor)
		w = get()
		assert.Equal(t, http.StatusBadGateway, w.Code)
		assert.Contains(t, w.Body.String(), "The server did not answer within 15s. This page tries again.")
		assert.Equal(t, "5", w.Header().Get("Refresh"))
	})
}
