package hostcheck

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for given, want := range map[string]Check{
		"disk": {Name: "disk"}, "disk:5GiB": {Name: "disk", Limit: "5GiB"}, "clock:500ms": {Name: "clock", Limit: "500ms"},
		"gpu:8": {Name: "gpu", Limit: "8"}, "nfs=test -w /mnt/a=b": {Name: "nfs", Command: "test -w /mnt/a=b"}, "x=disk:1": {Name: "x", Command: "disk:1"},
	} {
		got, err := Parse(given)
		require.NoError(t, err, given)
		assert.Equal(t, want, got, given)
	}
	for given, why := range map[string]string{
		"": "is not one of disk, memory", "nfs": `"nfs" is not one of`, "disk:": "the limit of disk", "disk:many": "the limit of disk", "clock:-1s": "give a time",
		"gpu:0": "at least 1", "link:3": "link has no limit", "disk=true": "has a meaning already", "none=true": "has a meaning already", "a b=true": "is not a name",
		"=true": "is not a name", "x=": "x has no command", "x= \t": "x has no command", "x=\x00": "null byte", "x=" + strings.Repeat("y", maxCommand+1): "longer than 4096",
		strings.Repeat("n", 33) + "=true": "is not a name", "n\x1b[31m=true": "is not a name",
	} {
		_, err := Parse(given)
		assert.ErrorContains(t, err, why, given)
	}
}

func TestParseAll(t *testing.T) {
	for _, c := range []struct {
		given []string
		want  []Check
		err   string
	}{
		{nil, []Check{{Name: "disk"}}, ""},
		{[]string{"none"}, nil, ""},
		{[]string{"disk"}, []Check{{Name: "disk"}}, ""},
		{[]string{"disk:1GiB", "a=true"}, []Check{{Name: "disk", Limit: "1GiB"}, {Name: "a", Command: "true"}}, ""},
		{[]string{"none", "a=true"}, []Check{{Name: "a", Command: "true"}}, ""},
		{[]string{"a=true", "a=false"}, nil, "a is given twice"},
		{[]string{"disk:1GiB", "disk:2GiB"}, nil, "disk is given twice"},
		{strings.Fields("x=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1 k=1 l=1 m=1 n=1 o=1 p=1"), nil, "17 checks are more than 16"},
	} {
		got, err := ParseAll(c.given)
		if c.err != "" {
			assert.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
	}
}
