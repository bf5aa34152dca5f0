package tests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// manifest contains the fields of a Kubernetes object that the tests check.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Replicas    *int
		ServiceName string         `yaml:"serviceName"`
		ClusterIP   string         `yaml:"clusterIP"`
		Selector    map[string]any // of a Service: labels
		Ports       []struct {
			Name       string
			TargetPort string `yaml:"targetPort"`
		}
		Template             podTemplate
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
	}
}

type podTemplate struct {
	Metadata struct{ Labels, Annotations map[string]string }
	Spec     struct {
		AutomountServiceAccountToken  *bool `yaml:"automountServiceAccountToken"`
		TerminationGracePeriodSeconds int   `yaml:"terminationGracePeriodSeconds"`
		Containers                    []container
		Volumes                       []struct{ Name string }
	}
}

type container struct {
	Name, Image string
	Args        []string
	Env         []struct{ Name string }
	EnvFrom     []struct {
		SecretRef struct{ Name string } `yaml:"secretRef"`
	} `yaml:"envFrom"`
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	Readiness    *probe                  `yaml:"readinessProbe"`
	Liveness     *probe                  `yaml:"livenessProbe"`
	Startup      *probe                  `yaml:"startupProbe"`
	VolumeMounts []struct{ Name string } `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

func decodeManifests(t *testing.T, text []byte) (all []manifest) {
	t.Helper()
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err, "%s", text)
		if m.Kind != "" {
			all = append(all, m)
		}
	}
}

// checkManifests checks what would otherwise only fail in a cluster. The program must accept the
// arguments, labels must be selected, and ports, volumes and Secrets must exist.
func checkManifests(t *testing.T, text []byte) {
	t.Helper()
	all := decodeManifests(t, text)
	kinds := map[string]int{}
	for _, m := range all {
		kinds[m.Kind]++
		switch m.Kind {
		case "Service":
			assert.Equal(t, "None", m.Spec.ClusterIP, "hosts have no common address")
			selected := 0
			for _, other := range all {
				if subset(m.Spec.Selector, other.Spec.Template.Metadata.Labels) {
					selected++
					assert.Contains(t, portsOf(other.Spec.Template.Spec.Containers[0]), m.Spec.Ports[0].TargetPort)
				}
			}
			assert.Equal(t, 1, selected, "the Service %s selects the hosts", m.Metadata.Name)
		case "Deployment", "StatefulSet", "DaemonSet":
			checkPods(t, m)
			if m.Kind == "StatefulSet" {
				assert.True(t, slices.ContainsFunc(all, func(s manifest) bool {
					return s.Kind == "Service" && s.Metadata.Name == m.Spec.ServiceName
				}), "there is the Service %s", m.Spec.ServiceName)
			}
			assert.Equal(t, m.Kind == "DaemonSet", m.Spec.Replicas == nil)
		}
	}
	assert.Equal(t, 1, kinds["Deployment"], "of controllers")
	assert.Equal(t, 1, kinds["StatefulSet"]+kinds["DaemonSet"], "of hosts")
	for _, m := range all {
		for _, c := range m.Spec.Template.Spec.Containers {
			name := c.EnvFrom[0].SecretRef.Name
			assert.Equal(t, kinds["Secret"] == 1, slices.ContainsFunc(all, func(s manifest) bool { return s.Kind == "Secret" && s.Metadata.Name == name }))
			assert.NotEmpty(t, name, "the Secret says where the server is")
		}
	}
}

func checkPods(t *testing.T, m manifest) {
	t.Helper()
	pod := m.Spec.Template
	require.Len(t, pod.Spec.Containers, 1)
	c := pod.Spec.Containers[0]
	match, _ := m.Spec.Selector["matchLabels"].(map[string]any)
	assert.True(t, subset(match, pod.Metadata.Labels), "%s selects its pods", m.Metadata.Name)
	assert.Regexp(t, `^\S+:`+regexp.QuoteMeta(spec.Version)+`$`, c.Image)
	require.NotNil(t, pod.Spec.AutomountServiceAccountToken)
	assert.False(t, *pod.Spec.AutomountServiceAccountToken)

	var volumes []string
	for _, v := range pod.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, v := range m.Spec.VolumeClaimTemplates {
		volumes = append(volumes, v.Metadata.Name)
	}
	for _, mount := range c.VolumeMounts {
		assert.Contains(t, volumes, mount.Name)
	}

	args := strings.Join(c.Args, "\n")
	args = variable.ReplaceAllStringFunc(args, func(ref string) string {
		name := variable.FindStringSubmatch(ref)[1]
		assert.True(t, slices.ContainsFunc(c.Env, func(e struct{ Name string }) bool { return e.Name == name }), "%s is set", name)
		return "10.0.0.7"
	})
	checkWorkerArgs(t, strings.Split(args, "\n"))

	ports := portsOf(c)
	assert.Contains(t, c.Args, fmt.Sprintf("--metrics=:%d", ports["metrics"]))
	assert.Equal(t, fmt.Sprint(ports["metrics"]), pod.Metadata.Annotations["prometheus.io/port"])
	require.NotNil(t, c.Readiness)
	assert.Equal(t, "/ready", c.Readiness.HTTPGet.Path)
	for _, p := range []*probe{c.Readiness, c.Liveness, c.Startup} {
		if p != nil {
			assert.Equal(t, "metrics", p.HTTPGet.Port)
		}
	}
	if slices.Contains(c.Args, "--role=host") {
		assert.Nil(t, c.Liveness, "a restart of a host ends its tasks")
		assert.Contains(t, c.Args, fmt.Sprintf("--listen=:%d", ports["files"]))
		assert.GreaterOrEqual(t, pod.Spec.TerminationGracePeriodSeconds, 30, "processes have 10s, and 10s more to be killed")
	} else {
		assert.Contains(t, c.Args, "--role=controller")
		assert.Equal(t, "/metrics", c.Liveness.HTTPGet.Path, "one that waits for the server is not restarted")
	}
}

var variable = regexp.MustCompile(`\$\(([A-Z_]+)\)`)

func portsOf(c container) map[string]int {
	ports := map[string]int{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	return ports
}

func subset(of map[string]any, labels map[string]string) bool {
	for name, value := range of {
		if labels[name] != value {
			return false
		}
	}
	return len(of) > 0
}

// checkWorkerArgs makes the program parse the arguments of `clusterrun worker`.
func checkWorkerArgs(t *testing.T, args []string) {
	t.Helper()
	require.Equal(t, "worker", args[0])
	cmd := exec.Command(harness.Clusterrun(t), append(args, "--help")...)
	cmd.Env = harness.Env(t.TempDir())
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%q: %s", args, out)
}

// helm runs helm from PATH or .tools.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := exec.LookPath("helm")
	if err != nil {
		program = filepath.Join(harness.Root(), ".tools", "helm")
		if _, err := os.Stat(program); err != nil {
			t.Skip("helm is not installed")
		}
	}
	cmd := exec.Command(program, args...)
	cmd.Env = harness.Env(t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestHelmChart(t *testing.T) {
	t.Parallel()
	const chart = "../deployments/helm/clusterrun"
	for name, set := range map[string]string{
		"an address":  "temporal.address=temporal:7233",
		"a secret":    "temporal.existingSecret=temporal,hosts.slots=0,queue=train,metrics.port=9999,filesPort=9998",
		"a DaemonSet": "temporal.existingSecret=temporal,hosts.kind=DaemonSet,hosts.hostPath=/srv/clusterrun,hosts.extraArgs={--keep-logs=30d}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := helm(t, "template", "release", chart, "--set", set)
			require.NoError(t, err, out)
			checkManifests(t, []byte(out))
			out, err = helm(t, "lint", "--strict", chart, "--set", set)
			assert.NoError(t, err, out)
		})
	}
	for set, says := range map[string]string{
		"queue=q": "give temporal.address, or temporal.existingSecret",
		"temporal.address=t:7233,hosts.kind=Deployment": `hosts.kind is "Deployment": give StatefulSet or DaemonSet`,
	} {
		out, err := helm(t, "template", "release", chart, "--set", set)
		assert.Error(t, err)
		assert.Contains(t, out, says)
	}
}

// Without helm, only the chart's YAML files are checked.
func TestVersionsOfDeployments(t *testing.T) {
	t.Parallel()
	var chart struct {
		Version    string
		AppVersion string `yaml:"appVersion"`
	}
	decodeFile(t, "../deployments/helm/clusterrun/Chart.yaml", &chart)
	assert.Equal(t, spec.Version, chart.Version)
	assert.Equal(t, spec.Version, chart.AppVersion)
	decodeFile(t, "../deployments/helm/clusterrun/values.yaml", &map[string]any{})
}

func TestCompose(t *testing.T) {
	t.Parallel()
	var compose struct {
		Services map[string]struct {
			Image           string
			Command         []string
			Volumes         []string
			DependsOn       map[string]struct{ Condition string } `yaml:"depends_on"`
			Environment     map[string]string
			StopGracePeriod string `yaml:"stop_grace_period"`
		}
		Volumes map[string]any
	}
	decodeFile(t, "../deployments/compose.yaml", &compose)
	// The Temporal version must match the embedded server's go.mod.
	module := must.Get(os.ReadFile("../deployments/devserver/go.mod"))(t)
	server := regexp.MustCompile(`go\.temporal\.io/server v(\S+)`).FindSubmatch(module)
	require.NotNil(t, server)
	for name, s := range compose.Services {
		for other := range s.DependsOn {
			assert.Contains(t, compose.Services, other, name)
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if strings.HasPrefix(from, ".") {
				assert.FileExists(t, filepath.Join("..", "deployments", from))
			} else {
				assert.Contains(t, compose.Volumes, from)
			}
		}
		if image, _, _ := strings.Cut(s.Image, ":"); image == "clusterrun" {
			assert.Equal(t, "clusterrun:"+spec.Version, s.Image)
			assert.Equal(t, "temporal:7233", s.Environment["TEMPORAL_ADDRESS"])
			checkWorkerArgs(t, s.Command)
		} else if image == "temporalio/server" || image == "temporalio/admin-tools" {
			assert.Contains(t, s.Image, ":-"+string(server[1])+"}")
		}
	}
	registered := strings.Join(strings.Fields(strings.ReplaceAll(compose.Services["namespace"].Command[0], "\\\n", " ")), " ")
	assert.Contains(t, registered, spec.RegisterAttributes())
}

func decodeFile(t *testing.T, path string, into any) {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	require.NoError(t, yaml.Unmarshal(text, into), path)
}
