package remotehosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// archive stores the run's archive where the host worker unpacks it.
func (s *service) archive(w http.ResponseWriter, r *http.Request) {
	size, err := strconv.Atoi(r.URL.Query().Get("size"))
	if err == nil {
		err = shipped.Open(s.dir.Path).Put(spec.Archive{Digest: r.URL.Query().Get("digest"), Size: size}, r.Body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
	}
}

// Ship sends an archive to all hosts concurrently. It calls read with each host's name to get a
// reader of the whole archive, and closes the reader. It may be called on a nil Hosts.
func (s *Hosts) Ship(ctx context.Context, a spec.Archive, read func(host string) io.ReadCloser) error {
	if s == nil {
		return nil
	}
	errs := make(chan error, len(s.all))
	s.each(func(h *host) { errs <- h.ship(ctx, a, read(h.name)) })
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

func (h *host) ship(ctx context.Context, a spec.Archive, content io.ReadCloser) error {
	defer content.Close()
	query := url.Values{"digest": {a.Digest}, "size": {strconv.Itoa(a.Size)}}
	response, err := h.post(ctx, "/archive?"+query.Encode(), content)
	if err != nil {
		return fmt.Errorf("host %s: %w", h.name, err)
	}
	return response.Body.Close()
}
