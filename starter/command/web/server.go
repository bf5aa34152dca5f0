package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// Options configure a server of pages.
type Options struct {
	App       *cli.App
	Client    client.Client
	Namespace string
	// Queue is the task queue with the hosts to show.
	Queue string
	// Token is part of the link that admits a browser. If it is empty, a new one is generated.
	Token string
	// ReadOnly reports whether everything that changes a run or host is omitted.
	ReadOnly bool
}

// Server serves pages on a local port.
type Server struct {
	Options
	gate     gate
	listener net.Listener
	http     http.Server
	// temporal is the address of Temporal's Web UI, or nil. It changes when the server is restarted.
	temporal atomic.Pointer[url.URL]

	lists   facts[runList]
	fleets  facts[fleetFacts]
	runs    facts[*runFacts]
	sweeps  facts[*sweepFacts]
	parts   facts[*runParts]
	outputs facts[*runOutput]
	// notes are the answers to requests. The page that a request leads to shows its note. A link
	// contains only the note's key, so that no one else can write notes.
	notes facts[outcome.Fact]
	// stacks contains, by run, what the pages' last stack capture showed.
	stacks facts[stacktree.Findings]
}

// Listen returns a server that listens on a port, or on any free one if port is 0. An error
// names the port's flag.
func Listen(flag string, port int) (*Server, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--%s: %s is in use by another program; choose another port, or 0 for any free one", flag, address)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return &Server{
		listener: l,
		// An ended run changes only when its logs are removed.
		runs:    facts[*runFacts]{lasts: func(f *runFacts) bool { return !f.status.Open }},
		sweeps:  facts[*sweepFacts]{lasts: func(f *sweepFacts) bool { return f.lasts }},
		parts:   facts[*runParts]{lasts: func(p *runParts) bool { return p.lasts }},
		outputs: facts[*runOutput]{lasts: func(o *runOutput) bool { return o.lasts }},
	}, nil
}

// Port returns the server's port.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Link returns the address that admits a browser.
func (s *Server) Link() string { return s.gate.link() }

// Serve answers requests until Close.
func (s *Server) Serve(o Options) {
	s.Options = o
	s.gate = newGate(cmp.Or(o.Token, rand.Text()), s.Port())
	s.http.Handler = s.gate.guard(s.handler())
	s.http.ReadHeaderTimeout = 10 * time.Second
	s.http.MaxHeaderBytes = 64 << 10
	go func() { _ = s.http.Serve(s.listener) }()
}

// Close aborts all requests.
func (s *Server) Close() {
	_ = s.http.Close()
	_ = s.listener.Close()
}

// handler returns the pages behind the gate.
func (s *Server) handler() http.Handler {
	pages := http.NewServeMux()
	pages.HandleFunc("GET /{$}", s.listRuns)
	pages.HandleFunc("GET /hosts", s.showHosts)
	pages.HandleFunc("GET /runs/{id}", s.showRun)
	pages.HandleFunc("GET /runs/{id}/log", s.download)
	pages.HandleFunc("POST /runs/{id}/{action}", s.act)
	pages.HandleFunc("GET /namespaces/", s.toTemporal)
	// Browsers request it even if there is no page, for example after a redirect.
	pages.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	pages.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.message(w, http.StatusNotFound, "There is no such page", "The list of runs links to all pages.")
	})
	assets := http.StripPrefix(page.AssetsPath, http.FileServerFS(page.Assets()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		if _, ok := assetName(r); ok {
			w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
			assets.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// frame returns the parts that all pages share.
func (s *Server) frame(section, title string, at time.Time) page.Frame {
	f := page.Frame{
		Title: title, At: at, Zone: time.Local, Version: spec.Version, Token: s.gate.formToken(),
		TemporalURL: s.temporalURL(runsQuery),
	}
	for _, l := range []page.Link{{Text: "Runs", URL: "/"}, {Text: "Hosts", URL: "/hosts"}} {
		l.Current = l.Text == section
		f.Nav = append(f.Nav, l)
	}
	return f
}

// message writes a page with a message.
func (s *Server) message(w http.ResponseWriter, status int, title, text string, items ...string) {
	p := &page.MessagePage{Frame: s.frame("", title, time.Now()), Tone: page.Warning, Text: text, Items: items, Back: page.Link{Text: "All runs", URL: "/"}}
	writeHTML(w, status)
	_ = page.RenderMessage(w, p)
}

// fail writes why there is no page.
func (s *Server) fail(w http.ResponseWriter, err error) {
	status, title := http.StatusBadGateway, "The server returned an unexpected answer"
	switch {
	case starter.IsError[*starter.NotFoundError](err):
		status, title = http.StatusNotFound, "There is no such run"
	case starter.IsError[*cli.UsageError](err):
		status, title = http.StatusBadRequest, "That cannot be done"
	case starter.IsError[*starter.RefusedError](err), starter.IsError[*starter.EndedError](err):
		status, title = http.StatusConflict, "The run refused the request"
	case errors.Is(err, context.Canceled):
		return
	}
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		text = fmt.Sprintf("The server did not answer within %s.", askedFor)
	}
	if status == http.StatusBadGateway {
		w.Header().Set("Refresh", "5") // the page lacks parts for its script to request
		text += " This page will try again."
	}
	s.message(w, status, title, text)
}

func writeHTML(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
}
