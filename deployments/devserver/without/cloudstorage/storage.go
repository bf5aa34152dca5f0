// Package storage replaces the Google cloud storage that Temporal's server can archive to. Our
// server does not archive.
package storage

import (
	"context"
	"errors"
	"io"

	"google.golang.org/api/option"
)

// ScopeFullControl is unused.
const ScopeFullControl = ""

var errNone = errors.New("this server is built without Google's cloud storage")

type (
	Client         struct{}
	BucketHandle   struct{}
	ObjectHandle   struct{}
	ObjectIterator struct{}
	Writer         struct{ io.WriteCloser }
	Reader         struct{ io.ReadCloser }
	BucketAttrs    struct{}
	ObjectAttrs    struct{ Name string }
	Query          struct{ Prefix string }
)

// NewClient always fails, so no other function is ever called.
func NewClient(context.Context, ...option.ClientOption) (*Client, error) { return nil, errNone }

func (*Client) Bucket(string) *BucketHandle { return nil }

func (*BucketHandle) Object(string) *ObjectHandle                     { return nil }
func (*BucketHandle) Objects(context.Context, *Query) *ObjectIterator { return nil }
func (*BucketHandle) Attrs(context.Context) (*BucketAttrs, error)     { return nil, errNone }
func (*ObjectHandle) NewWriter(context.Context) *Writer               { return nil }
func (*ObjectHandle) NewReader(context.Context) (*Reader, error)      { return nil, errNone }
func (*ObjectHandle) Attrs(context.Context) (*ObjectAttrs, error)     { return nil, errNone }
func (*ObjectIterator) Next() (*ObjectAttrs, error)                   { return nil, errNone }
func (*Writer) CloseWithError(error) error                            { return errNone }
