package work

import (
	"context"

	"github.com/workflows-engine/workflows-engine/history"
)

type parentKey struct{}

// WithTraceParent returns a context with a trace parent, unless it is not a valid traceparent header.
func WithTraceParent(ctx context.Context, parent string) context.Context {
	if parent == "" || !history.IsTraceParent(parent) {
		return ctx
	}
	return context.WithValue(ctx, parentKey{}, parent)
}

// TraceParent returns the trace parent of a context, "" without one.
func TraceParent(ctx context.Context) string {
	parent, _ := ctx.Value(parentKey{}).(string)
	return parent
}

// InheritTrace returns ctx with the values of a call, too. The call's trace parent takes precedence.
func InheritTrace(ctx, call context.Context) context.Context {
	return WithTraceParent(inherited{ctx, call}, TraceParent(call))
}

type inherited struct {
	context.Context
	call context.Context
}

func (c inherited) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.call.Value(key)
}
