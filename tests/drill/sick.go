package drill

import "fmt"

// span is a period during which something was wrong with a host.
type span struct {
	host string
	// from and until are in this machine's bootNanos. An until of 0 is in the future.
	from, until int64
}

// covers reports whether a time is within the span.
func (s span) covers(at int64) bool { return at > s.from && (s.until == 0 || at < s.until) }

// checkSick checks that no process started on a host while a check kept the host cordoned.
func checkSick(pages []page, sick []span) []string {
	var found []string
	for _, p := range pages {
		for _, s := range sick {
			if s.host == p.host && s.covers(p.started) {
				found = append(found, fmt.Sprintf("process %d of %s was started on %s, whose check failed", p.pid, p.task, p.host))
			}
		}
	}
	return found
}
