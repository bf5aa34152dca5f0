package spec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCauseOfARun(t *testing.T) {
	oom := &Failure{Exit: Exit{Cause: CauseOOM}}
	for _, c := range []struct {
		want   Cause
		result RunResult
	}{
		{CauseCompleted, RunResult{Verdict: VerdictSucceeded}},
		{CauseOOM, RunResult{Verdict: VerdictFailed, ErrorType: ErrUnexpectedExit, FirstFailure: oom}},
		{CauseTimeout, RunResult{Verdict: VerdictTimedOut, ErrorType: ErrSubprocessTimeout, FirstFailure: oom}},
		{CauseTimeout, RunResult{Verdict: VerdictFailed, ErrorType: ErrUnexpectedExit}},
		{CauseOperator, RunResult{Verdict: VerdictCancelled}},
		{CauseOperator, RunResult{Verdict: VerdictFailed, ErrorType: ErrSubprocess}},
		{"", RunResult{Verdict: VerdictFailed, ErrorType: ErrPlacement}},
	} {
		require.Equal(t, c.want, c.result.Cause(), c.result)
	}
}
