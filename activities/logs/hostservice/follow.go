package hostservice

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// FollowOptions configures a [Follower].
type FollowOptions struct {
	Selection tasklog.Selection
	// WholeLines reports whether unfinished lines are held back; see [tasklog.WholeLines].
	WholeLines bool
	// Live reports whether the follower reads new output until [Follower.Stop] is called. If false,
	// it reads only existing output.
	Live bool
	// OnError is called with errors about files on the host. OnTrouble is called with an error when
	// the host becomes unreachable, and with nil when it is reachable again.
	OnError, OnTrouble func(error)
}

// Follower reads the output of a run's processes on another host, as [tasklog.Follower] does
// locally. If the host is unreachable, the follower retries, and then continues at the same offset.
type Follower struct {
	client *Client
	sink   func(tasklog.Chunk)
	opts   FollowOptions

	live     context.Context // done once Stop is called
	stopLive context.CancelFunc
	ctx      context.Context // done once no call to Stop is waiting
	stop     context.CancelFunc
	done     chan struct{}
	failure  error
	there    map[int][]int

	// Only the goroutine of run uses the fields below.

	cursors  map[tasklog.Stream]*cursor
	buf      []byte
	troubled bool // last argument of OnTrouble
}

// cursor is a stream's read position.
type cursor struct {
	offset int64
	// open reports whether the offset is within a line.
	open bool
}

const (
	// giveUpAfter limits how long a host may send nothing although it has more output.
	giveUpAfter = 5 * time.Second
	// maxPiece limits the length of a record.
	maxPiece = 4 << 20
)

// Follow starts reading. The sink is called from one goroutine, and may be slow.
func (c *Client) Follow(sink func(tasklog.Chunk), o FollowOptions) *Follower {
	f := &Follower{client: c, sink: sink, opts: o, done: make(chan struct{}), cursors: map[tasklog.Stream]*cursor{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.live, f.stopLive = context.WithCancel(f.ctx)
	go f.run()
	return f
}

// Stop reads everything that exists when Stop is called, and then stops reading. If that fails, it
// returns the reason, and the output is incomplete. If ctx is done first, it returns ctx's error.
func (f *Follower) Stop(ctx context.Context) error {
	f.stopLive()
	defer f.stop()
	select {
	case <-f.done:
		return f.failure
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Attempts returns the processes that had files on the host when everything was read. It must be
// called after [Follower.Stop].
func (f *Follower) Attempts() map[int][]int { return f.there }

func (f *Follower) run() {
	defer close(f.done)
	if f.opts.Live {
		f.follow()
	}
	again := reconnect
	for lastNews := time.Now(); ; {
		news, err := f.read(f.ctx, false)
		if news {
			lastNews = time.Now()
			again.Reset()
		}
		if err == nil {
			return
		}
		f.failure = err
		if isFinal(err) || time.Since(lastNews) > f.client.giveUpAfter || again.Sleep(f.ctx) != nil {
			return
		}
	}
}

// reconnect is the time between attempts to reach a host.
var reconnect = retry.Backoff{First: 50 * time.Millisecond, Most: 2 * time.Second}

// follow reads new output until Stop is called.
func (f *Follower) follow() {
	for again := reconnect; f.live.Err() == nil; {
		news, err := f.read(f.live, true)
		if err == nil || isFinal(err) {
			// The run has released the host, or its output is unavailable. If the run reserves the
			// host again, the final read includes the new output.
			<-f.live.Done()
			return
		}
		if news {
			again.Reset()
		}
		_ = again.Sleep(f.live)
	}
}

// reached records whether the host answers; err is nil if it does.
func (f *Follower) reached(err error) {
	if troubled := err != nil; troubled != f.troubled && f.opts.Live && f.live.Err() == nil {
		f.troubled = troubled
		f.opts.OnTrouble(err)
	}
}

// read sends one request and delivers the records of the answer. It reports whether there were any
// records, and returns an error unless the last one marks the end.
func (f *Follower) read(ctx context.Context, live bool) (news bool, err error) {
	q := Query{Selection: f.opts.Selection, WholeLines: f.opts.WholeLines, Follow: live}
	for s, c := range f.cursors {
		q.Cursors = append(q.Cursors, Cursor{s, c.offset})
	}
	response, err := f.client.ask(ctx, http.MethodPost, "/output", q)
	f.reached(err)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	in := bufio.NewReaderSize(response.Body, 64<<10)
	for {
		r, err := f.next(in)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // the end record is missing
			}
			return news, f.client.failed(err)
		}
		news = true
		switch {
		case r.End != nil:
			f.failure, f.there = nil, r.End.Attempts
			return true, nil
		case r.Error != "":
			f.opts.OnError(fmt.Errorf("host %s: %s", f.client.Host(), r.Error))
		default:
			f.deliver(r)
		}
	}
}

// next reads a record, and its data into the buffer.
func (f *Follower) next(in *bufio.Reader) (r record, err error) {
	line, err := readLine(in, maxListing)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err
	}
	if r.Length < 0 || r.Length > maxPiece {
		return r, fmt.Errorf("a record of %d bytes", r.Length)
	}
	if cap(f.buf) < r.Length {
		f.buf = make([]byte, r.Length)
	}
	f.buf = f.buf[:r.Length]
	_, err = io.ReadFull(in, f.buf)
	return r, err
}

// readLine reads a line of at most most bytes.
func readLine(in *bufio.Reader, most int) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > most:
			return nil, fmt.Errorf("it sends a line of more than %d bytes", most)
		case err == nil || !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

func (f *Follower) deliver(r record) {
	if len(f.buf) == 0 {
		return
	}
	c := f.cursors[r.Stream]
	if c == nil {
		c = &cursor{offset: r.Offset}
		f.cursors[r.Stream] = c
	}
	// If the offset differs from the expected one, the file was truncated.
	f.sink(tasklog.Chunk{Stream: r.Stream, Data: f.buf, Start: !c.open || r.Offset != c.offset, Offset: r.Offset})
	c.offset = r.Offset + int64(r.Length)
	c.open = f.buf[len(f.buf)-1] != '\n'
}
