package closures

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

func TestRanges(t *testing.T) {
	r := ranges(nil).with(ranges{{5, 7}, {1, 2}}).with(ranges{{3, 3}, {9, 9}, {6, 8}, {20, 30}})
	assert.Equal(t, ranges{{1, 3}, {5, 9}, {20, 30}}, r)
	for id := range uint64(32) {
		want := id >= 1 && id <= 3 || id >= 5 && id <= 9 || id >= 20 && id <= 30
		assert.Equal(t, want, r.contains(id), id)
	}
}

// closer is a resource that reports when it is closed.
type closer struct {
	id     int
	closed chan int
}

func (c *closer) Close() error {
	c.closed <- c.id
	switch c.id {
	case 40:
		return nil
	case 41:
		return errors.New("it was closed before")
	}
	panic("at the disco")
}

// SEED-45, CC-29: a resource is closed once no call uses it, even if Close fails, and its
// definition is forgotten.
func TestGoReleasesResources(t *testing.T) {
	m := newMachine(t, "worker-0")
	closed, began, goOn := make(chan int, 10), make(chan bool), make(chan bool)
	var mu sync.Mutex
	var loaded []int
	m.goProcess("worker-0", 4, map[string]any{
		"load": func(_ context.Context, n int) (*closer, error) {
			mu.Lock()
			defer mu.Unlock()
			loaded = append(loaded, n)
			return &closer{n, closed}, nil
		},
		"slow": func(_ context.Context, n int) (io.Closer, error) {
			began <- true
			<-goOn
			return &closer{n, closed}, nil
		},
		"plain": func(context.Context) (int, error) { return 7, nil },
		"fails": func(context.Context) (int, error) { return 0, errors.New("disk is gone") },
		"use":   func(_ context.Context, d any) (bool, error) { return d != nil, nil },
		"hold": func(_ context.Context, d *closer) (int, error) {
			began <- true
			<-goOn
			return d.id, nil
		},
	})
	definitions := []closure.Resource{
		{ID: 11, Function: "load", Args: []byte("[40]")}, {ID: 12, Function: "load", Args: []byte("[41]")}, {ID: 13, Function: "load", Args: []byte("[42]")},
		{ID: 14, Function: "plain"}, {ID: 15, Function: "fails"}, {ID: 16, Function: "load", Args: []byte("[43]")}, {ID: 17, Function: "slow", Args: []byte("[44]")},
	}
	lease := func(released [][2]uint64, closures ...closure.Closure) []closure.Outcome {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out []closure.Outcome
		for len(closures) > 0 {
			r := must.Get(m.now().Lease(ctx, closure.Lease{Closures: closures, Resources: definitions, Released: released}))(t)
			out = append(out, r.Outcomes...)
			closures = slices.DeleteFunc(slices.Clone(closures), func(c closure.Closure) bool { return !slices.Contains(r.Rest, c.ID) })
		}
		return out
	}
	var all []closure.Closure
	for id := range uint64(6) {
		all = append(all, using(call(1+id, "use", resource(11+id)), 11+id))
	}
	require.Len(t, lease(nil, all...), 6)
	m.now().Release([][2]uint64{{1, 13}})
	assert.ElementsMatch(t, []int{40, 41, 42}, []int{<-closed, <-closed, <-closed})
	m.now().Release([][2]uint64{{14, 15}})

	// A call that uses a resource keeps it, and so does one that is cancelled while the
	// resource is built.
	held := make(chan []closure.Outcome)
	go func() { held <- lease(nil, using(call(8, "hold", resource(16)), 16)) }()
	<-began
	m.now().Release([][2]uint64{{16, 16}})
	require.Len(t, lease(nil, call(9, "use", 1)), 1) // by then the process knows the release
	assert.Empty(t, closed)
	goOn <- true
	assertText(t, "43", (<-held)[0])
	assert.Equal(t, 43, <-closed)

	go func() { held <- lease(nil, using(call(10, "use", resource(17)), 17)) }()
	<-began
	m.now().Cancel(closure.CancelLease{Closures: []uint64{10}, Grace: time.Hour})
	assert.Equal(t, closure.OutcomeCancelled, (<-held)[0].Kind)
	m.now().Release([][2]uint64{{17, 17}})
	require.Len(t, lease(nil, call(11, "use", 1)), 1)
	goOn <- true
	assert.Equal(t, 44, <-closed, "it was built in vain")

	// If the resource is needed again after all, it is built again.
	mu.Lock()
	before := len(loaded)
	mu.Unlock()
	require.Len(t, lease(nil, using(call(12, "use", resource(11)), 11)), 1)
	assert.Equal(t, 40, <-closed, "and released again")
	mu.Lock()
	defer mu.Unlock()
	assert.Len(t, loaded, before+1)
}

// SEED-45, CC-29: resources end in the processes that call functions, and soon, whether or
// not functions are being called.
func TestPythonReleasesResources(t *testing.T) {
	for _, slots := range []string{"1", "4"} {
		t.Run(slots, func(t *testing.T) {
			m := newMachine(t, "worker-0")
			p := m.pyProcess("worker-0", pythonFile(t, "releases_resources")+slots+`)
`)
			definitions := []closure.Resource{{ID: 11, Function: "load", Args: []byte("[40]")}, {ID: 12, Function: "load", Args: []byte("[41]")}, {ID: 13, Function: "fails"}}
			lease := func(c closure.Closure) closure.Outcome {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r := must.Get(m.now().Lease(ctx, closure.Lease{Closures: []closure.Closure{c}, Resources: definitions}))(t)
				return r.Outcomes[0]
			}
			assertText(t, "40", lease(using(call(1, "use", resource(11)), 11)))
			assertText(t, "41", lease(using(call(2, "use", resource(12)), 12)))
			assert.Equal(t, closure.OutcomeInput, lease(using(call(3, "use", resource(13)), 13)).Kind)
			m.now().Release([][2]uint64{{11, 11}})
			assert.Equal(t, "ends 40", p.line(), "while nothing is called")

			goOn := filepath.Join(t.TempDir(), "go on")
			require.NoError(t, syscall.Mkfifo(goOn, 0o600))
			held := make(chan closure.Outcome)
			go func() { held <- lease(using(call(4, "use", resource(12), goOn), 12)) }()
			assert.Equal(t, "holds", p.line())
			m.now().Release([][2]uint64{{1, 13}})
			require.NoError(t, os.WriteFile(goOn, nil, 0o600))
			assertText(t, "41", <-held)
			assert.Equal(t, "ends 41", p.line(), "once the call that has it has ended")

			assertText(t, "40", lease(using(call(5, "use", resource(11)), 11)))
			assert.Equal(t, "ends 40", p.line(), "it was built again, and released again")
		})
	}
}
