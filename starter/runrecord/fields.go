package runrecord

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// fields returns a spec's fields, with defaults, by path. Paths name groups of tasks by type. It
// omits values that are probably secret.
func fields(s *spec.RunSpec) values {
	text, err := json.Marshal(s.WithDefaults().WithoutSecrets())
	if err != nil {
		return nil
	}
	var doc any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&doc) != nil {
		return nil
	}
	out := values{}
	walk(out, "", doc)
	delete(out, "env."+spec.EnvSweep) // all trials differ in these
	delete(out, "env."+spec.EnvTrial)
	return out
}

func walk(out values, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			at := name
			if path != "" {
				at = path + "." + name
			}
			walk(out, at, item)
		}
		return
	case []any:
		types := make([]string, 0, len(v))
		for _, item := range v {
			group, _ := item.(map[string]any)
			if typ, ok := group["type"].(string); ok {
				types = append(types, typ)
			}
		}
		if len(types) == len(v) && len(v) > 0 {
			for i, item := range v {
				walk(out, path+"."+types[i], item)
			}
			return
		}
	case string:
		out[path] = &v
		return
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it was read from JSON
	value := strings.TrimSuffix(text.String(), "\n")
	out[path] = &value
}
