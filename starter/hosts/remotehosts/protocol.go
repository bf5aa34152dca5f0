package remotehosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/clusterrun/clusterrun/workers"
)

// startRequest asks a host to start a host worker.
type startRequest struct {
	Version string          `json:"version"`
	Options workers.Options `json:"options"` // except directories and the server
}

// Facts are the facts that a host reports about itself.
type Facts struct {
	Hostname string `json:"hostname"`
	CPUs     int    `json:"cpus"`
	GPUs     int    `json:"gpus"`
	// GPUsLimitedBy is the variable that limits the GPUs, or empty.
	GPUsLimitedBy string `json:"gpus_limited_by,omitempty"`
	// Address is this host's address for other hosts.
	Address string `json:"address"`
	// Peer is the command's address as seen by this host. It is empty if the agent does not
	// report it.
	Peer string `json:"peer,omitempty"`
}

const (
	// maxMessage limits a command's request and a host's answer, in bytes. The options of a host
	// worker contain an environment.
	maxMessage = 16 << 20
	// maxPiece limits an encoded piece, in bytes.
	maxPiece = 8 << 20
)

// read decodes a command's request into v. If that fails, it answers the request with an error.
func read(w http.ResponseWriter, r *http.Request, v any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxMessage)).Decode(v)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, fmt.Sprintf("the request exceeds %d MiB", maxMessage>>20), http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

// outputRequest identifies the run to copy logs from.
type outputRequest struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// piece is part of a log file, to be appended to its copy.
type piece struct {
	// Path is relative to the run's directory.
	Path string
	Data []byte
	// Problem describes something that could not be read.
	Problem string
	// End reports whether this is the last piece of all files.
	End bool
}

// protocols is HTTP/2 without TLS, because only the process that started us holds the pipes.
func protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}
