package debugbundle

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// leftOut replaces secrets.
const leftOut = "(left out)"

// Scrubber replaces secrets.
type Scrubber struct{ known *strings.Replacer }

// shortest is the least length of a value that is replaced. A shorter one is part of other
// words, and replacing those would reveal it.
const shortest = 6

// NewScrubber returns a Scrubber that replaces these values. Of a value with several lines it
// replaces each line.
func NewScrubber(values []string) *Scrubber {
	var forms []string
	for _, value := range values {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) < shortest {
				continue
			}
			quoted, _ := json.Marshal(line) // encoding a string cannot fail
			b := []byte(line)
			forms = append(forms, line, string(bytes.Trim(quoted, `"`)), url.QueryEscape(line), url.PathEscape(line), hex.EncodeToString(b),
				base64.RawStdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b))
		}
	}
	// The replacer uses the first match, so longer forms must precede their parts.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, f := range slices.Compact(forms) {
		pairs = append(pairs, f, leftOut)
	}
	return &Scrubber{strings.NewReplacer(pairs...)}
}

var (
	// privateKey matches a key, or the end of one whose beginning was cut off.
	privateKey = lazyregexp.New(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----)?([A-Za-z0-9+/=\s]|\\n)*-----END [A-Z ]*PRIVATE KEY-----|-----BEGIN [A-Z ]*PRIVATE KEY-----.*`)
	userinfo   = lazyregexp.New(`://[^/\s@"']+@`)
	header     = lazyregexp.New(`(?i)\b(authorization|cookie|set-cookie|x-api-key)("?\s*[:=]\s*)[^\r\n"]+`)
	scheme     = lazyregexp.New(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}`)
	token      = lazyregexp.New(`\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|\b(gh[opusr]_|github_pat_|sk-|xox[abp]-|AKIA)[A-Za-z0-9_-]{8,}`)
	// assigned matches NAME=value, "name": "value", name: value, and --name value.
	assigned = lazyregexp.New(`(-{0,2})([A-Za-z_][A-Za-z0-9_.-]*)(\\?["']?\s*[=:]\s*|\s+)(\\?"[^"\r\n]*"|\\?'[^'\r\n]*'|[^\s"',;&]+)`)
)

// Text replaces known secrets, and text that looks like one.
func (s *Scrubber) Text(text string) string {
	text = s.known.Replace(text)
	text = privateKey().ReplaceAllString(text, leftOut)
	text = userinfo().ReplaceAllString(text, "://"+leftOut+"@")
	text = header().ReplaceAllString(text, "$1$2"+leftOut)
	text = scheme().ReplaceAllString(text, "$1 "+leftOut)
	text = token().ReplaceAllString(text, leftOut)
	return replaceAssigned(text)
}

// replaceAssigned replaces values that are assigned to names of secrets. An assigned value may
// be an assignment itself, so the search continues right after each name.
func replaceAssigned(text string) string {
	var out strings.Builder
	for {
		m := assigned().FindStringSubmatchIndex(text)
		if m == nil {
			out.WriteString(text)
			return out.String()
		}
		flag, name := text[m[2]:m[3]], text[m[4]:m[5]]
		sign, value := text[m[6]:m[7]], text[m[8]:m[9]]
		isAssigned := strings.ContainsAny(sign, "=:") || flag != ""
		switch {
		case isAssigned && looksSecret(name, "") && strings.Trim(value, `\"'`) != leftOut && !strings.HasPrefix(value, "("):
			out.WriteString(text[:m[8]] + leftOut)
			text = text[m[9]:]
		default:
			out.WriteString(text[:m[5]])
			text = text[m[5]:]
		}
	}
}

var camel = lazyregexp.New(`([a-z0-9])([A-Z])`)

// looksSecret is [spec.LooksSecret] for names in files, in flags and in JSON.
func looksSecret(name, value string) bool {
	name = camel().ReplaceAllString(name, "${1}_$2")
	return spec.LooksSecret(strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name)), value)
}

// JSON encodes v without secrets: without values of variables and payloads, and with text that
// looks like a secret replaced.
func (s *Scrubber) JSON(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var doc any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err = e.Encode(s.clean("", doc))
	return out.Bytes(), err
}

// variables are the fields that hold variables by name. content are the fields that hold output
// of programs; the message of a failure contains their last lines.
var (
	variables = []string{"env", "set", "inherited"}
	content   = []string{"last_lines", "value", "output", "message", "stackTrace", "last_failure", "traceback", "reason"}
)

func (s *Scrubber) clean(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		if data, ok := v["data"].(string); ok && v["metadata"] != nil { // a payload
			return fmt.Sprintf("(left out: a payload of about %d bytes)", len(data)*3/4)
		}
		for key, item := range v {
			_, isText := item.(string)
			switch {
			case slices.Contains(variables, name):
				v[key] = leftOutOf(item)
			case item != nil && slices.Contains(content, key), isText && looksSecret(key, ""):
				v[key] = leftOut
			default:
				v[key] = s.clean(key, item)
			}
		}
		return v
	case []any:
		flag := false // the previous argument is the flag of a secret
		for i, item := range v {
			text, isText := item.(string)
			if isText && flag {
				v[i], flag = leftOut, false
				continue
			}
			flag = isText && strings.HasPrefix(text, "-") && !strings.Contains(text, "=") && looksSecret(strings.TrimLeft(text, "-"), "")
			v[i] = s.clean(name, item)
		}
		return v
	case string:
		return s.Text(v)
	}
	return v
}

// leftOutOf replaces the value of a variable, but keeps a reference to one.
func leftOutOf(item any) any {
	if from, ok := item.(map[string]any); ok && (from["from_env"] != nil || from["from_file"] != nil) {
		return item
	}
	return leftOut
}
