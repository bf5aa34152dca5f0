package taskapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// nextOf is a function that answers serving processes.
type nextOf func(ctx context.Context, task string, in wire.ClosuresRequest) (wire.ClosuresAnswer, error)

func (f nextOf) Next(ctx context.Context, task string, in wire.ClosuresRequest) (wire.ClosuresAnswer, error) {
	return f(ctx, task, in)
}

// serves sets the function that answers serving processes.
func (h *host) serves(f nextOf) {
	h.Broker = func(runkey.Task, int) (Broker, error) { return f, nil }
}

func TestAServingProcessIsHeard(t *testing.T) {
	h := newHost(t, 1)
	var heard wire.ClosuresRequest
	h.serves(func(_ context.Context, task string, in wire.ClosuresRequest) (wire.ClosuresAnswer, error) {
		assert.Equal(t, "worker-0", task)
		heard = in
		return wire.ClosuresAnswer{Closures: []closure.Closure{{ID: 7, Function: "f", Args: []byte(`[1, "<"]`), Kwargs: []byte(`{}`), Resources: []uint64{4}}},
			Resources: []closure.Resource{{ID: 4, Function: "load"}}, Cancel: []uint64{5}}, nil
	})
	status, body, _ := h.do(0, "POST", wire.PathClosures, `{"process":"a-1","seq":2,"slots":3,"held":[1,2],"ending":[2],"resources":[8],"free":1,"wait":0.5,
		"done":[{"id":1,"value":[1, {"a": null}]},{"id":2,"kind":"error","error":{"kind":"ValueError","message":"no","traceback":"here"}},
		{"id":3,"kind":"unavailable","error":{"message":"no","task":"ps-0"}},{"id":4,"kind":"cancelled"}]}`)
	assert.Equal(t, 200, status)
	assert.Equal(t, `{"closures":[{"id":7,"function":"f","args":[1,"\u003c"],"kwargs":{},"resources":[4]}],"resources":[{"id":4,"function":"load"}],"cancel":[5]}`+"\n", body)
	assert.Equal(t, wire.ClosuresRequest{
		Process: "a-1", Seq: 2, Slots: 3, Held: []uint64{1, 2}, Ending: []uint64{2}, Resources: []uint64{8}, Free: 1, Wait: 0.5,
		Done: []closure.Outcome{
			{ID: 1, Value: []byte(`[1, {"a": null}]`)},
			{ID: 2, Kind: "error", Error: &closure.Error{Kind: "ValueError", Message: "no", Traceback: "here"}},
			{ID: 3, Kind: "unavailable", Error: &closure.Error{Message: "no", Task: "ps-0"}},
			{ID: 4, Kind: "cancelled"},
		},
	}, heard)
}

func TestBadServingProcessesAreRefused(t *testing.T) {
	h := newHost(t, 1)
	p := h.refused(501, wire.CodeNotThere, "POST", wire.PathClosures, `{"process":"a","seq":1}`)
	assert.Equal(t, "this host worker does not support closures for its tasks", p.Message)
	h.serves(func(context.Context, string, wire.ClosuresRequest) (wire.ClosuresAnswer, error) {
		assert.Fail(t, "the broker never sees this")
		return wire.ClosuresAnswer{}, nil
	})
	for _, c := range []struct{ body, field, message string }{
		{``, "process", "it is empty; give the process a unique random name"},
		{`{"process":"` + strings.Repeat("x", 65) + `"}`, "process", "must consist of at most 64 ASCII letters, digits and punctuation, without spaces"},
		{`{"process":"a b"}`, "process", "must consist of at most 64 ASCII letters, digits and punctuation, without spaces"},
		{`{"process":"a"}`, "seq", "it is missing; number the process's requests from 1"},
		{`{"process":"a","seq":-1}`, "seq", "it is a number -1; want a number from 0"},
		{`{"process":"a","seq":1,"slots":1025}`, "slots", "it is 1025; use 0 to 1024"},
		{`{"process":"a","seq":1,"slots":-1}`, "slots", "it is -1; use 0 to 1024"},
		{`{"process":"a","seq":1,"slots":2,"free":3}`, "free", "it is 3; use 0 to slots, which is 2"},
		{`{"process":"a","seq":1,"wait":21}`, "wait", "it is 21; use 0 to 20 seconds"},
		{`{"process":"a","seq":1,"wait":-1}`, "wait", "it is -1; use 0 to 20 seconds"},
		{`{"process":"a","seq":1,"pid":1}`, "pid", "unknown field; the fields are process, seq, slots, free, held, ending, resources, done, wait"},
		{`[]`, "", ""},
		{`{"process":"a","seq":1} {}`, "", ""},
	} {
		p := h.refused(400, wire.CodeInvalid, "POST", wire.PathClosures, c.body)
		assert.Equal(t, c.field, p.Field, c.body)
		if c.field != "" {
			assert.Equal(t, fmt.Sprintf("field %s: %s", c.field, c.message), p.Message)
		}
	}
	h.refused(413, wire.CodeTooLarge, "POST", wire.PathClosures, `{"process":"a","seq":1,"slots":`+strings.Repeat("1", maxClosures)+`}`)
	h.refused(405, wire.CodeMethod, "GET", wire.PathClosures, "")
}

func TestWhatTheBrokerRefuses(t *testing.T) {
	h := newHost(t, 1)
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{ErrClosuresAway, 503, wire.CodeClosuresAway},
		{fmt.Errorf("more: %w", ErrProcessEnded), 409, wire.CodeProcessEnded},
		{errors.New("else"), 500, wire.CodeInternal},
	} {
		h.serves(func(context.Context, string, wire.ClosuresRequest) (wire.ClosuresAnswer, error) {
			return wire.ClosuresAnswer{}, c.err
		})
		p := h.refused(c.status, c.code, "POST", wire.PathClosures, `{"process":"a","seq":1}`)
		assert.Contains(t, p.Message, c.err.Error())
	}
}

// A disconnected process stops waiting.
func TestAServingProcessGoesAway(t *testing.T) {
	h := newHost(t, 1)
	waits, left := make(chan struct{}), make(chan struct{})
	h.serves(func(ctx context.Context, _ string, _ wire.ClosuresRequest) (wire.ClosuresAnswer, error) {
		close(waits)
		<-ctx.Done()
		close(left)
		return wire.ClosuresAnswer{}, nil
	})
	c := dial(t, h.paths[0])
	body := `{"process":"a","seq":1,"wait":20}`
	_, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: task\r\nContent-Length: %d\r\n\r\n%s", wire.PathClosures, len(body), body)
	require.NoError(t, err)
	<-waits
	require.NoError(t, c.Close())
	<-left
}

// A serving process gets the request to stop like other tasks, immediately if it is waiting. It
// does not get closures from then on, and the request is not repeated once it has stopped serving.
func TestAServingProcessIsToldToStop(t *testing.T) {
	h := newHost(t, 1)
	waits := make(chan bool, 1)
	h.serves(func(ctx context.Context, _ string, in wire.ClosuresRequest) (wire.ClosuresAnswer, error) {
		if in.Seq == 1 {
			waits <- true
			<-ctx.Done()
		}
		assert.Equal(t, in.Wait > 0, in.Free > 0)
		return wire.ClosuresAnswer{Cancel: []uint64{in.Seq}}, nil
	})
	told := make(chan string, 1)
	go func() {
		_, body, _ := h.do(0, "POST", wire.PathClosures, `{"process":"a","seq":1,"slots":1,"free":1,"wait":20}`)
		told <- body
	}()
	<-waits
	h.SetStopping(h.run, spec.Stopping{Seq: 1, Stop: true})
	assert.Equal(t, `{"cancel":[1],"stop":true}`+"\n", <-told)
	_, body, _ := h.do(0, "POST", wire.PathClosures, `{"process":"a","seq":2,"slots":1,"free":1,"wait":20}`)
	assert.Equal(t, `{"cancel":[2],"stop":true}`+"\n", body)
	_, body, _ = h.do(0, "POST", wire.PathClosures, `{"process":"a","seq":3,"done":[{"id":1}]}`)
	assert.Equal(t, `{"cancel":[3]}`+"\n", body)
	h.SetStopping(h.run, spec.Stopping{Seq: 2})
	_, body, _ = h.do(0, "POST", wire.PathClosures, `{"process":"a","seq":4,"slots":1,"free":1,"wait":20}`)
	assert.Equal(t, `{"cancel":[4]}`+"\n", body)
}

// A process's clock stops while it waits, in one thread or in several.
func TestWaitsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var observed []float64
		w := newWork(func(seconds float64) { observed = append(observed, seconds) })
		assert.Nil(t, w.stepTime())
		for range 11 {
			time.Sleep(2 * time.Second)
			first, second := w.wait(), w.wait()
			time.Sleep(time.Hour)
			first(true)
			first(true) // as for an arrival that is cut off after its answer
			time.Sleep(time.Hour)
			second(false)
		}
		assert.Equal(t, &spec.StepTime{Seconds: 2, Steps: 10, Barriers: true}, w.stepTime())
		assert.Equal(t, []float64{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, observed)
		for i := range 11 {
			time.Sleep(3 * time.Second)
			w.progress(float64(4 * i))
		}
		assert.Equal(t, &spec.StepTime{Seconds: 0.75, Steps: 40}, w.stepTime())
	})
}

// Only barriers of all tasks are rounds; the next process restarts the count.
func TestRoundsAreSteps(t *testing.T) {
	h := newHost(t, 2)
	meet := func(options ...task.Option) {
		var group sync.WaitGroup
		for i := range 2 {
			group.Go(func() {
				_, err := h.task(i).Barrier(testContext(t), "step", options...)
				assert.NoError(t, err)
			})
		}
		group.Wait()
	}
	h.view.Tasks = append(h.view.Tasks, "ps-0")
	for range 3 {
		meet(task.Participants("worker-0", "worker-1"), task.Local())
	}
	assert.Nil(t, h.StepTime(h.ids[0]), "ps-0 was not there")
	h.view.Tasks = h.view.Tasks[:2]
	for _, options := range [][]task.Option{{task.Local()}, {}, {task.Timeout(time.Minute)}} {
		meet(options...)
	}
	for _, id := range h.ids {
		require.NotNil(t, h.StepTime(id))
		assert.Equal(t, spec.StepTime{Steps: 2, Barriers: true}, *h.StepTime(id))
		assert.Equal(t, h.StepTime(id), h.StepTimes()[id])
	}
	assert.Equal(t, 0, h.tasks[h.ids[0]].work.waits)
	h.listen(0, 1)
	assert.Nil(t, h.StepTime(h.ids[0]))
	for step, want := range []*spec.StepTime{nil, {Steps: 1}, {Steps: 2}} {
		status, body, _ := h.do(0, "PUT", wire.PathProgress, fmt.Sprintf(`{"current": %d}`, step))
		require.Equal(t, 200, status, body)
		assert.Equal(t, want, h.StepTime(h.ids[0]))
	}
}
