package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDirectoryStandsForItselfAndWhatIsBelow(t *testing.T) {
	for dir, allowed := range map[string]bool{
		"/srv/alice": true, "/srv/alice/x/y": true, "/srv/alicex": false, "/srv": false, "/srv/bob": false, "/": false,
		"ship:/": true, "ship:/a": true,
	} {
		assert.Equal(t, allowed, dirMatches([]string{"/srv/alice", "ship:/"}, dir), dir)
	}
	assert.True(t, dirMatches([]string{"/"}, "/etc"))
	assert.True(t, dirMatches([]string{"/srv/*"}, "/srv/bob/x"))
}

func TestProgramPatterns(t *testing.T) {
	patterns := []string{"/usr/bin/python3", "/opt/*/run", "/srv/jobs/**", "ship:/**"}
	for program, allowed := range map[string]bool{
		"/usr/bin/python3": true, "/usr/bin/python3.12": false, "/opt/a/run": true, "/opt/a/b/run": false,
		"/srv/jobs": false, "/srv/jobs/a": true, "/srv/jobs/a/b": true, "/srv/jobsx/a": false, "ship:/train": true, "": false,
	} {
		assert.Equal(t, allowed, pathMatches(patterns, program), program)
	}
	assert.True(t, pathMatches([]string{"/**"}, "/bin/sh"))
}
