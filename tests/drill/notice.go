package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// gpuVar is set for tasks that use all GPUs of their host.
	gpuVar = "DRILL_GPU"
	// exitSaved is the exit code of a member that saved its work after a notice.
	exitSaved = 75
)

// train takes n steps, summed over all processes of the task. On a notice, the first task exits,
// while the rest train until they are stopped.
func (m *member) train(ctx context.Context, t *task.Task, n int) (int, error) {
	saved := filepath.Join(m.dir, "saved."+m.task)
	b, err := os.ReadFile(saved)
	if err != nil && !os.IsNotExist(err) {
		return exitWrong, err
	}
	done, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	for ; done < n; done++ {
		time.Sleep(pace)
		if err := os.WriteFile(saved, strconv.AppendInt(nil, int64(done), 10), 0o600); err != nil {
			return exitWrong, err
		}
		// A task does not receive notices while its host restarts.
		if now, err := t.Stopping(ctx); err == nil && now.Notice != nil && m.task == "worker-0" {
			return exitSaved, nil
		}
	}
	return 0, nil
}

// checkPreempted checks that each preemption followed a notice, and that none counts as a restart.
func checkPreempted(r report) []string {
	var found []string
	if n := r.result.Preemptions; n > r.notices {
		found = append(found, fmt.Sprintf("it was preempted %d times, after %d notices", n, r.notices))
	}
	requeued, others := 0, 0
	for _, g := range r.result.GroupRestarts {
		if g.Requeued == spec.RequeueOnPreemption {
			requeued++
		} else {
			others++
		}
	}
	if requeued != r.result.Preemptions {
		found = append(found, fmt.Sprintf("it was preempted %d times, and %d of its restarts say so", r.result.Preemptions, requeued))
	}
	if others > 0 && !r.mayFail() {
		found = append(found, fmt.Sprintf("it was restarted %d times, and no fault was in its way", others))
	}
	return found
}
