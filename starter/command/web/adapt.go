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
	settingsPath   = "/api/v1/settings"
	extensionsPath = "/api/v1/ui-extensions"
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
	case r.Request.URL.Path == settingsPath:
		change = func(text []byte) ([]byte, error) { return adaptSettings(text, readOnly) }
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
	return bytes.ReplaceAll(text, []byte(before), []byte(digestOfScript(text))), nil
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

// adaptSettings changes the settings of the Web UI.
func adaptSettings(text []byte, readOnly bool) ([]byte, error) {
	settings := map[string]any{}
	if err := json.Unmarshal(text, &settings); err != nil {
		return nil, err
	}
	settings["CustomUI"] = map[string]any{"Enabled": true} // so that it asks for extensions
	if readOnly {
		settings["DisableWriteActions"] = true
	}
	return json.Marshal(settings)
}

// answerExtensions names the extension of the Web UI: a frame on the pages of workflows, with a
// link to the page of the run.
func answerExtensions(w http.ResponseWriter) {
	secure(w.Header())
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"Enabled": true, "IframeExtensions": []any{map[string]any{
		"ID": "clusterrun", "Title": "clusterrun", "Slot": "workflow.header.after-details",
		"Src": linkPath, "AllowedOrigin": "self", "RoutePatterns": []string{}, "Permissions": []string{},
		// Its script reads the address of the page around it.
		"Sandbox": map[string]any{"AllowSameOrigin": true, "AllowPopups": true},
		"Sizing":  map[string]any{"DefaultHeight": 32, "MinHeight": 32, "MaxHeight": 32},
	}}})
}
