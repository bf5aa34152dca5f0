package tests

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The recording in the README shows the program and the commands of the README.
func TestTheRecordingIsOfTheREADME(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("Python is not installed")
	}
	out, err := exec.Command("python3", "recording/record.py", "--check").CombinedOutput()
	assert.NoError(t, err, "%s", out)
}
