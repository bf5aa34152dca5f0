package supervisor

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// If the record of an exit hangs, as on a bad disk, the upgrade is refused, and neither the
// reaper nor a request for a lease is held up.
func TestWhatHangsEndsATryAlone(t *testing.T) {
	for what, hang := range map[string]func(*supervisor) (end func()){
		"the record of an exit": func(s *supervisor) func() {
			disk := make(chan struct{})
			s.records.Go(func() { <-disk })
			return func() { close(disk) }
		},
		"a lease of ports": func(s *supervisor) func() {
			return s.lockPorts(&run{})
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := &supervisor{reaper: &reaper{pauses: make(chan chan struct{})}}
			end := hang(s)
			paused := make(chan chan struct{}, 1)
			go func() { paused <- <-s.reaper.pauses }()
			_, err := s.freeze(time.Now().Add(50 * time.Millisecond))
			require.ErrorContains(t, err, what)
			<-<-paused
			assert.True(t, s.mu.TryLock(), "and nothing else is held")
			s.mu.Unlock()
			end()
			<-s.records.none()
			s.leases.Lock() // the try has released the lock it was still waiting for
		})
	}
}

func TestTally(t *testing.T) {
	var tally tally
	<-tally.none()
	var ends sync.WaitGroup
	goOn := make(chan struct{})
	ends.Add(2)
	for range 2 {
		tally.Go(func() {
			<-goOn
			ends.Done()
		})
	}
	none, same := tally.none(), tally.none()
	select {
	case <-none:
		t.Fatal("two are being called")
	default:
	}
	close(goOn)
	ends.Wait()
	<-none
	<-same
	tally.Go(func() {})
	<-tally.none()
}
