package supervisor

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// lifeline reports what becomes of the owner.
type lifeline struct {
	gone <-chan struct{} // closed when the owner is gone
	told <-chan StopAll  // what the owner has written
	stop func()          // ends the watch
}

// watchLifeline watches the other end of the lifeline. later is called with what is to be done
// later.
func watchLifeline(f *os.File, later func(StopAll), log *zap.Logger) (lifeline, error) {
	if f == nil {
		return lifeline{stop: func() {}}, nil
	}
	// A copy that the runtime can poll without a thread, and that can be closed while
	// it is being read.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return lifeline{stop: func() {}}, fmt.Errorf("watching the lifeline: %w", err)
	}
	mine := os.NewFile(uintptr(fd), "lifeline")
	gone, told := make(chan struct{}), make(chan StopAll, 1)
	done, stopping := make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() {
		defer close(done)
		readLifeline(mine, told, later, log)
		select {
		case <-stopping:
		default:
			close(gone)
		}
	}()
	return lifeline{gone, told, func() {
		once.Do(func() {
			close(stopping)
			_ = mine.Close()
			<-done
		})
	}}, nil
}

// readLifeline reads to the end. Of the lines that make the supervisor end the first counts.
func readLifeline(f *os.File, told chan<- StopAll, later func(StopAll), log *zap.Logger) {
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var all StopAll
		if err = json.Unmarshal(line, &all); err == nil {
			err = all.check()
		}
		if err != nil {
			log.Error("What the owner has written to the lifeline is not understood.", zap.Error(err))
			continue
		}
		if all.Later {
			later(all)
			continue
		}
		select {
		case told <- all:
		default:
		}
	}
}
