package spec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestATaskIsFoundInTheIDOfItsActivity(t *testing.T) {
	task, generation, ok := spec.TaskOfActivity(spec.TaskActivityID("data-worker-3", 12, 4))
	assert.Equal(t, "data-worker-3", task)
	assert.Equal(t, 12, generation)
	assert.True(t, ok)
	for _, other := range []string{"", "17", "worker-0", "worker-0/x.1"} {
		_, _, ok := spec.TaskOfActivity(other)
		assert.False(t, ok, other)
	}
}
