package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const (
	settingsPath = "/api/v1/settings"
	// mostAdapted bounds the answers that are adapted.
	mostAdapted = 4 << 20
)

// adapt changes an answer of the Web UI so that it works below [TemporalPath]. Its own setting
// for that leaves out its policy for scripts, and it would have to be started with it.
func adapt(r *http.Response, readOnly bool) error {
	var change func([]byte) ([]byte, error)
	switch {
	case r.StatusCode != http.StatusOK:
		return nil
	case readOnly && r.Request.URL.Path == settingsPath:
		change = withoutChanges
	case strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") && r.Request.URL.Path != "/render":
		change = adaptPage
	default:
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, mostAdapted))
	if err != nil {
		return err
	}
	r.Body.Close()
	if text, err = change(text); err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	r.ContentLength = int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}

// adaptPage changes the start page of the Web UI. Its policy has the digest of its script.
func adaptPage(text []byte) ([]byte, error) {
	before := digestOfScript(text)
	if before == "" || !bytes.Contains(text, []byte(before)) || !bytes.Contains(text, []byte(`base: ""`)) {
		return nil, fmt.Errorf("its start page is not the one that this version of clusterrun knows")
	}
	text = bytes.ReplaceAll(text, []byte(`base: ""`), []byte(`base: "`+TemporalPath+`"`))
	text = bytes.ReplaceAll(text, []byte(`"/_app/`), []byte(`"`+TemporalPath+`/_app/`))
	return withBackLink(bytes.ReplaceAll(text, []byte(before), []byte(digestOfScript(text)))), nil
}

// digestOfScript returns the digest of the script in a page, as a policy has it.
func digestOfScript(page []byte) string {
	_, rest, _ := bytes.Cut(page, []byte("<script>"))
	script, _, found := bytes.Cut(rest, []byte("</script>"))
	if !found {
		return ""
	}
	sum := sha256.Sum256(script)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// withoutChanges changes the settings of the Web UI so that it offers no changes.
func withoutChanges(text []byte) ([]byte, error) {
	settings := map[string]any{}
	if err := json.Unmarshal(text, &settings); err != nil {
		return nil, err
	}
	settings["DisableWriteActions"] = true
	return json.Marshal(settings)
}
