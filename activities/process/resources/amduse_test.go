package resources

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
)

func TestAMDUse(t *testing.T) {
	const nodes, processes = "sys/class/kfd/kfd/topology/nodes/", "sys/class/kfd/kfd/proc/"
	gpus := map[string]string{
		nodes + "0/gpu_id": "0\n", nodes + "0/properties": "cpu_cores_count 8\nsimd_count 0\ndrm_render_minor 0\n",
		nodes + "1/gpu_id": "4711\n", nodes + "1/properties": "simd_count 304\ndrm_render_minor 128\n",
		nodes + "2/gpu_id": "4712\n", nodes + "2/properties": "simd_count 304\ndrm_render_minor 129\n",
		"sys/class/drm/renderD128/device/gpu_busy_percent": "80\n",
		"sys/class/drm/renderD129/device/gpu_busy_percent": "50\n",
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  []supervisor.GPUProcess
	}{
		"no processes": {map[string]string{processes + "about": ""}, nil},
		"opened only":  {map[string]string{processes + "17/vram_4711": "0\n", processes + "17/pasid": "32769\n"}, nil},
		"shared": {map[string]string{processes + "17/vram_4711": "1024\n", processes + "17/vram_4712": "0\n", processes + "18/vram_4711": "2048\n"},
			[]supervisor.GPUProcess{{PID: 17, Memory: 1024, Busy: 0.4}, {PID: 18, Memory: 2048, Busy: 0.4}}},
		"two of it": {map[string]string{processes + "17/vram_4711": "1\n", processes + "17/vram_4712": "2\n"},
			[]supervisor.GPUProcess{{PID: 17, Memory: 1, Busy: 0.8}, {PID: 17, Memory: 2, Busy: 0.5}}},
		"a GPU that is not told of": {map[string]string{processes + "17/vram_99": "1\n"}, []supervisor.GPUProcess{{PID: 17, Memory: 1}}},
		"nonsense":                  {map[string]string{processes + "17/vram_4711": "much\n", processes + "x/vram_4711": "1\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, files := range []map[string]string{gpus, c.files} {
				for name, text := range files {
					path := filepath.Join(root, name)
					require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
					require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				}
			}
			got, _, err := readAMDUse(root)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
	_, _, err := readAMDUse(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
}
