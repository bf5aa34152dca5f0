package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var somebody = PrefixFields{Type: "worker", Index: 3, Rank: 12, LocalRank: 4, Attempt: 1, Host: "host-a"}

func format(t *testing.T, template string, f PrefixFields) string {
	t.Helper()
	p, err := ParsePrefix(&template)
	require.NoError(t, err)
	return p.Format(f)
}

// MPR-05 shows worker-0's line; the others were measured.
func TestDefaultPrefix_SEED05(t *testing.T) {
	for typ, want := range map[string]string{
		"chief": "[chief-0]:     ", "worker": "[worker-0]:    ", "ps": "[ps-0]:        ", "evaluator": "[evaluator-0]: ",
		"parameter_server": "[parameter_server-0]: ", // not cut
	} {
		p, err := ParsePrefix(nil)
		require.NoError(t, err)
		assert.Equal(t, want, p.Format(PrefixFields{Type: typ}))
		assert.Equal(t, want, format(t, DefaultPrefix, PrefixFields{Type: typ}))
	}
}

// TR-25, TR-59 and TE-47: any other prefix is taken as it is.
func TestCustomPrefix_TR25_TR59_TE47(t *testing.T) {
	assert.Equal(t, "[rank12]: ", format(t, "[rank${rank}]: ", somebody))
	assert.Equal(t, "[worker-4:12]:", format(t, "[${role_name}-${local_rank}:${rank}]:", somebody))
	assert.Equal(t, "worker3 12 4 1 host-a", format(t, "{{.Type}}{{.Index}} {{ .Rank }} {{.LocalRank}} {{.Restart}} {{.Host}}", somebody))
	assert.Equal(t, "", format(t, "", somebody), "none")
	assert.Equal(t, "$ } }} { plain", format(t, "$ } }} { plain", somebody))
}

func TestBadPrefixes(t *testing.T) {
	for _, text := range []string{"{{", "{{.Rank", "${rank", "{{.Nope}}", "{{range .}}{{end}}", "${RANK}", "{{}}", "${}", "{{printf .Type}}"} {
		_, err := ParsePrefix(&text)
		assert.Error(t, err, text)
	}
}
