package torchrun

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// logs sets the output's destinations. By default, torchrun's processes write to its own stdout
// and stderr.
func (t *translation) logs() error {
	t.add("--set", "logs.redirects="+cmp.Or(t.ofRanks("redirects"), "0"), "--tee", cmp.Or(t.ofRanks("tee"), "0"))
	template := cmp.Or(t.text("log-line-prefix-template", ""), t.machine.getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"), "[${role_name}${local_rank}]:")
	t.add("--log-prefix", t.prefix(template))
	if dir := t.text("log-dir", ""); dir != "" {
		t.add("--log-dir", dir)
	}
	if ranks := t.text("local-ranks-filter", ""); ranks != "" {
		// If no rank is left, keep the value, so that it is refused instead of hiding all
		// output.
		t.add("--set", "logs.local_ranks_filter=["+cmp.Or(t.ofRanks("local-ranks-filter"), ranks)+"]")
	}
	for _, name := range []string{"duplicate-stdout-filters", "duplicate-stderr-filters"} {
		if texts := list(t.text(name, "")); len(texts) > 0 {
			items, err := json.Marshal(texts) // which is also YAML
			if err != nil {
				return err
			}
			t.add("--set", "logs."+strings.ReplaceAll(name, "-", "_")+"="+string(items))
		}
	}
	return nil
}

// ofRanks removes nonexistent local ranks from a flag's value, because torchrun ignores them.
func (t *translation) ofRanks(name string) string {
	items := strings.Split(t.text(name, ""), ",")
	return strings.Join(slices.DeleteFunc(items, func(item string) bool {
		rank, _, isMask := strings.Cut(item, ":")
		n, err := strconv.Atoi(rank)
		return err == nil && n >= t.processes && (isMask || name == "local-ranks-filter")
	}), ",")
}

var templateField = lazyregexp.New(`\$(\$|role_name\b|rank\b|local_rank\b|hostname\b|\{(role_name|hostname)\})`)

// prefix translates a Python template for `clusterrun run`.
func (t *translation) prefix(template string) string {
	return templateField().ReplaceAllStringFunc(template, func(field string) string {
		switch name := strings.Trim(field[1:], "{}"); name {
		case "$":
			return "$"
		case "hostname":
			return "{{.Host}}"
		case "role_name":
			if t.role() != t.taskType() {
				return t.role()
			}
			fallthrough
		default:
			return "${" + name + "}"
		}
	})
}

// list splits text at commas. A double comma stands for a comma within an item.
func list(text string) (items []string) {
	const comma = "\x00"
	for item := range strings.SplitSeq(strings.ReplaceAll(text, ",,", comma), ",") {
		if item != "" {
			items = append(items, strings.ReplaceAll(item, comma, ","))
		}
	}
	return items
}
