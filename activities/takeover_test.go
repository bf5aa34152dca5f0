package activities

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// takenOver is a server that is unreachable at first.
type takenOver struct {
	Server
	asked int
}

func (s *takenOver) TakeOver(context.Context, runkey.Run, server.Taker) error {
	if s.asked++; s.asked == 1 {
		return errors.New("away")
	}
	return nil
}

// The server may offer a task to the last poll of the process that has exited, so the tasks are
// taken over once more.
func TestTasksAreTakenOverTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &takenOver{}
		c := &core{Config: Config{Server: s, Log: zap.NewNop()}, group: background.NewGroup(), plans: &planStore{plans: map[runkey.Run]*plan{servedRun: {Run: servedRun}}}}
		(&reconciler{core: c}).takeOver(t.Context())
		time.Sleep(2 * takeOverOnceMore)
		synctest.Wait()
		c.group.Close()
		assert.Equal(t, 3, s.asked)
	})
}
