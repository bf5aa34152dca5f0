package hostservice

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Client reads one run's files on one host, or archives.
type Client struct {
	service spec.HostService
	url     string
	run     string
	http    *http.Client
	// giveUpAfter limits how long the host may send nothing although it has more output.
	giveUpAfter time.Duration
}

// errCertificate is returned if the run does not know the service that answers.
var errCertificate = errors.New("the run does not have this certificate; another host worker uses that address, or its state directory was recreated")

const (
	// answerTakes limits the wait for a connection and for the start of an answer.
	answerTakes = 5 * time.Second
	// storingTakes limits the time a host may take to store an archive on its disk.
	storingTakes = time.Minute
	// maxUnread limits the bytes that are read before the sink takes them.
	maxUnread = 1 << 20
	// maxListing limits a listing, and maxText an error message.
	maxListing, maxText = 64 << 20, 4 << 10
)

// NewClient returns a client for a run, given the ID of its first execution, which is empty for
// archives.
func NewClient(s spec.HostService, run string) *Client {
	answer := answerTakes
	if run == "" {
		answer = storingTakes
	}
	return &Client{
		service: s, url: "https://" + s.Address + "/v1", run: "/runs/" + url.PathEscape(run), giveUpAfter: giveUpAfter,
		http: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				DialContext: (&net.Dialer{Timeout: answerTakes}).DialContext,
				TLSClientConfig: &tls.Config{
					MinVersion:         tls.VersionTLS13,
					InsecureSkipVerify: true, //nolint:gosec // the fingerprint is checked instead
					VerifyConnection: func(c tls.ConnectionState) error {
						return checkFingerprint(c.PeerCertificates, s.Fingerprint)
					},
				},
				TLSHandshakeTimeout: answerTakes, ResponseHeaderTimeout: answer, ForceAttemptHTTP2: true,
				HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: maxUnread, SendPingTimeout: pingAfter, PingTimeout: pingTakes},
			},
		},
	}
}

func checkFingerprint(given []*x509.Certificate, want string) error {
	if len(given) == 0 || !strings.EqualFold(fingerprint(given[0]), want) {
		return errCertificate
	}
	return nil
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Host returns the host's name.
func (c *Client) Host() string { return c.service.Host }

// List lists the processes that have files on the host.
func (c *Client) List(ctx context.Context) (l Listing, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*answerTakes)
	defer cancel()
	response, err := c.ask(ctx, http.MethodGet, "", nil)
	if err != nil {
		return l, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxListing)).Decode(&l); err != nil {
		return l, c.failed(err)
	}
	return l, nil
}

// maxFile limits a file that is read into memory.
const maxFile = 16 << 20

// ReadFile returns a whole file of a process: stdout, stderr, error, result, start, metrics or the
// name of a stack file. If the file does not exist, the error is [fs.ErrNotExist]. Reading a file
// larger than 16 MiB also fails.
func (c *Client) ReadFile(ctx context.Context, rank, attempt int, file string) ([]byte, error) {
	var b []byte
	err := c.EachPiece(ctx, rank, attempt, file, func(piece []byte, offset int64) error {
		if offset+int64(len(piece)) > maxFile {
			return c.failed(fmt.Errorf("the %s file exceeds %d MiB", file, maxFile>>20))
		}
		b = append(b, piece...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// EachPiece passes a whole file of any size to the sink, in pieces; see [Client.ReadFile]. If the
// sink fails, EachPiece stops and returns the error.
func (c *Client) EachPiece(ctx context.Context, rank, attempt int, file string, sink func(piece []byte, offset int64) error) error {
	response, err := c.ask(ctx, http.MethodGet, fmt.Sprintf("/tasks/%d/attempts/%d/%s", rank, attempt, file), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	buffer, offset := make([]byte, 64<<10), int64(0)
	for {
		n, err := response.Body.Read(buffer)
		if n > 0 {
			if err := sink(buffer[:n], offset); err != nil {
				return err
			}
			offset += int64(n)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return c.failed(err)
		}
	}
	if response.Trailer.Get(endTrailer) == "" {
		return c.failed(io.ErrUnexpectedEOF)
	}
	return nil
}

// statusError is an answer that reports a failure.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

// Is makes "not found" and "gone" count as [fs.ErrNotExist].
func (e *statusError) Is(target error) bool {
	return target == fs.ErrNotExist && (e.code == http.StatusNotFound || e.code == http.StatusGone)
}

// untilSucceeded is the time that a host worker that exits has to be replaced.
const untilSucceeded = 5 * time.Second

// isClosed reports whether the process that had accepted the connection has exited. Its successor
// will accept another one.
func isClosed(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }

// ask sends a request about the run and returns the answer if it reports success.
func (c *Client) ask(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(b)
	}
	response, err := c.send(ctx, method, c.run+path, content, -1)
	again := reconnect
	for until := time.Now().Add(untilSucceeded); method == http.MethodGet && isClosed(err) && time.Now().Before(until) && again.Sleep(ctx) == nil; {
		response, err = c.send(ctx, method, c.run+path, nil, -1)
	}
	return response, err
}

// send sends a request with a body of the given size, which is -1 if unknown.
func (c *Client) send(ctx context.Context, method, path string, content io.Reader, size int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, content)
	if err != nil {
		return nil, c.failed(err)
	}
	if size >= 0 {
		request.ContentLength = size
	}
	request.Header.Set("Authorization", "Bearer "+c.service.Token)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.failed(err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxText))
	return nil, c.failed(&statusError{response.StatusCode, strings.TrimSpace(string(text))})
}

func (c *Client) failed(err error) error {
	// Remove the address, because the error already names it.
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		err = dial.Err
	}
	return fmt.Errorf("host %s at %s: %w", c.service.Host, c.service.Address, err)
}

// isFinal reports whether a retry would also fail.
func isFinal(err error) bool {
	var status *statusError
	return errors.Is(err, errCertificate) || errors.As(err, &status) && status.code != http.StatusServiceUnavailable
}
