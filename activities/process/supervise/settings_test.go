package supervise

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

func settings(t *testing.T, s Settings) string {
	t.Helper()
	return string(must.Get(json.Marshal(s))(t))
}

// Another build's settings are refused before anything is written.
func TestOtherBuild(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	err := run(settings(t, Settings{StateDir: dir, Build: "v1 go2", Starter: "/opt/clusterrun"}))
	require.ErrorContains(t, err, "from another build ("+BuildID()+") than /opt/clusterrun (v1 go2); install both from one release")
	assert.NoDirExists(t, dir)
}

// If a supervisor cannot run, nothing is started or written.
func TestASupervisorThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, run(settings(t, Settings{StateDir: file, Build: BuildID()})), file)

	dir := t.TempDir()
	state := must.Get(supervisor.OpenState(dir))(t)
	defer state.Close()
	require.ErrorContains(t, run(settings(t, Settings{StateDir: dir, Build: BuildID()})), dir, "another supervisor has it")
	assert.Equal(t, exitcode.Usage, Main(nil), "no user starts it by hand")
}

// The program is in the same directory, or the error says where it should be.
func TestTheProgramNextToThisOne(t *testing.T) {
	_, _, err := Program()
	missing, ok := errors.AsType[*MissingError](err)
	require.True(t, ok, "tests have no supervisor in their directory")
	self := must.Get(os.Executable())(t)
	assert.Equal(t, self, missing.Beside)
	assert.ErrorContains(t, err, "clusterrun-supervisor, the process supervisor, is not next to "+self+" (no such file or directory); install both")

	require.ErrorIs(t, CheckProgram(t.Context()), missing.Err)

	path := filepath.Join(filepath.Dir(self), ProgramName)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho v1 go2\n"), 0o700)) //nolint:gosec // executable
	defer os.Remove(path)
	require.ErrorContains(t, CheckProgram(t.Context()), path+" is from another build (v1 go2) than "+self+" ("+BuildID()+"); install both")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho '"+BuildID()+"'\n"), 0o700)) //nolint:gosec // executable
	require.NoError(t, CheckProgram(t.Context()))
	cmd, own, err := Settings{}.Command(Files{Stdout: os.Stdout})
	require.NoError(t, err)
	defer own.Close()
	assert.Equal(t, path, cmd.Path)
	assert.Equal(t, []*os.File{own, os.Stdout}, cmd.ExtraFiles)
	var s Settings
	require.NoError(t, json.Unmarshal([]byte(cmd.Env[len(cmd.Env)-1][len(settingsVar)+1:]), &s))
	assert.Equal(t, descriptors{Program: 3, Stdout: 4}, s.Files)
	assert.Equal(t, self, s.Starter)
}
