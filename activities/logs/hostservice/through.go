package hostservice

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// HostHeader names the host in a request to the socket of a command that has connections to
// hosts: a request with the method CONNECT, as a proxy gets it.
const HostHeader = "Clusterrun-Host"

var (
	errThrough   = errors.New("only the `clusterrun run` of this run has a connection to it. Repeat this command on the same machine as the same user")
	errElsewhere = errors.New("it serves its own machine only. Repeat this command there, or start its worker with --listen")
)

// dialer returns how to connect to a service.
func dialer(s spec.HostService, through string) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: answerTakes}
	if through == "" {
		return d.DialContext
	}
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "unix", through)
		if err != nil {
			return nil, errThrough
		}
		if err := connectTo(conn, s); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}
}

// connectTo asks the other end of a connection to connect it to a service.
func connectTo(conn net.Conn, s spec.HostService) error {
	request := &http.Request{
		Method: http.MethodConnect, URL: &url.URL{Opaque: s.Address}, Host: s.Address, Header: http.Header{HostHeader: {s.Host}},
	}
	_ = conn.SetDeadline(time.Now().Add(answerTakes))
	if err := request.Write(conn); err != nil {
		return err
	}
	// The service sends nothing before it is asked, so nothing more is read.
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	switch {
	case err != nil:
		return errors.New("the command that started the run does not answer; is it suspended?")
	case response.StatusCode != http.StatusOK:
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxText))
		return errors.New(strings.TrimSpace(string(text)))
	}
	return conn.SetDeadline(time.Time{})
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && spec.IsLoopback(host)
}
