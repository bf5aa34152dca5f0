package closurequeue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// follower follows a queue through a host, and knows its position.
type follower struct {
	t  *testing.T
	at string
	// got are the outcomes it has received, in order.
	got []string
}

func (f *follower) ask(feed *feed) error {
	b, err := feed.next(patience(f.t), f.at, time.Minute)
	if err == nil {
		f.take(b)
	}
	return err
}

func (f *follower) take(b closure.Outcomes) {
	f.at = b.At
	for _, o := range b.Outcomes {
		f.got = append(f.got, fmt.Sprintf("%d=%s", o.ID, o.Value))
	}
	for _, c := range b.Cancelled {
		f.got = append(f.got, fmt.Sprintf("%d-%d cancelled %s", c.First, c.Last, c.Text))
	}
}

func TestAFeedGoesOnWhereItsProcessIs(t *testing.T) {
	f := newFixture(t)
	c := f.client
	f.assertValue("0", f.schedule(newClosure("same", 0)))
	here, err := c.Here(patience(t))
	require.NoError(t, err)
	process := &follower{t: t, at: here.String()}
	feed := newFeed(c)
	t.Cleanup(feed.end)
	f.assertValue("1", f.schedule(newClosure("same", 1)))
	require.NoError(t, process.ask(feed))
	assert.Equal(t, []string{"2=1"}, process.got, "nothing from before")

	// The answer to the next request is lost. After that, another host serves the program.
	f.assertValue("2", f.schedule(newClosure("same", 2)))
	lost := must.Get(feed.next(patience(t), process.at, time.Minute))(t)
	f.ContinueAsNew()
	f.assertValue("3", f.schedule(newClosure("same", 3)))
	again := must.Get(feed.next(patience(t), process.at, time.Minute))(t)
	assert.Equal(t, lost, again)
	other := newFeed(c)
	t.Cleanup(other.end)
	for len(process.got) < 3 {
		require.NoError(t, process.ask(other))
	}
	assert.Equal(t, []string{"2=1", "3=2", "4=3"}, process.got)

	// The server is away, and forgets executions.
	f.Away(true)
	b := must.Get(other.next(patience(t), process.at, 10*time.Millisecond))(t)
	assert.Equal(t, closure.Outcomes{At: process.at}, b)
	f.Away(false)
	f.assertValue("4", f.schedule(newClosure("same", 4)))
	require.NoError(t, process.ask(other))
	assert.Equal(t, "5=4", process.got[3])
	f.ContinueAsNew()
	f.Forget()
	f.assertValue("5", f.schedule(newClosure("same", 5)))
	third := newFeed(c)
	t.Cleanup(third.end)
	require.NoError(t, process.ask(third))
	assert.Equal(t, "6=5", process.got[4])

	f.End("over")
	for err = nil; err == nil; {
		err = process.ask(third)
	}
	require.ErrorIs(t, err, ErrRunEnded)
}

// A batch has outcomes first and cancelled closures after them. If the history has them the
// other way around, there are two batches.
func TestTheOrderOfABatch(t *testing.T) {
	f := newFixture(t)
	here := must.Get(f.client.Here(patience(t)))(t)
	process := &follower{t: t, at: here.String()}
	wait := f.schedule(newClosure("wait"))
	f.assertError("no", f.schedule(newClosure("fails", "no")))
	_, err := f.Schedule(patience(t), newClosure("same", 1)) // the error cancels it
	require.NoError(t, err)
	_, err = wait.Wait(patience(t))
	require.Error(t, err)
	require.EqualError(t, f.Join(patience(t)), "no")
	f.assertValue("5", f.schedule(newClosure("same", 5)))
	feed := newFeed(f.client)
	t.Cleanup(feed.end)
	for len(process.got) < 4 {
		b := must.Get(feed.next(patience(t), process.at, time.Minute))(t)
		process.take(b)
	}
	assert.Equal(t, "2=", process.got[0])
	assert.Contains(t, process.got, "3-3 cancelled ")
	assert.Equal(t, "4=5", process.got[3])
}

// The amount that a feed reads ahead is bounded, even if its caller is slow.
func TestAFeedReadsLittleAhead(t *testing.T) {
	f := newFixture(t)
	here := must.Get(f.client.Here(patience(t)))(t)
	at := here.String()
	large := newClosure("same", strings.Repeat("x", 120<<10))
	var all []*Remote
	for range 40 {
		all = append(all, f.schedule(large))
	}
	for _, r := range all {
		_, err := r.Wait(patience(t))
		require.NoError(t, err)
	}
	feed := newFeed(f.client)
	t.Cleanup(feed.end)
	got := 0
	for got < 40 {
		b := must.Get(feed.next(patience(t), at, time.Minute))(t)
		assert.LessOrEqual(t, len(b.Outcomes)*120<<10, 2*batchBytes+closure.MaxBytes)
		got += len(b.Outcomes)
		at = b.At
	}
	assert.Equal(t, 40, got)
}

// A feed that is no longer used is dropped, and so is the oldest of too many.
func TestFeeds(t *testing.T) {
	f := newFixture(t)
	here := must.Get(f.client.Here(patience(t)))(t)
	at := here.String()
	all := &feeds{client: f.client}
	t.Cleanup(all.close)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = all.next(gone, "gone", at, time.Minute)
	asked := make(chan error)
	go func() {
		_, err := all.next(patience(t), "asks", at, time.Minute)
		asked <- err
	}()
	f.eventually("it asks", func() bool {
		all.mu.Lock()
		defer all.mu.Unlock()
		return all.all["asks"] != nil
	})
	for i := range 2 * maxFeeds {
		_, err := all.next(patience(t), text(i), at, 0)
		require.NoError(t, err)
	}
	all.mu.Lock()
	assert.Len(t, all.all, maxFeeds)
	assert.NotNil(t, all.all["asks"])
	for _, k := range all.all {
		k.used = time.Now().Add(-2 * idleFeed)
	}
	all.mu.Unlock()
	all.sweep()
	all.mu.Lock()
	assert.Len(t, all.all, 1)
	all.mu.Unlock()
	f.assertValue("1", f.schedule(newClosure("same", 1)))
	require.NoError(t, <-asked)
}

func TestPositions(t *testing.T) {
	p := Position{Execution: "0199-ab", Event: 12}
	back := must.Get(ParsePosition(p.String()))(t)
	assert.Equal(t, p, back)
	for _, bad := range []string{"", "x", "x:", ":1", "x:-1", "x:y"} {
		_, err := ParsePosition(bad)
		assert.ErrorContains(t, err, "is not a position in the history of a queue", bad)
	}
}
