package hostservice

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// readArchive sends an archive starting at an offset. Content-Length is the remaining size.
func (s *Server) readArchive(w http.ResponseWriter, r *http.Request, g grant) {
	f, err := s.Archives.Read(g.Archive)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	offset, err := number(r.URL.Query().Get("offset"))
	if err != nil || offset > info.Size() {
		http.Error(w, "offset: specify a number of bytes within the archive", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size()-offset, 10))
	_, _ = io.Copy(w, io.NewSectionReader(f, offset, info.Size()-offset))
}

func number(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err
}

// storeArchive stores an archive and keeps it until the run in the query has ended. The answer
// describes how to read the archive. If the archive is already stored, the request's body is not
// read.
func (s *Server) storeArchive(w http.ResponseWriter, r *http.Request, _ grant) {
	digest, query := r.PathValue("digest"), r.URL.Query()
	of := shipped.Upload{WorkflowID: query.Get("run"), Namespace: query.Get("namespace"), Server: query.Get("server")}
	if !isDigest(digest) || of.WorkflowID == "" || r.ContentLength < 0 {
		http.Error(w, "specify the archive's digest, its length, and the run", http.StatusBadRequest)
		return
	}
	unlock, err := s.Archives.Lock(r.Context(), digest)
	if err != nil {
		return
	}
	defer unlock()
	// Call Keep first, so that a concurrent sweep does not remove the archive.
	err = s.Archives.Keep(digest, of)
	if err == nil {
		err = s.Archives.Put(spec.Archive{Digest: digest, Size: int(r.ContentLength)}, r.Body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.DescribeArchive(digest))
}

func isDigest(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size && text == strings.ToLower(text)
}

// StoreArchive makes the host keep an archive until a run has ended, and returns how to read it. It
// closes the content.
func (c *Client) StoreArchive(ctx context.Context, a spec.Archive, of shipped.Upload, content io.ReadCloser) (*spec.HostService, error) {
	path := "/archives/" + a.Digest + "?" + url.Values{"run": {of.WorkflowID}, "namespace": {of.Namespace}, "server": {of.Server}}.Encode()
	response, err := c.send(ctx, http.MethodPut, path, content, int64(a.Size))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var from spec.HostService
	if err := json.NewDecoder(io.LimitReader(response.Body, maxText)).Decode(&from); err != nil {
		return nil, c.failed(err)
	}
	return &from, nil
}

// Sink receives an archive. Len returns the number of bytes that have arrived.
type Sink interface {
	io.Writer
	Len() int64
}

// ReadArchive reads the part of an archive that the sink does not have yet. If the connection
// breaks, it reconnects. If no data arrives for a while, it gives up. Sink errors are returned
// unchanged.
func (c *Client) ReadArchive(ctx context.Context, a spec.Archive, sink Sink) error {
	again := reconnect
	for lastNews := time.Now(); ; {
		before := sink.Len()
		err := c.readArchive(ctx, a, sink)
		if sink.Len() > before {
			lastNews = time.Now()
			again.Reset()
		}
		var broken *sinkError
		switch {
		case err == nil, ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case errors.As(err, &broken):
			return broken.error
		case isFinal(err), time.Since(lastNews) > giveUpAfter, again.Sleep(ctx) != nil:
			return err
		}
	}
}

func (c *Client) readArchive(ctx context.Context, a spec.Archive, sink Sink) error {
	response, err := c.send(ctx, http.MethodGet, "/archives/"+a.Digest+"?offset="+strconv.FormatInt(sink.Len(), 10), nil, -1)
	if err != nil {
		if missing, ok := errors.AsType[*statusError](err); ok && missing.code == http.StatusNotFound {
			return c.failed(&statusError{missing.code, "it does not have the archive that the run ships, or does not offer it to this run"})
		}
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(sinkOf{sink}, io.LimitReader(response.Body, int64(a.Size)-sink.Len()+1))
	var broken *sinkError
	switch {
	case errors.As(err, &broken):
		return err
	case err == nil && sink.Len() > int64(a.Size):
		return c.failed(&statusError{http.StatusOK, fmt.Sprintf("it sends more than the archive's %d bytes", a.Size)})
	case err == nil:
		return nil
	}
	return c.failed(err)
}

// sinkOf marks the errors that a sink returns.
type sinkOf struct{ Sink }

type sinkError struct{ error }

func (s sinkOf) Write(b []byte) (int, error) {
	n, err := s.Sink.Write(b)
	if err != nil {
		err = &sinkError{err}
	}
	return n, err
}
