package hostservice

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// maxConnections and maxRequests limit the open connections and requests of all clients. Each
	// host of a run may connect to its witnesses.
	maxConnections, maxRequests = 2048, 64
	// maxQuestions limits the questions about leases. They have a separate limit, because processes
	// are stopped if questions are not answered, so readers of output must not prevent that.
	maxQuestions = 1024
	// maxQuery limits a request's body, which contains a cursor for each stream.
	maxQuery = 4 << 20
	// headerTimeout and idleTimeout close silent connections.
	headerTimeout, idleTimeout = 10 * time.Second, 2 * time.Minute
	// pingAfter is when a silent peer is pinged, and pingTakes how long it may take to answer.
	pingAfter, pingTakes = 15 * time.Second, 15 * time.Second
)

// Config configures a host's service.
type Config struct {
	// Host is the host's name, and StateDir the directory with its key.
	Host, StateDir string
	// Listen is HOST:PORT. If the host is missing, it means all addresses; if the port is missing,
	// any free port. Advertise is the address for clients. The default is Listen, or the local
	// address of connections to Peer.
	Listen, Advertise, Peer string
	// Archives stores the directories that runs ship.
	Archives *shipped.Store
}

// Server serves the files of a host's runs.
type Server struct {
	Config
	*identity
	listener net.Listener
	address  string
	http     *http.Server
	over     func(ctx context.Context, run runkey.Run)
	witness  Witness
	// requests and questions contain an element for each request in progress.
	requests, questions door
}

// Listen opens the service. [Server.Serve] answers its requests.
func Listen(c Config) (*Server, error) {
	id, err := openIdentity(c.StateDir)
	if err != nil {
		return nil, err
	}
	l, err := listen(c.StateDir, c.Listen)
	if err != nil {
		return nil, err
	}
	address, err := advertised(l, c.Advertise, c.Peer)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	s := &Server{Config: c, identity: id, address: address, requests: make(door, maxRequests), questions: make(door, maxQuestions)}
	s.listener = netutil.LimitListener(l, maxConnections)
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/runs/{run}", s.authorized(s.requests, ofRun, asUser(s.list)))
	routes.HandleFunc("POST /v1/runs/{run}/output", s.authorized(s.requests, ofRun, asUser(s.output)))
	routes.HandleFunc("GET /v1/runs/{run}/tasks/{rank}/attempts/{n}/{file}", s.authorized(s.requests, ofRun, asUser(s.file)))
	routes.HandleFunc("POST /v1/runs/{run}/lease", s.authorized(s.questions, ofWitness, s.answer))
	routes.HandleFunc("GET /v1/archives/{digest}", s.authorized(s.requests, ofArchive, s.readArchive))
	routes.HandleFunc("PUT /v1/archives/{digest}", s.authorized(s.requests, toStore, s.storeArchive))
	s.http = &http.Server{
		Handler:           routes,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{id.certificate}, MinVersion: tls.VersionTLS13},
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: maxRequests, SendPingTimeout: pingAfter, PingTimeout: pingTakes},
		ErrorLog: log.New(io.Discard, "", 0), // errors of foreign connections
	}
	return s, nil
}

// Address returns the address that clients use.
func (s *Server) Address() string { return s.address }

// Serve answers requests until [Server.Close]. over returns when the run has released this host, or
// when ctx is done.
func (s *Server) Serve(over func(ctx context.Context, run runkey.Run)) {
	s.over = over
	_ = s.http.ServeTLS(s.listener, "", "")
}

// Close closes all connections.
func (s *Server) Close() {
	_ = s.listener.Close()
	_ = s.http.Close()
}

// Describe returns how to read a run's files. Its logs are in dir, and its tasks run as user.
func (s *Server) Describe(run runkey.Run, dir string, user *hostuser.User) *spec.HostService {
	return s.describe(grant{Run: run, Dir: dir, User: numbersOf(user)})
}

// DescribeArchive returns how to read an archive.
func (s *Server) DescribeArchive(digest string) *spec.HostService {
	return s.describe(grant{Archive: digest})
}

// DescribeStore returns how to store archives on this host.
func (s *Server) DescribeStore() *spec.HostService { return s.describe(grant{Store: true}) }

func (s *Server) describe(g grant) *spec.HostService {
	return &spec.HostService{Host: s.Host, Address: s.address, Fingerprint: s.fingerprint, Token: s.token(g)}
}

func ofRun(g grant, r *http.Request) bool {
	return !g.Witness && g.Run.RunID == r.PathValue("run")
}
func ofArchive(g grant, r *http.Request) bool { return g.Archive == r.PathValue("digest") }
func toStore(g grant, _ *http.Request) bool   { return g.Store }

// door limits requests in progress by its capacity.
type door chan struct{}

// authorized calls next for each request that its token allows, if the door has capacity. All other
// requests get the same answer, which does not reveal what exists.
func (s *Server) authorized(through door, allows func(grant, *http.Request) bool, next func(http.ResponseWriter, *http.Request, grant)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		g, ok := s.granted(token)
		if !ok || !allows(g, r) {
			http.NotFound(w, r)
			return
		}
		select {
		case through <- struct{}{}:
			defer func() { <-through }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests are being served", http.StatusServiceUnavailable)
			return
		}
		next(w, r, g)
	}
}

// asUser calls next as the run's user, so that next reaches only files that the user can read, even
// if the directory was replaced or its path leads elsewhere.
func asUser(next func(http.ResponseWriter, *http.Request, grant)) func(http.ResponseWriter, *http.Request, grant) {
	return func(w http.ResponseWriter, r *http.Request, g grant) {
		user, err := g.user()
		if err == nil {
			g.as = user
			err = user.Do(func() error {
				next(w, r, g)
				return nil
			})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
		}
	}
}
