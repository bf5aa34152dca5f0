// Package storage answers Temporal's server, which can archive to Google's cloud storage,
// for one that is not there. Our server archives nothing.
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

// NewClient fails, so nothing below is ever called.
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
