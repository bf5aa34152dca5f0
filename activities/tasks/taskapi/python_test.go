package taskapi

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	pythonsdk "github.com/clusterrun/clusterrun/activities/tasks/python"
)

// python is an interpreter that finds the package clusterrun.
type python struct {
	t       *testing.T
	program string
	path    string
}

func newPython(t *testing.T) *python {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	path, err := pythonsdk.Install(t.TempDir(), "")
	require.NoError(t, err)
	return &python{t, program, path}
}

func (p *python) command(source string) *exec.Cmd {
	cmd := exec.Command(p.program, "-c", source)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.t.TempDir(), "PYTHONPATH=" + p.path, "PYTHONDONTWRITEBYTECODE=1",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stderr = os.Stderr
	return cmd
}

func (p *python) output(source string, env ...string) string {
	p.t.Helper()
	cmd := p.command(source)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.Output()
	require.NoError(p.t, err)
	return string(out)
}
