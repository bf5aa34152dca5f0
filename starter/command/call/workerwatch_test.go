package call

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter"
)

// The command reports once that no host worker answers, and once that a worker answers again.
func TestNobodyIsThereToAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nobody := &starter.UnansweredError{RunID: "iris-1"}
		answers := []error{nil, nobody, context.DeadlineExceeded, nobody, nil, nobody}
		var mu sync.Mutex // of the two
		var news []error
		w := watchWorkers(t.Context(), func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			next := answers[0]
			if len(answers) > 1 {
				answers = answers[1:]
			}
			return next
		}, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			news = append(news, err)
		})
		time.Sleep(askFirst / 2)
		synctest.Wait()
		mu.Lock()
		assert.Len(t, answers, 6, "what is answered soon is not looked after")
		mu.Unlock()
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []error{nobody, nil, nobody}, news)
		assert.Equal(t, nobody, w.end())
	})
}
