package codec

import (
	"context"

	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// DialOption returns an option for a connection that encodes requests and decodes answers.
func (k *Keys) DialOption() (grpc.DialOption, error) {
	failures, err := converter.NewFailureGRPCClientInterceptor(converter.NewFailureGRPCClientInterceptorOptions{EncodeCommonAttributes: true})
	if err != nil {
		return nil, err
	}
	payloads, err := converter.NewPayloadCodecGRPCClientInterceptor(converter.PayloadCodecGRPCClientInterceptorOptions{Codecs: []converter.PayloadCodec{k}})
	if err != nil {
		return nil, err
	}
	return grpc.WithChainUnaryInterceptor(copied, failures, payloads), nil
}

// copied does not modify the request, so that a retry does not encode it twice.
func copied(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if m, ok := req.(proto.Message); ok {
		req = proto.Clone(m)
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}
