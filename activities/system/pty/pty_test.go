package pty

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestOpen(t *testing.T) {
	master, slave, err := Open()
	require.NoError(t, err)
	defer master.Close()
	assert.True(t, Is(slave))
	group := must.Get(Foreground(master))(t)
	assert.Zero(t, group, "nobody has it as a controlling terminal, we least of all")

	require.NoError(t, SetSize(master, 33, 77))
	rows, columns, err := Size(slave)
	require.NoError(t, err)
	assert.Equal(t, []int{33, 77}, []int{rows, columns})

	modes := must.Get(Modes(slave))(t)
	modes.Lflag &^= unix.ECHO // it could come between two lines of the program
	require.NoError(t, SetModes(slave, modes))
	cmd := exec.Command("sh", "-c", "tty; stty size; echo $(ps -o tpgid= -p $$) $$; read line; echo got $line")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	_, err = master.WriteString("x\n")
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	require.NoError(t, slave.Close())

	var out bytes.Buffer
	require.NoError(t, master.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = io.Copy(&out, master)
	require.ErrorIs(t, err, unix.EIO, "the end, after all that was written")
	text := strings.ReplaceAll(out.String(), "\r\n", "\n")
	assert.Contains(t, text, slave.Name()+"\n33 77\n")
	assert.Contains(t, text, "got x\n")
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] != "33" && f[0] != "got" {
			assert.Equal(t, f[0], f[1], "its group is in the foreground")
		}
	}
}

func TestRaw(t *testing.T) {
	master, slave, err := Open()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	before := must.Get(Modes(slave))(t)
	require.NoError(t, SetModes(slave, Raw(before)))
	_, err = master.WriteString("a\x03\r")
	require.NoError(t, err)
	got := make([]byte, 3)
	_, err = io.ReadFull(slave, got)
	require.NoError(t, err)
	assert.Equal(t, "a\x03\r", string(got), "no line, no signal, no translation")
	require.NoError(t, SetModes(slave, before))
	after := must.Get(Modes(slave))(t)
	assert.Equal(t, before, after)
}

func TestNoTerminal(t *testing.T) {
	f := must.Get(os.Open(os.DevNull))(t)
	defer f.Close()
	assert.False(t, Is(f))
	_, _, err := Size(f)
	assert.Error(t, err)
}
