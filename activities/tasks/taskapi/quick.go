package taskapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// quickPatience is how long writing an answer may take if the client does not read. Others
// wait for their answers meanwhile.
const quickPatience = time.Second

var (
	quickStart = []byte("POST " + wire.PathBarriers)
	quickHead  = []byte(" HTTP/1.1\r\nHost: task\r\nContent-Length: ")
	headEnd    = []byte("\r\n\r\n")
)

// arrive handles the arrival of the task at a local barrier. It returns false, without any
// effect, if the request is for net/http.
func (c *conn) arrive(b []byte) bool {
	name, body, ok := parseQuick(b)
	if !ok {
		return false
	}
	unescaped, err := url.PathUnescape(string(name))
	if err != nil {
		return false
	}
	in, ok := parseArrive(body)
	if !ok && decodeStrictly(body, &in) != nil {
		return false
	}
	e := c.listener.endpoint
	r := request{server: c.listener.server, endpoint: e, name: unescaped}
	a, local, problem := r.arrival(in)
	if problem != nil || !local {
		return false
	}
	if c.told == nil {
		c.told = make(chan error, 1)
		_ = c.SetReadDeadline(time.Time{}) // the deadline was for the first request
	}
	resume := e.waits(a)
	c.resume = resume
	c.ticket = e.rounds.arrive(a, func(o outcome) {
		resume(o)
		c.tell(o)
	})
	return true
}

// parseQuick parses an arrival that was read completely, with nothing after it.
func parseQuick(b []byte) (name, body []byte, ok bool) {
	rest, ok := bytes.CutPrefix(b, quickStart)
	if !ok {
		return nil, nil, false
	}
	name, rest, ok = bytes.Cut(rest, quickHead)
	if !ok || bytes.ContainsAny(name, " \r\n/?#") {
		return nil, nil, false
	}
	number, body, ok := bytes.Cut(rest, headEnd)
	length, err := strconv.ParseUint(string(number), 10, 16)
	return name, body, ok && err == nil && length == uint64(len(body))
}

// parseArrive parses {"key":"K"} and {"key":"K","local":true}, the usual bodies. All others
// are for the general decoder.
func parseArrive(body []byte) (wire.Arrive, bool) {
	rest, ok := bytes.CutPrefix(body, []byte(`{"key":"`))
	if !ok {
		return wire.Arrive{}, false
	}
	key, rest, ok := bytes.Cut(rest, []byte{'"'})
	if !ok || bytes.IndexByte(key, '\\') >= 0 {
		return wire.Arrive{}, false
	}
	switch string(rest) {
	case "}":
		return wire.Arrive{Key: string(key)}, true
	case `,"local":true}`:
		return wire.Arrive{Key: string(key), Local: true}, true
	}
	return wire.Arrive{}, false
}

// tell writes the answer.
func (c *conn) tell(o outcome) {
	status, value := http.StatusOK, any(o.released)
	if o.problem != nil {
		status, value = statuses[o.problem.Code], wire.Failure{Error: *o.problem}
	}
	body, err := json.Marshal(value)
	if err != nil {
		c.told <- err
		return
	}
	b := append(c.out[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	b = append(b, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)+1), 10)
	b = append(b, headEnd...)
	b = append(b, body...)
	b = append(b, '\n')
	c.out = b
	_ = c.SetWriteDeadline(time.Now().Add(quickPatience))
	c.setIdle(true)
	_, err = c.Write(b)
	c.told <- err
}
