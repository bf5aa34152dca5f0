package fault

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNeedsBeyondALimit(t *testing.T) {
	assert.Empty(t, missing(40, 16, 56, "files", ""))
	assert.Empty(t, missing(40, 16, 0, "files", ""), "no limit")
	assert.Empty(t, missing(0, 16, 10, "files", ""), "nothing is needed")
	assert.Equal(t, "41 files are needed in addition to about 16 (raise it)", missing(41, 16, 56, "files", " (raise it)"))

	assert.NoError(t, Needs{Files: 10, Processes: 10}.Check())
	assert.Positive(t, threadsOf(os.Getuid()))
	assert.Positive(t, allThreads())
	status := []byte("Name:\tUid:\nUid:\t7\t8\t9\t9\nThreads:\t12\n")
	assert.Equal(t, 7, numberIn(status, "Uid:"))
	assert.Equal(t, 12, numberIn(status, "Threads:"))
	assert.Zero(t, numberIn(status, "VmRSS:"))
}
