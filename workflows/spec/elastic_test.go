package spec

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHostCount(t *testing.T) {
	for count, want := range map[HostCount]struct {
		least, most int
		json        string
	}{
		"4":   {4, 4, `4`},
		"2:4": {2, 4, `"2:4"`},
		"3:3": {3, 3, `"3:3"`},
	} {
		least, most := count.Bounds()
		assert.Equal(t, [2]int{want.least, want.most}, [2]int{least, most}, count)
		b, err := json.Marshal(count)
		require.NoError(t, err)
		assert.Equal(t, want.json, string(b))
		var back HostCount
		require.NoError(t, json.Unmarshal(b, &back))
		assert.Equal(t, count, back)
	}
}

func TestSized(t *testing.T) {
	s, err := DecodeYAML([]byte(`{command: [x], tasks: [{type: chief}, {type: worker, count: 7}], hosts: "2:4", restart_scope: group}`))
	require.NoError(t, err)
	assert.True(t, s.IsElastic())
	assert.Equal(t, 2, s.TasksPerHost())
	assert.Same(t, s, s.Sized(8))
	tasks := s.Sized(4).TaskList()
	assert.Equal(t, s.TaskList()[:4], tasks)
	assert.Len(t, s.TaskList(), 8)
}
