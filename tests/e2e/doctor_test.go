package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/clusterrun/clusterrun/starter/doctor/debugbundle"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// shifted forwards requests to a server, and shifts its clock.
type shifted struct {
	workflowservice.WorkflowServiceServer
	by time.Duration
}

func (s shifted) DescribeTaskQueue(ctx context.Context, r *workflowservice.DescribeTaskQueueRequest) (*workflowservice.DescribeTaskQueueResponse, error) {
	answer, err := s.WorkflowServiceServer.DescribeTaskQueue(ctx, r)
	for _, p := range answer.GetPollers() {
		p.LastAccessTime = timestamppb.New(p.GetLastAccessTime().AsTime().Add(s.by))
	}
	return answer, err
}

// The clock of a real server is compared with the clock of this machine.
func TestDoctorComparesTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	_, said, _ := s.CLI(t, "doctor")
	assert.Regexp(t, `(?m)^ok +server +the clocks of the server and of this machine agree, to within [0-9.]+m?s$`, said)

	p := must.Get(proxy.NewWorkflowServiceProxyServer(proxy.WorkflowServiceProxyOptions{Client: s.Client().WorkflowService()}))(t)
	for by, want := range map[time.Duration]string{-time.Minute: "-1m", 2 * time.Hour: "2h0m"} {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		server := grpc.NewServer()
		workflowservice.RegisterWorkflowServiceServer(server, shifted{p, by})
		go func() { _ = server.Serve(l) }()
		t.Cleanup(server.Stop)
		_, said, _ := s.CLI(t, "doctor", "--address", l.Addr().String())
		assert.Regexp(t, `(?m)^warning +server +the clock of the server differs from that of this machine by about `+want, said)
		assert.Regexp(t, `(?m)^ +-> timedatectl set-ntp true, here and where the server is$`, said)
	}
}

// A bundle contains no secrets from any usual place, neither in plain text nor within encoded
// data.
func TestDebugBundleHasNoSecrets(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	l.write("secret-file", "canary-of-file\n")
	l.write("api-key", "canary-of-api-key-file\n")
	codecKey := base64.StdEncoding.EncodeToString([]byte("canary-of-codec-keys-32-bytes-ab"))
	require.NoError(t, os.WriteFile(filepath.Join(l.home, "codec-keys"), []byte("k1 "+codecKey+"\n"), 0o600))
	l.write("temporal.toml", "[profile.default]\naddress = \"127.0.0.1:1\"\napi_key = \"canary-of-profile\"\n[profile.default.grpc_meta]\nauthorization = \"canary-of-header\"\n")
	l.write("train", `echo "stdout has canary-of-output and $DB_PASSWORD"; echo "stderr has canary-of-output, $INNOCENT" >&2; exit 3`)
	env := []string{"SHELL_TOKEN=canary-of-shell", "TEMPORAL_GRPC_META_X_TENANT=canary-of-meta", "PLAIN_IN_SHELL=canary-of-plain"}
	code, _, stderr := l.runIn(env, "run", "--id", "leaky", "-n", "1", "--env", "DB_PASSWORD=canary-of-run", "--env", "INNOCENT=canary-of-innocent",
		"--secret", "FROM_FILE=file:"+l.home+"/secret-file", "--", "bash", l.home+"/train", "--password", "canary-of-flag", "--url=https://ann:canary-of-url@host/")
	require.Equal(t, 3, code, stderr)

	// A run that a host worker of this state directory has run, with a journal.
	l.ok("worker", "--detach")
	defer l.endBackgroundWorker()
	code, _, stderr = l.runIn(env, "submit", "--id", "journalled", "-n", "1", "--env", "DB_PASSWORD=canary-of-run", "--secret", "FROM_FILE=file:"+l.home+"/secret-file",
		"--", "bash", l.home+"/train", "--password", "canary-of-flag")
	require.Zero(t, code, stderr)
	l.fails(3, "wait", "journalled")

	var block *pem.Block
	key := must.Get(os.ReadFile(filepath.Join(l.state(), "server", "key.pem")))(t)
	secrets := []string{"canary", codecKey}
	for rest := key; ; secrets = append(secrets, base64.StdEncoding.EncodeToString(block.Bytes)[:40]) {
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
	}
	require.Greater(t, len(secrets), 2, "the key of the server is one of them")
	// note adds a text to each log.
	note := func(text string) {
		for _, name := range []string{"dev.log", "dev/worker.log", "server/server.log"} {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(l.state(), name)), 0o700))
			f := must.Get(os.OpenFile(filepath.Join(l.state(), name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600))(t)
			_, err := f.WriteString(text + "\nthe last line\n")
			require.NoError(t, errors.Join(err, f.Close()))
		}
	}
	inURL := "Web UI http://127.0.0.1:8233/?token=canary-of-gate\nAuthorization: Bearer canary-of-bearer\n" + string(key) + codecKey + " canary-of-meta canary-of-shell"

	for _, c := range []struct {
		name string
		code int
		said string
		env  []string
		args []string
		has  []string
	}{
		{"run", 0, inURL + " canary-of-file canary-of-innocent", nil, []string{"leaky"}, []string{"run/account.json", "run/history.json"}},
		{"no-server", 125, "canary-of-api-key-file canary-of-profile canary-of-header canary-of-cert-data",
			[]string{"TEMPORAL_API_KEY=canary-of-api-key", "TEMPORAL_TLS_SERVER_CA_CERT_DATA=canary-of-cert-data"},
			[]string{"leaky", "--config-file", l.home + "/temporal.toml", "--api-key-file", l.home + "/api-key"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.code != 0 { // only the spec of that run marks these texts as secret
				for _, name := range []string{"dev.log", "dev/worker.log", "server/server.log"} {
					require.NoError(t, os.Truncate(filepath.Join(l.state(), name), 0))
				}
			}
			note(c.said)
			file := filepath.Join(l.home, c.name+".tar.gz")
			args := append([]string{"doctor", "--bundle", file, "--codec-keys", l.home + "/codec-keys"}, c.args...)
			code, stdout, stderr := l.runIn(append(append([]string{}, env...), c.env...), args...)
			require.Equal(t, c.code, code, stderr)
			assert.Contains(t, stdout, "server")
			info := must.Get(os.Stat(file))(t)
			assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			files := unpack(t, file)
			for _, want := range append(c.has, "doctor.json", "doctor.txt", "version.json", "configuration.json", "supervisors.json", "logs/dev.log", "logs/dev/worker.log", "logs/server/server.log") {
				assert.Contains(t, files, want)
			}
			m := must.JSON[debugbundle.Manifest](t, files["manifest.json"])
			assert.Len(t, m.Files, len(files)-1)
			assert.NotEmpty(t, m.LeftOut)
			assert.Contains(t, string(files["logs/dev.log"]), "the last line\n")
			var journals []string
			for packed, content := range files {
				if strings.HasPrefix(packed, "journals/worker/") {
					journals = append(journals, string(content))
				}
				for _, secret := range secrets {
					assert.NotContains(t, decoded(content), secret, packed)
				}
			}
			require.Len(t, journals, 1)
			for _, record := range []string{`"type":"run"`, `"workflow_id":"journalled"`, `"type":"starting"`, `"task":"worker-0"`, `"type":"exited"`, `"code":3`} {
				assert.Contains(t, journals[0], record)
			}
		})
	}
}

func unpack(t *testing.T, file string) map[string][]byte {
	t.Helper()
	packed := must.Get(os.ReadFile(file))(t)
	zip := must.Get(gzip.NewReader(bytes.NewReader(packed)))(t)
	files := map[string][]byte{}
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		files[h.Name] = must.Get(io.ReadAll(archive))(t)
	}
}

var encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}`)

// decoded returns a text and, behind it, all in it that may be base64, without the encoding.
func decoded(content []byte) string {
	out := string(content)
	for _, word := range encoded.FindAllString(out, -1) {
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			b, _ := e.DecodeString(word[:len(word)/4*4])
			out += "\n" + string(b)
		}
	}
	return out
}
