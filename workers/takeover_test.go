package workers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
)

// A side returns the tasks that a killed side held, each by its kind, but not the tasks that it
// gets itself in the meantime.
func TestWhatAnEarlierSideHeld(t *testing.T) {
	dir := t.TempDir()
	before := newHeldTasks(dir, zap.NewNop())
	before.keep(heldWorkflow, []byte("w"))
	before.keep(heldQueue, []byte("vm:1"))
	for i := range 2 * takeovers {
		before.keep(heldActivity, []byte(fmt.Sprint("a", i)))
	}
	h := newHeldTasks(dir, zap.NewNop())
	inherited := h.inherited()
	h.keep(heldActivity, []byte("new"))
	f := &fakeServer{t: t}
	s := f.side()
	s.Server.Namespace = "mine"
	s.takeOver(t.Context(), inherited)

	assert.Equal(t, []string{h.path(heldActivity, []byte("new"))}, h.inherited())
	activities := map[string]bool{}
	for _, r := range f.told {
		assert.Equal(t, "mine", r.(interface{ GetNamespace() string }).GetNamespace())
		switch r := r.(type) {
		case *workflowservice.RespondActivityTaskFailedRequest:
			activities[string(r.GetTaskToken())] = true
			why := r.GetFailure().GetApplicationFailureInfo()
			assert.False(t, why.GetNonRetryable())
			assert.Equal(t, time.Millisecond, why.GetNextRetryDelay().AsDuration(), "its next attempt is wanted at once")
		case *workflowservice.RespondWorkflowTaskFailedRequest:
			assert.Equal(t, "w", string(r.GetTaskToken()))
		case *workflowservice.ShutdownWorkerRequest:
			assert.Equal(t, "vm:1", r.GetStickyTaskQueue())
		default:
			t.Errorf("the server was told %T", r)
		}
	}
	assert.Len(t, activities, 2*takeovers)
	assert.Len(t, f.told, 2*takeovers+2, "each once")
}

// A request to a server that is away is repeated until the server would have given up itself. A
// request without an answer is not repeated.
func TestTheServerDoesNotTakeBack(t *testing.T) {
	away := serviceerror.NewUnavailable("away")
	for name, c := range map[string]struct {
		fail  []error
		tries int
	}{
		"it takes it":         {nil, 1},
		"it is away":          {[]error{away, away, away}, 4},
		"it wants no answer":  {[]error{serviceerror.NewNotFound("the activity is over")}, 1},
		"it does not know it": {[]error{away, serviceerror.NewInvalidArgument("no token")}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeldTasks(t.TempDir(), zap.NewNop())
				h.keep(heldActivity, []byte("a"))
				f := &fakeServer{t: t, fail: c.fail}
				f.side().takeOver(t.Context(), h.inherited())
				assert.Len(t, f.told, c.tries)
				assert.Empty(t, h.inherited())
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHeldTasks(t.TempDir(), zap.NewNop())
		h.keep(heldActivity, []byte("a"))
		f := &fakeServer{t: t}
		for range 1000 {
			f.fail = append(f.fail, errors.New("broken pipe"))
		}
		began := time.Now()
		f.side().takeOver(t.Context(), h.inherited())
		assert.Equal(t, giveBackPatience, time.Since(began))
		assert.Greater(t, len(f.told), 10)
		require.Empty(t, h.inherited(), "by then the server knows by itself")
	})
	h := newHeldTasks(t.TempDir(), zap.NewNop())
	h.keep(heldActivity, []byte("a"))
	ending, end := context.WithCancel(t.Context())
	end()
	f := &fakeServer{t: t, fail: []error{away}}
	f.side().takeOver(ending, h.inherited())
	assert.Len(t, h.inherited(), 1, "its successor gives it back")
}
