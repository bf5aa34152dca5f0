package taskapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// lines is a connection that begins with {, as no request of HTTP does. Each line is an
// arrival at a barrier, a [wire.ArriveLine], and is answered with a line, a release or a
// failure. Programs meet at local barriers in every step. With net/http, which needs two
// goroutines for each waiting task, a round of 2, 8 or 32 tasks takes 1.8, 1.6 and 1.5 times
// as long: here the goroutine that read the last arrival writes all answers.
type lines struct {
	*conn
	// leave withdraws the waiting arrival. It is nil if none has arrived.
	leave func()
	// told gets an element once the answer to it is written.
	told chan error
	out  []byte
	// in is the last arrival, and head is its line up to the key, or empty if the key is not at
	// its end.
	in   wire.ArriveLine
	head []byte
}

// linePatience is the longest time for writing an answer to a client that does not read. The
// answers of others wait until then.
const linePatience = time.Second

// serve answers arrivals until the connection ends. read has what was read already.
func (l *lines) serve(read []byte) {
	in := bufio.NewScanner(io.MultiReader(bytes.NewReader(read), l.Conn))
	in.Buffer(nil, maxArrive)
	for in.Scan() { // waits for the next line, or for the end of the connection
		// Of a program that has closed its descriptors, this may be the request of another
		// connection that has taken the same descriptor: it sends it again elsewhere.
		if !l.answered() || !bytes.HasPrefix(in.Bytes(), []byte{'{'}) {
			return
		}
		if l.leave == nil {
			_ = l.SetReadDeadline(time.Time{}) // it was for the first line
		}
		l.arrive(in.Bytes())
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) && l.answered() {
		l.tell(outcome{problem: &wire.Problem{Code: wire.CodeTooLarge, Message: fmt.Sprintf("the line has more than %d bytes, the limit", maxArrive)}})
	}
	if l.leave != nil {
		l.leave()
	}
}

// answered waits for the answer to the previous arrival, if there is one. It reports whether
// the connection still serves.
func (l *lines) answered() bool {
	if l.leave == nil {
		return true
	}
	select {
	case err := <-l.told:
		return err == nil
	case <-l.listener.server.group.Context().Done():
		l.leave()
		return false
	}
}

func (l *lines) arrive(line []byte) {
	l.leave = func() {}
	if problem := l.decode(line); problem != nil {
		l.tell(outcome{problem: problem})
		return
	}
	r := request{server: l.listener.server, endpoint: l.listener.endpoint, name: l.in.Name}
	a, local, problem := r.arrival(l.in.Arrive)
	switch {
	case problem != nil:
		l.tell(outcome{problem: problem})
	case local:
		resume := r.endpoint.waits(a)
		t := r.endpoint.rounds.arrive(a, func(o outcome) {
			resume(o)
			l.tell(o)
		})
		l.leave = func() {
			t.leave()
			resume(outcome{})
		}
	default:
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		l.leave = func() {
			cancel()
			<-ended
		}
		go func() {
			defer close(ended)
			defer cancel()
			o, ok := r.arriveElsewhere(ctx, a)
			if !ok {
				_ = l.Conn.Close()
				l.told <- net.ErrClosed
				return
			}
			l.tell(o)
		}()
	}
}

// decode decodes a line. In a loop, a line differs from the previous line only in its key, which
// our clients put at the end.
func (l *lines) decode(line []byte) *wire.Problem {
	head, key, _ := bytes.Cut(line, []byte(`"key":"`))
	key, ok := bytes.CutSuffix(key, []byte(`"}`))
	plain := ok && !bytes.ContainsAny(key, `"\`)
	if plain && len(l.head) > 0 && bytes.Equal(head, l.head) {
		l.in.Key = string(key)
		return nil
	}
	l.in, l.head = wire.ArriveLine{}, l.head[:0]
	problem := decodeStrictly(line, &l.in)
	if plain && problem == nil {
		l.head = append(l.head, head...)
	}
	return problem
}

// tell writes an answer.
func (l *lines) tell(o outcome) {
	value := any(o.released)
	if o.problem != nil {
		value = wire.Failure{Error: *o.problem}
	}
	body, err := json.Marshal(value)
	if err == nil {
		l.out = append(append(l.out[:0], body...), '\n')
		_ = l.SetWriteDeadline(time.Now().Add(linePatience))
		_, err = l.Write(l.out)
	}
	l.told <- err
}
