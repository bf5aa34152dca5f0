package devserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// A client with the key is served on any port of the server. Other clients cannot even find out
// whether the server is healthy.
func TestOnlyWhoHasTheKeyIsServed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.pem")
	p := start(t, "--key", file)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	k, err := openKey(file)
	require.NoError(t, err)
	stranger, err := ownKey(filepath.Join(t.TempDir(), "key.pem"))
	require.NoError(t, err)
	ports := listening(t, p.cmd.Process.Pid)
	require.Len(t, ports, 4)
	for _, address := range ports {
		assert.NoError(t, healthOf(t, address, k.credentials()), address)
		assert.Error(t, healthOf(t, address, insecure.NewCredentials()), address)
		assert.Error(t, healthOf(t, address, credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})), address)
		assert.Error(t, healthOf(t, address, credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{stranger.pair}})), address)
	}
	_, err = client.Dial(client.Options{HostPort: p.ready.Address, Logger: quiet})
	require.Error(t, err)
	pair, err := tls.LoadX509KeyPair(file, file)
	require.NoError(t, err)
	c, err := client.Dial(client.Options{HostPort: p.ready.Address, Logger: quiet, ConnectionOptions: client.ConnectionOptions{
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true},
	}})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	require.NoError(t, err)
}

// healthOf requests the health of a server's port.
func healthOf(t *testing.T, address string, c credentials.TransportCredentials) error {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(c))
	require.NoError(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// listening returns a process's listening addresses.
func listening(t *testing.T, pid int) []string {
	t.Helper()
	inodes := map[string]bool{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	for _, fd := range fds {
		if target, _ := os.Readlink(fd); strings.HasPrefix(target, "socket:[") {
			inodes[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	text, err := os.ReadFile("/proc/net/tcp")
	require.NoError(t, err)
	var found []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 9 && f[3] == "0A" && inodes[f[9]] {
			port, err := strconv.ParseUint(strings.Split(f[1], ":")[1], 16, 16)
			require.NoError(t, err)
			found = append(found, address("127.0.0.1", int(port)))
		}
	}
	return found
}

func TestTheKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.pem")
	first, err := ownKey(file)
	require.NoError(t, err)
	again, err := ownKey(file)
	require.NoError(t, err)
	assert.Equal(t, first.token(), again.token())
	assert.Len(t, first.token(), 32)

	old := time.Now().Add(-keyRotates - time.Hour)
	require.NoError(t, os.Chtimes(file, old, old))
	next, err := ownKey(file)
	require.NoError(t, err)
	assert.NotEqual(t, first.token(), next.token(), "an old key is replaced")

	require.NoError(t, os.Chmod(file, 0o640))
	_, err = ownKey(file)
	require.ErrorContains(t, err, "can be read by others")
	require.NoError(t, os.Chmod(file, 0o600))
	require.NoError(t, os.WriteFile(file, []byte("nonsense"), 0o600))
	_, err = ownKey(file)
	require.ErrorContains(t, err, "remove it to create a new one")
	_, err = ownKey(filepath.Join(file, "key.pem"))
	require.ErrorContains(t, err, "--key")
}

// The Web UI admits a browser with the link, also later, but not other users, pages of another
// origin, or foreign names of this address.
func TestTheWebUIIsForItsUser(t *testing.T) {
	p := startCommand(t, command(t, "--json", "--port=0", "--ui-port=0", "--key", filepath.Join(t.TempDir(), "key.pem")))
	link, err := url.Parse(p.ready.UI)
	require.NoError(t, err)
	require.NotEmpty(t, link.Query().Get("token"))
	base := "http://" + link.Host
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	get := func(c *http.Client, url string, header ...string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
			if header[i] == "Host" {
				req.Host = header[i+1]
			}
		}
		resp, err := c.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	const api = "/api/v1/namespaces"
	for _, path := range []string{"/", api, "/healthz", "/?token=0123456789abcdef0123456789abcdef"} {
		assert.Equal(t, http.StatusUnauthorized, get(http.DefaultClient, base+path), path)
	}
	assert.Equal(t, http.StatusOK, get(browser, p.ready.UI))
	assert.Equal(t, http.StatusOK, get(browser, base+api), "it has a cookie now")
	browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		assert.Equal(t, "/namespaces/default/workflows/clusterrun%2Ffleet?a=b", r.URL.RequestURI(), "the rest of a link stays")
		return http.ErrUseLastResponse
	}
	get(browser, base+"/namespaces/default/workflows/clusterrun%2Ffleet?a=b&token="+link.Query().Get("token"))
	browser.CheckRedirect = nil
	for _, c := range jar.Cookies(link) {
		assert.NotContains(t, c.Name, "token")
		assert.NotEqual(t, link.Query().Get("token"), c.Value, "browsers send it to the other ports of this machine")
	}
	assert.Equal(t, http.StatusForbidden, get(browser, base+api, "Host", "evil.example"))
	assert.Equal(t, http.StatusForbidden, get(browser, base+api, "Origin", "http://evil.example"))
	assert.Equal(t, http.StatusForbidden, get(browser, p.ready.UI, "Host", "evil.example"))
	assert.Equal(t, http.StatusOK, get(browser, p.ready.UI, "Host", "localhost:"+link.Port()))
	assert.Equal(t, http.StatusOK, get(browser, base+api, "Origin", base))
}

// A server without a Web UI can be given one.
func TestAWebUIForAServerThatRuns(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key.pem")
	p := start(t, "--key", key)
	before, err := os.ReadFile(key)
	require.NoError(t, err)
	old := time.Now().Add(-2 * keyRotates)
	require.NoError(t, os.Chtimes(key, old, old))
	u := startCommand(t, command(t, "--json", "--ui-port=0", "--key", key, "--ui-for", p.ready.Address))
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	resp, err := browser.Get(u.ready.UI)
	require.NoError(t, err)
	resp.Body.Close()
	link, err := url.Parse(u.ready.UI)
	require.NoError(t, err)
	resp, err = browser.Get("http://" + link.Host + "/api/v1/namespaces")
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	after, err := os.ReadFile(key)
	require.NoError(t, err)
	assert.Equal(t, before, after, "the server has this one")
	u.signal(os.Interrupt)
	assert.Equal(t, ExitOK, u.await())
}
