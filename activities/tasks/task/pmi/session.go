package pmi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits that clients request, in bytes. MPICH's own server uses the same.
const (
	maxName  = 256
	maxKey   = 64
	maxValue = 1024
)

// World describes a process and its peers.
type World struct {
	Rank, Size int
	// App is the index of its program among the world's programs.
	App int
	// Mapping lists which ranks share a host ([Mapping]). Empty means unknown.
	Mapping string
}

// name is the name of the only key-value space.
const name = "clusterrun"

// mappingKey is the key of a pair that exists from the start.
const mappingKey = "PMI_process_mapping"

// Session is one process. It is not safe for concurrent use.
type Session struct {
	world World
	pairs map[string]string
	keys  []string // of pairs, in arrival order
	fresh []string // keys put since the last barrier
	// spawning reports whether lines up to endcmd belong to a request to start processes.
	spawning bool
}

// NewSession returns the session of a new process.
func NewSession(w World) *Session {
	s := &Session{world: w, pairs: map[string]string{}}
	if w.Mapping != "" && len(w.Mapping) <= maxValue {
		s.set(mappingKey, w.Mapping)
	}
	return s
}

// Step is the action that a line requires in addition to its answer.
type Step int

// The values of [Step].
const (
	// Answer requires nothing else.
	Answer Step = iota
	// Barrier requires the barrier; the answer follows it.
	Barrier
	// Abort requires all processes to exit, with [Reply.Code].
	Abort
	// Unknown means that the line is not a PMI-1 request; [Reply.Text] explains.
	Unknown
)

// Reply is a line's result.
type Reply struct {
	Step Step
	// Text is the answer, either a whole line or empty.
	Text string
	Code int
}

// Line handles a line without its newline.
func (s *Session) Line(line string) Reply {
	if s.spawning {
		if line != "endcmd" {
			return Reply{}
		}
		s.spawning = false
		return answer("cmd=spawn_result rc=-1 msg=clusterrun_starts_no_processes_for_MPI_Comm_spawn status=spawn_refused")
	}
	words := parse(line)
	if words["mcmd"] == "spawn" {
		s.spawning = true
		return Reply{}
	}
	switch words["cmd"] {
	case "init":
		rc := 0
		if words["pmi_version"] != "1" {
			rc = -1
		}
		return answer("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d", rc)
	case "get_maxes":
		return answer("cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d", maxName, maxKey, maxValue)
	case "get_appnum":
		return answer("cmd=appnum appnum=%d", s.world.App)
	case "get_universe_size":
		return answer("cmd=universe_size size=%d", s.world.Size)
	case "get_my_kvsname":
		return answer("cmd=my_kvsname kvsname=%s", name)
	case "put":
		return s.put(words)
	case "get":
		return s.get(words)
	case "getbyidx":
		return s.getByIndex(words)
	case "barrier_in":
		return Reply{Step: Barrier}
	case "finalize":
		return answer("cmd=finalize_ack")
	case "abort":
		code, err := strconv.Atoi(words["exitcode"])
		if err != nil {
			code = 1
		}
		return Reply{Step: Abort, Code: code}
	case "publish_name", "unpublish_name", "lookup_name":
		verb := strings.TrimSuffix(words["cmd"], "_name")
		return answer("cmd=%s_result rc=-1 info=not_supported msg=not_supported", verb)
	}
	return Reply{Step: Unknown, Text: fmt.Sprintf("%.100q is not a PMI-1 request", line)}
}

func answer(format string, args ...any) Reply {
	return Reply{Text: fmt.Sprintf(format, args...) + "\n"}
}

// parse reads words name=value. If a name is repeated, the first one counts.
func parse(line string) map[string]string {
	words := map[string]string{}
	for word := range strings.FieldsSeq(line) {
		name, value, ok := strings.Cut(word, "=")
		if _, known := words[name]; ok && !known {
			words[name] = value
		}
	}
	return words
}

func (s *Session) put(words map[string]string) Reply {
	key, value := words["key"], words["value"]
	why := ""
	switch {
	case words["kvsname"] != name:
		why = "no_such_kvsname"
	case key == "":
		why = "no_key"
	case len(key) > maxKey:
		why = "key_too_long"
	case len(value) > maxValue:
		why = "value_too_long"
	case !utf8.ValidString(key + value):
		why = "not_utf8"
	}
	if why != "" {
		return answer("cmd=put_result rc=-1 msg=%s", why)
	}
	s.set(key, value)
	s.fresh = append(s.fresh, key)
	return answer("cmd=put_result rc=0 msg=success")
}

func (s *Session) get(words map[string]string) Reply {
	value, ok := s.pairs[words["key"]]
	switch {
	case words["kvsname"] != name:
		return answer("cmd=get_result rc=-1 msg=no_such_kvsname value=unknown")
	case !ok:
		return answer("cmd=get_result rc=-1 msg=no_such_key value=unknown")
	}
	return answer("cmd=get_result rc=0 msg=success value=%s", value)
}

func (s *Session) getByIndex(words map[string]string) Reply {
	i, err := strconv.Atoi(words["idx"])
	switch {
	case words["kvsname"] != name:
		return answer("cmd=getbyidx_results rc=-1 reason=no_such_kvsname")
	case err != nil || i < 0 || i >= len(s.keys):
		return answer("cmd=getbyidx_results rc=-2 reason=no_more_keyvals")
	}
	return answer("cmd=getbyidx_results rc=0 nextidx=%d key=%s val=%s", i+1, s.keys[i], s.pairs[s.keys[i]])
}

func (s *Session) set(key, value string) {
	if _, known := s.pairs[key]; !known {
		s.keys = append(s.keys, key)
	}
	s.pairs[key] = value
}

// Brings returns the process's value for the required barrier: its pairs since the previous one,
// each as a line "KEY VALUE".
func (s *Session) Brings() string {
	var text strings.Builder
	for _, key := range slices.Compact(slices.Sorted(slices.Values(s.fresh))) {
		text.WriteString(key + " " + s.pairs[key] + "\n")
	}
	return text.String()
}

// Released records all processes' values at a barrier, and returns the answer to the process.
func (s *Session) Released(brought []string) string {
	s.fresh = nil
	for _, text := range brought {
		for line := range strings.Lines(text) {
			if key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
				s.set(key, value)
			}
		}
	}
	return "cmd=barrier_out\n"
}
