package devserver

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whoever may use the Web UI may use its codec, which learns nothing of the browser.
func TestTheCodecOfTheWebUI(t *testing.T) {
	codec := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, strings.Join([]string{r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.Header.Get("Origin"), string(b)}, "|"))
	}))
	defer codec.Close()
	cmd := command("--json", "--port=0", "--ui-port=0", "--key", filepath.Join(t.TempDir(), "key.pem"))
	cmd.Env = append(cmd.Env, codecEndpoint+"="+codec.URL, codecAuth+"=Bearer word")
	p := startCommand(t, cmd)
	link, err := url.Parse(p.ready.UI)
	require.NoError(t, err)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	decode := func(origin string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+link.Host+"/codec/decode", strings.NewReader("{}"))
		require.NoError(t, err)
		r.Header.Set("Origin", origin)
		resp, err := browser.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(b)
	}
	status, _ := decode("http://" + link.Host)
	assert.Equal(t, http.StatusUnauthorized, status)
	resp, err := browser.Get(p.ready.UI)
	require.NoError(t, err)
	resp.Body.Close()
	status, body := decode("http://" + link.Host)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "/decode|Bearer word|||{}", body)
	status, _ = decode("http://evil.example")
	assert.Equal(t, http.StatusForbidden, status)
}

func TestACodecThatIsNoURL(t *testing.T) {
	t.Setenv(codecEndpoint, "here")
	_, err := withCodec(nil)
	assert.ErrorContains(t, err, "TEMPORAL_CODEC_ENDPOINT=here is not a URL")
}
