package spec

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// GroupID returns the workflow ID of a group of a run: the nth of those that an execution
// of the run's workflow starts on that host in a generation. The whole ID of the execution
// is in it: those that begin in the same minute have the same first digits.
func GroupID(workflowID, execution string, generation int, host string, n int) string {
	return fmt.Sprintf("%s%d/%s/%d", GroupIDPrefix(workflowID, execution), generation, url.PathEscape(host), n)
}

// GroupIDPrefix returns what the IDs of all groups of one execution of a run begin with.
func GroupIDPrefix(workflowID, execution string) string {
	return workflowID + "/group/" + execution + "/"
}

// GenerationOfGroup returns the generation of the group with that workflow ID, and -1 for
// the IDs of other workflows.
func GenerationOfGroup(id string) int {
	parts := strings.Split(id, "/")
	generation, err := strconv.Atoi(parts[max(0, len(parts)-3)])
	if err != nil {
		return -1
	}
	return generation
}

// HostOfGroup returns the host of the group with that workflow ID.
func HostOfGroup(id string) string {
	parts := strings.Split(id, "/")
	host, err := url.PathUnescape(parts[max(0, len(parts)-2)])
	if err != nil {
		return ""
	}
	return host
}
