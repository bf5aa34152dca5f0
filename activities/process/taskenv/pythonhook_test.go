package taskenv

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheHookIsFirstInPythonPath(t *testing.T) {
	for _, c := range []struct {
		hook string
		env  map[string]string
		want any
	}{
		{"/s/hook", nil, "/s/hook"},
		{"/s/hook", map[string]string{"PYTHONPATH": "/a:/b"}, "/s/hook:/a:/b"},
		{"/s/hook", map[string]string{"PYTHONPATH": ""}, "/s/hook"},
		{"/s/hook", map[string]string{"PYTHONPATH": "/outer/" + HookPrefix + "12:/a"}, "/s/hook:/a"},
		{"", map[string]string{"PYTHONPATH": "/outer/" + HookPrefix + "12:/a"}, "/a"},
		{"", map[string]string{"PYTHONPATH": "/outer/" + HookPrefix + "12"}, nil},
		{"", map[string]string{"PYTHONPATH": ""}, ""},
		{"", nil, nil},
	} {
		p := process("worker-0")
		p.PythonHook, p.Env = c.hook, c.env
		got, set := environ(t, nil, p)["PYTHONPATH"]
		if c.want == nil {
			assert.False(t, set, "%v", c)
		} else {
			assert.Equal(t, c.want, got, "%v", c)
		}
	}
}
