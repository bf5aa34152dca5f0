package supervisor

import (
	"encoding/json"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// After catchUp, the owner's request has been carried out, whether catchUp or the other
// goroutine read it. Otherwise the run's stop, which the owner requests next, could come first
// and send another signal.
func TestCatchingUpWithTheOwner(t *testing.T) {
	theirs, ours, err := os.Pipe()
	require.NoError(t, err)
	defer theirs.Close()
	var last atomic.Int64
	l, err := watchLifeline(theirs, func(a StopAll) { last.Store(int64(a.Grace)) }, zap.NewNop())
	require.NoError(t, err)
	defer l.stop()
	for i := range time.Duration(2000) {
		line, err := json.Marshal(StopAll{Stops: Stops{Stop: Stop{Signal: sigTERM, Grace: i}}, Later: true})
		require.NoError(t, err)
		half := len(line) / 2
		_, err = ours.Write(line[:half])
		require.NoError(t, err)
		_, err = ours.Write(append(line[half:], '\n'))
		require.NoError(t, err)
		l.catchUp()
		require.EqualValues(t, i, last.Load())
	}
	gone, told := l.news()
	_, err = ours.WriteString("nonsense\n{\"signal\": 2}\n{\"signal\": 3}\n")
	require.NoError(t, err)
	require.NoError(t, ours.Close())
	<-gone
	require.Equal(t, StopAll{Stops: Stops{Stop: Stop{Signal: 2}}}, <-told, "the first counts")
	l.catchUp()
}

func TestNoOwnerToCatchUpWith(t *testing.T) {
	l, err := watchLifeline(nil, nil, nil)
	require.NoError(t, err)
	l.catchUp()
	gone, told := l.news()
	require.Nil(t, gone)
	require.Nil(t, told)
	l.stop()
}
