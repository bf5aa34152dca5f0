package specs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNProc(t *testing.T) {
	with, without := Machine{Gpus: 3, Cpus: 16}, Machine{Cpus: 16}
	for _, c := range []struct {
		id, text string
		machine  Machine
		want     int
	}{
		{"TR-06", "auto", without, 16},
		{"TR-07", "4", with, 4},
		{"TR-09", "auto", with, 3},
		{"TR-09", "gpu", with, 3},
		{"", "cpu", with, 16},
	} {
		n, err := ParseNProc(c.text, c.machine)
		require.NoError(t, err, c.id)
		assert.Equal(t, c.want, n, c.id)
	}
	for _, c := range []struct {
		text    string
		machine Machine
		want    string
	}{
		{"unknown", with, `--nproc-per-node "unknown": give a number, gpu, cpu or auto`}, // TR-08
		{"gpu", without, "--nproc-per-node gpu: no GPU is seen on this machine; give a number, or auto or cpu"},
		{"gpu", Machine{Cpus: 16, LimitedBy: "CUDA_VISIBLE_DEVICES"}, "--nproc-per-node gpu: CUDA_VISIBLE_DEVICES shows no GPU; change it, or give a number"},
	} {
		_, err := ParseNProc(c.text, c.machine)
		assert.EqualError(t, err, c.want)
	}
}

// A shell's own choice of GPUs counts.
func TestNProcHere(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
	s, err := specFrom(t, "", "--nproc-per-node", "gpu", "x")
	require.NoError(t, err)
	assert.Equal(t, ranks(2), s.Tasks)
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	_, err = specFrom(t, "", "--nproc-per-node", "gpu", "x")
	assert.ErrorContains(t, err, "CUDA_VISIBLE_DEVICES shows no GPU")
}
